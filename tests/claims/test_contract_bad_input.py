"""Studies refuse parameters that are unknown, make no sense or are of the wrong kind."""

from __future__ import annotations

import re
from typing import Any

import pytest
from registered_studies import STUDIES, every_study

from rarefy.core.contracts import Study
from rarefy.core.errors import UsageError
from rarefy.studies import get_study

pytestmark = pytest.mark.usefixtures("eager")


@every_study
@pytest.mark.parametrize(
    ("scale", "wrong", "message"),
    [
        ("tiny", {"no_such_parameter": 1}, "unknown parameter of .* 'no_such_parameter'"),
        ("gigantic", {}, "unknown scale 'gigantic'"),
        ("tiny", {"seeds": 0}, "seeds=0: must be at least 1"),
    ],
)
def test_unknown_names_and_no_seeds_are_wrong_use(
    kind: type[Study], scale: str, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        kind.at(scale, **wrong)


BOTH = ("contrast-alignment", "contrast-dynamics")
WRONG: list[tuple[tuple[str, ...], dict[str, Any], str]] = [
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (0.5, -0.1)}, "eps_min=-0.1: a feature freq"),
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (0.0,)}, "eps_min=0.0: a feature frequency"),
    ((*BOTH, "contrast-sensitivity"), {"eps_min": (1.5,)}, "eps_min=1.5: a feature frequency"),
    (("contrast-alignment",), {"sigma": (0.1, -1.0)}, "sigma=-1.0: must be finite and at least 0"),
    (
        ("contrast-dynamics", "contrast-sensitivity"),
        {"sigma": -1.0},
        "sigma=-1.0: must be finite and at least 0",
    ),
    (BOTH, {"d1": 8}, "d1=8: must be at least the number of features, 9"),
    (("contrast-sensitivity",), {"d1": 8}, "d1=8: must be at least the number of features"),
    (BOTH, {"majority": 0}, "majority=0: must be at least 1"),
    (BOTH, {"neurons": 0}, "neurons=0: must be at least 1"),
    (BOTH, {"steps": 0}, "steps=0: must be at least 1"),
    (BOTH, {"batch": 1}, "batch=1: must be at least 2"),
    (BOTH, {"lr": 0.0}, "lr=0.0: must be positive and finite"),
    (BOTH, {"lr": float("nan")}, "lr=nan: must be positive and finite"),
    (BOTH, {"tau": -1.0}, "tau=-1.0: must be positive and finite"),
    (BOTH, {"sigma_0": float("inf")}, "sigma_0=inf: must be positive and finite"),
    (BOTH, {"weight_decay": -0.1}, "weight_decay=-0.1: must be at least 0 and below 1/lr"),
    (BOTH, {"weight_decay": 6.0}, "weight_decay=6.0: must be at least 0 and below 1/lr"),
    (BOTH, {"activation": 0.0}, "activation=0.0: must be in"),
    (BOTH, {"tokens": 0}, "tokens=0: must be between 1 and 30"),
    (BOTH, {"spread": "most"}, "spread='most': must be one of"),
    (BOTH, {"loss_form": "square"}, "loss_form='square': must be one of plain, times-tau"),
    (BOTH, {"bias_until": "T9"}, "bias_until='T9': must be one of T2, end"),
    (
        ("contrast-alignment",),
        {"bias_scale": (-1.0,)},
        "bias_scale=-1.0: must be finite and at least 0",
    ),
    (("contrast-dynamics",), {"bias_scale": -1.0}, "bias_scale=-1.0: must be"),
    (("contrast-alignment",), {"reads": (0, 41)}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"reads": (40, 20)}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"reads": ()}, "reads=.*rising steps between 0 and steps=40"),
    (("contrast-alignment",), {"figure_read": 7}, "figure_read=7: must be one of reads"),
    (("contrast-dynamics",), {"stage_1_steps": 0}, "stage_1_steps=0: must be at least 1"),
    (("contrast-dynamics",), {"stage_1_steps": 999}, "stage_1_steps=999: must be in 1..steps=120"),
    (("contrast-dynamics",), {"recorded": 1}, "recorded=1: must be at least 2"),
    (("contrast-dynamics",), {"moment_samples": 0}, "moment_samples=0: must be at least 1"),
    (
        ("contrast-sensitivity",),
        {"variation": ("lr 9",)},
        "variation='lr 9': must be one of lr 0.1",
    ),
    (("contrast-sensitivity",), {"reads": (5,)}, "reads=.*at least two"),
    (("contrast-convergence",), {"d": (3,)}, "d=3: must be at least 4"),
    (("contrast-convergence",), {"d": (40,)}, "d1=30: must be at least the number of features, 40"),
    (("contrast-convergence",), {"reads": (0.0, 1.01)}, "reads=.*rising exponents above 1.02"),
    (("contrast-convergence",), {"reads": (1.25, 1.5)}, "reads=.*0, then rising exponents"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [(name, wrong, message) for names, wrong, message in WRONG for name in names],
)
def test_a_value_that_makes_no_sense_is_named_with_what_is_allowed(
    name: str, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        STUDIES[name].at("tiny", **wrong)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"eps_min": "abc"}, "eps_min='abc': must be a number"),
        ({"seeds": 2.5}, "seeds=2.5: must be a whole number"),
        ({"lr": "fast"}, "lr='fast': must be a number"),
        ({"reads": 40}, "reads=40: must be a list of values"),
        ({"batch": True}, "batch=True: must be a whole number"),
        ({"spread": 1}, "spread=1: must be a text"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(wrong: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        get_study("contrast-alignment").at("tiny", **wrong)
