"""One checked assumption: when it holds, how far it is missed, how it reads."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.theory.conditions import COLUMNS, Condition, table_rows, worst

positive = st.floats(1e-6, 1e6)


@given(positive, positive, st.sampled_from([">=", "<="]))
def test_a_factor_of_ratio_makes_it_hold(value: float, limit: float, sense: str) -> None:
    condition = Condition("x", value, sense, limit, "")
    assert condition.holds == (condition.ratio <= 1)
    mended = value * condition.ratio if sense == ">=" else value / condition.ratio
    assert mended == pytest.approx(limit)


def test_the_edge_holds() -> None:
    for sense in (">=", "<="):
        edge = Condition("x", 2.0, sense, 2.0, "")
        assert edge.holds and edge.ratio == 1


@pytest.mark.parametrize(
    ("value", "sense", "limit", "ratio"),
    [
        (-5.0, ">=", 1.0, math.inf),  # no factor helps
        (0.0, ">=", 1.0, math.inf),
        (0.0, ">=", 0.0, 1.0),
        (1.0, ">=", -3.0, 0.0),
        (-1.0, ">=", -3.0, 0.0),
        (1.0, "<=", 0.0, math.inf),
        (0.0, "<=", 0.0, 1.0),
        (0.0, "<=", 2.0, 0.0),
        (5.0, "<=", math.inf, 0.0),
        (math.inf, ">=", math.inf, 0.0),
        (math.inf, "<=", 3.0, math.inf),
        (5.0, ">=", math.inf, math.inf),
    ],
)
def test_zeros_signs_and_infinities(value: float, sense: str, limit: float, ratio: float) -> None:
    condition = Condition("x", value, sense, limit, "")
    assert condition.ratio == ratio
    assert condition.holds == (ratio <= 1)


def test_it_reads_as_one_line() -> None:
    missed = Condition("d", 200, ">=", 8000, "d >= T + ...")
    assert missed.text() == "violated 40 times: d = 200 >= 8000 (d >= T + ...)"
    assert Condition("lr", 0.1, "<=", 2, "f").text() == "holds: lr = 0.1 <= 2 (f)"
    assert Condition("r", -1.0, ">=", 2, "f").text().startswith("violated: r = -1 >= 2")
    rows = table_rows([missed, Condition("lr", 0.1, "<=", 2, "f")])
    assert rows[0] == ("d", "d >= T + ...", "200", ">= 8000", "no", "40 times")
    assert rows[1][4:] == ("yes", "") and all(len(row) == len(COLUMNS) for row in rows)


def test_a_list_is_judged_by_its_worst() -> None:
    near, far = Condition("a", 1, ">=", 2, ""), Condition("b", 1, ">=", 9, "")
    good = Condition("c", 5, ">=", 1, "")
    assert worst([near, far, good]) is far
    with pytest.raises(UsageError, match="conditions=.*needs at least one"):
        worst([])


def test_bad_values_are_named() -> None:
    with pytest.raises(UsageError, match="sense='>': must be one of >=, <="):
        Condition("x", 1, ">", 2, "")
    with pytest.raises(UsageError, match=r"value=nan: must be a number \(x\)"):
        Condition("x", math.nan, ">=", 2, "")
    with pytest.raises(UsageError, match="limit=nan: must be a number"):
        Condition("x", 1, ">=", math.nan, "")
