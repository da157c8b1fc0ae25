"""The last line: made-up scores, and what must be said of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.tools.decision import CANNOT_TELL, FEWEST, NONE, USE, beats_trivial, decide

SPREAD = np.array([0.3, -0.2, 0.1, -0.4, 0.2])


def said(gain: float, spread: float = 0.3, seeds: int = 5, **more: float):  # type: ignore[no-untyped-def]
    base = 80 + 3 * np.resize(SPREAD[::-1], seeds)
    return decide(
        {"dense": base, "keep 0.3": base + gain + spread * np.resize(SPREAD, seeds)},
        "dense",
        **more,
    )


def test_a_sure_gain_is_used() -> None:
    found = said(2.0)
    assert (found.kind, found.choice) == (USE, "keep 0.3")
    assert found.sentence == (
        "use keep 0.3: +2.00 points of balanced accuracy over dense [+1.89, +2.11], n = 5"
    )
    assert said(0.2, 0.1).sentence.endswith("a sure gain, but of less than 0.5 points")


def test_the_baseline_where_nothing_can_gain() -> None:
    found = said(-2.0)
    assert (found.kind, found.choice) == (NONE, "dense")
    assert found.sentence.startswith(
        "none of these beats dense: the best is keep 0.3, -2.00 points"
    )
    assert found.sentence.endswith("; use dense")


def test_else_nobody_can_tell() -> None:
    found = said(0.5, 8.0)
    assert found.kind == CANNOT_TELL and found.choice is None and found.further_seeds > 1
    assert f"about {found.further_seeds} more seeds would" in found.sentence
    assert said(2.0, seeds=3).kind == CANNOT_TELL  # however clear: fewer than five decide nothing
    assert "at least 4 more seeds" in said(2.0, seeds=1).sentence
    assert "more than 200 seeds" in said(0.01, 60.0).sentence
    assert "nothing is compared with dense yet" in decide({"dense": [1.0]}, "dense").sentence


def test_of_several_the_best_that_is_sure() -> None:
    base = np.full(5, 70.0)
    scores = {
        "dense": base,
        "a": base + 1 + SPREAD,
        "b": base + 3 + SPREAD,
        "c": base + 9 + 40 * SPREAD,
    }
    assert decide(scores, "dense").choice == "b"
    # with more candidates the same gain is less certain
    one = said(0.30)
    many = decide({"dense": base, **{f"c{i}": base + 0.30 + SPREAD for i in range(40)}}, "dense")
    assert one.kind == USE and many.kind != USE


@given(st.floats(-5, 5), st.floats(0.01, 5), st.integers(1, 12))
def test_the_kinds_exclude_each_other(gain: float, spread: float, seeds: int) -> None:
    found = said(gain, spread, seeds)
    assert found.kind in (USE, NONE, CANNOT_TELL)
    assert (found.choice is None) == (found.kind == CANNOT_TELL)
    assert (found.further_seeds > 0) == (found.kind == CANNOT_TELL)
    if seeds < FEWEST:
        assert found.kind == CANNOT_TELL


def test_an_unknown_baseline_is_refused() -> None:
    with pytest.raises(UsageError, match="baseline='x': must be one of dense"):
        decide({"dense": [1.0]}, "x")


def test_the_cheapest_that_costs_nothing_is_named() -> None:
    base = np.full(5, 70.0)
    scores = {"dense": base, "0.5": base - 0.1 + SPREAD / 9, "0.3": base - 0.2 + SPREAD / 9}
    scores |= {"0.1": base - 3 + SPREAD / 9}
    found = decide(scores, "dense", cheapest_first=["0.1", "0.3", "0.5"])
    assert found.kind == NONE and "; use dense; 0.3 costs less than 0.5 points for sure" in (
        found.sentence
    )
    assert "costs" not in decide(scores, "dense").sentence
    few = {name: values[:4] for name, values in scores.items()}
    assert "costs" not in decide(few, "dense", cheapest_first=["0.3"]).sentence


TRIVIAL = {"always answering 'a'": 25.0, "a logistic regression on pixels": 30.0}


def test_what_is_better_than_nothing_is_compared() -> None:
    found = {"dense": (60.0, 50.0, 70.0), "keep 0.3": (20.0, 10.0, 30.0)}
    assert beats_trivial(found, TRIVIAL, 100) is None


def test_what_has_learnt_nothing_is_told() -> None:
    found = beats_trivial({"dense": (28.0, 20.0, 36.0), "0.3": (25.0, 17.0, 33.0)}, TRIVIAL, 58)
    assert found is not None and found.kind == NONE
    assert found.choice == "a logistic regression on pixels"
    assert found.sentence.startswith(
        "none of these beats a logistic regression on pixels: the best is dense, 28.0 % of "
        "balanced accuracy [20.0, 36.0] against 30.0 % on 58 test images; "
    )


def test_more_test_images_would_tell() -> None:
    found = beats_trivial({"dense": (40.0, 20.0, 60.0)}, TRIVIAL, 50)
    assert found is not None and (found.kind, found.choice) == (CANNOT_TELL, None)
    assert found.sentence.endswith("on 50 test images; about 200 would")  # twice as narrow
