"""How a budget is spread over layers: totals, caps, patterns and errors."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.pruning.distributions import check_keep, erdos_renyi_kernel, layer_keeps

SHAPES = {"a.weight": (4, 3, 3, 3), "b.weight": (8, 4), "c.weight": (2, 8)}


@pytest.mark.parametrize("keep", [1e-9, 0.5, 1.0, 1, 17])
def test_shares_and_counts_that_are_allowed(keep: float | int) -> None:
    check_keep(keep)
    assert layer_keeps(SHAPES, keep, "uniform") == dict.fromkeys(SHAPES, keep)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (0.0, "keep=0.0: a share must lie in (0, 1]"),
        (-0.5, "keep=-0.5: a share must lie in (0, 1]"),
        (1.5, "keep=1.5: a share must lie in (0, 1]"),
        (math.nan, "keep=nan: a share must lie in (0, 1]"),
        (math.inf, "keep=inf: a share must lie in (0, 1]"),
        (0, "keep=0: a count must be at least 1"),
        (-3, "keep=-3: a count must be at least 1"),
        (True, "keep=True: must be a share in (0, 1] or a whole count"),
        ("0.5", "keep='0.5': must be a share in (0, 1] or a whole count"),
        (None, "keep=None: must be a share in (0, 1] or a whole count"),
    ],
)
def test_what_is_no_share_and_no_count_is_refused(keep: object, message: str) -> None:
    for distribution in ("uniform", "erk", {"*": 0.5}):
        with pytest.raises(UsageError) as error:
            layer_keeps(SHAPES, keep, distribution)  # type: ignore[arg-type]
        assert str(error.value) == message


# ---------------------------------------------------------------------------------------- ERK


def test_erk_of_two_layers_by_hand() -> None:
    """(2, 2) has odds 4/4 = 1, (4, 4) has 8/16 = 1/2. keep 0.5 of 20 weights is 10: the scale s
    solves 4 s + 8 s = 10, so s = 5/6: 5/6 of the first, 5/12 of the second."""
    found = erdos_renyi_kernel({"small": (2, 2), "large": (4, 4)}, 0.5)
    assert found == pytest.approx({"small": 5 / 6, "large": 5 / 12}, rel=1e-12)


def test_erk_leaves_a_layer_whole_whose_share_would_pass_one() -> None:
    """keep 0.75 is 15 weights: s = 15/12 would give the first 1.25. It stays whole, and 11 of the
    second's 16 are left."""
    found = erdos_renyi_kernel({"small": (2, 2), "large": (4, 4)}, 0.75)
    assert found == pytest.approx({"small": 1.0, "large": 11 / 16}, rel=1e-12)


layer_shapes = st.lists(
    st.lists(st.integers(1, 40), min_size=2, max_size=4).map(tuple), min_size=1, max_size=6
)


@given(layer_shapes, st.floats(0.01, 1.0))
def test_erk_keeps_the_budget_caps_at_one_and_prunes_large_layers_more(
    list_of_shapes: list[tuple[int, ...]], keep: float
) -> None:
    shapes = {str(place): shape for place, shape in enumerate(list_of_shapes)}
    found = erdos_renyi_kernel(shapes, keep)
    size = {name: math.prod(shape) for name, shape in shapes.items()}
    total = sum(found[name] * size[name] for name in shapes)
    assert total == pytest.approx(keep * sum(size.values()), rel=1e-9)
    assert all(0 < share <= 1 + 1e-12 for share in found.values())
    # below the cap, shares are proportional to the sum of dimensions over their product
    ratios = [
        share / (sum(shapes[name]) / size[name]) for name, share in found.items() if share < 1
    ]
    assert ratios == pytest.approx(ratios[:1] * len(ratios), rel=1e-9)
    # and no layer is whole that would not have to be
    if ratios:
        for name, share in found.items():
            if share == 1:
                assert ratios[0] * sum(shapes[name]) / size[name] >= 1 - 1e-9


# ---------------------------------------------------------------------------------- given shares


def test_the_first_pattern_that_matches_a_weight_or_its_layer_counts() -> None:
    found = layer_keeps(SHAPES, 0.5, {"a": 0.1, "b.*": 3, "*": 0.9})
    assert found == {"a.weight": 0.1, "b.weight": 3, "c.weight": 0.9}
    assert layer_keeps(SHAPES, 0.5, {"c": 1})["a.weight"] == 0.5
    assert layer_keeps(SHAPES, 0.5, {}) == dict.fromkeys(SHAPES, 0.5)


@pytest.mark.parametrize(
    ("keep", "distribution", "message"),
    [
        (3, "erk", "keep=3: distribution='erk' spreads a share, not a count"),
        (0.5, {"a": 1.2}, "distribution['a']=1.2: a share must lie in (0, 1]"),
        (
            0.5,
            {"a": 0.1, "d*": 0.2},
            "distribution: pattern 'd*' matches none of a.weight, b.weight, c.weight",
        ),
        *(
            (0.5, word, f"distribution={word!r}: must be 'uniform', 'erk' or {{pattern: keep}}")
            for word in ("even", "ERK", 3)
        ),
    ],
)
def test_what_cannot_be_spread_is_named(keep: float, distribution: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        layer_keeps(SHAPES, keep, distribution)
    assert str(error.value) == message
