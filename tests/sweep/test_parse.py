"""``--set``: values of the right type, or an error that says which would be."""

from __future__ import annotations

from typing import Any

import pytest
from toy_study import Toy

from rarefy.core.errors import UsageError
from rarefy.studies import get_study
from rarefy.sweep.parse import parse_settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr=2", 2.0),
        ("lr = 1e-3", 1e-3),
        ("steps=1e2", 100),
        ("reflect=yes", True),
        ("reflect=False", False),
        ("rule=a,b=c", "a,b=c"),
        ("sigma=1", (1.0,)),
        ("sigma=0.1,0.2", (0.1, 0.2)),
        ("sigma=0:0.5:0.1", (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)),
        ("sigma=9,3:1:-1", (9.0, 3.0, 2.0, 1.0)),
        ("drift=1:3", (1.0, 2.0, 3.0)),
    ],
)
def test_values_take_the_type_of_their_field(text: str, value: Any) -> None:
    (settled,) = parse_settings(Toy, [text]).values()
    assert settled == value
    assert type(settled) is type(value)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["lr"], "--set='lr': must be name=value"),
        (["lr="], "must be name=value"),
        (["lrr=1"], "unknown parameter of toy 'lrr'; did you mean 'lr'?"),
        (["lr=fast"], "lr='fast': must be a number"),
        (["steps=1.5"], "steps='1.5': must be a whole number"),
        (["steps=nan"], "must be a whole number"),
        (["reflect=maybe"], "reflect='maybe': must be true or false"),
        (["lr=0.1,0.2"], "lr='0.1,0.2': takes one value; those with many are drift, sigma"),
        (["lr=1", "lr=2"], "lr is set twice"),
        (["sigma=0:1:0"], "this range is empty"),
        (["sigma=1:0:0.1"], "this range is empty"),
        (["sigma=0:1:1e-9"], "values, at most"),
        (["sigma=a:b"], "must be a number"),
        (["sigma=,"], "needs at least one value"),
    ],
)
def test_wrong_values_are_named(texts: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_settings(Toy, texts)
    assert said in str(caught.value)


def test_a_text_may_have_a_colon() -> None:
    """Names of variations do; only numbers have ranges."""
    kind = get_study("granularity-ablation")
    found = parse_settings(kind, ["variation=as chosen,hard: no distraction"])
    assert found == {"variation": ("as chosen", "hard: no distraction")}
