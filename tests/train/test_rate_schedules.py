"""Learning rates over a training: values by hand, and errors that name the nearest."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.train.rate_schedules import SCHEDULES, rate_factor


@pytest.mark.parametrize(
    ("schedule", "step", "factor"),
    [
        ("cosine", 0, 1.0),
        ("cosine", 25, (1 + math.sqrt(0.5)) / 2),
        ("cosine", 50, 0.5),
        ("cosine", 75, (1 - math.sqrt(0.5)) / 2),
        ("cosine", 100, 0.0),
        ("step", 0, 1.0),
        ("step", 49, 1.0),
        ("step", 50, 0.1),
        ("step", 74, 0.1),
        ("step", 75, 0.01),
        ("step", 99, 0.01),
        ("constant", 0, 1.0),
        ("constant", 99, 1.0),
    ],
)
def test_factors_of_a_hundred_steps(schedule: str, step: int, factor: float) -> None:
    assert rate_factor(schedule, step, 100) == pytest.approx(factor, abs=1e-12)


@pytest.mark.parametrize(
    ("step", "factor"), [(0, 1 / 11), (4, 5 / 11), (9, 10 / 11), (10, 1.0), (55, 0.5), (100, 0.0)]
)
def test_the_rate_rises_first_and_the_schedule_has_the_rest(step: int, factor: float) -> None:
    assert rate_factor("cosine", step, 100, warm_up=0.1) == pytest.approx(factor, abs=1e-12)


def test_a_stepped_rate_falls_at_shares_of_what_is_left_after_the_rise() -> None:
    found = [rate_factor("step", step, 100, warm_up=0.2) for step in (19, 20, 59, 60, 79, 80)]
    assert found == pytest.approx([20 / 21, 1, 1, 0.1, 0.1, 0.01])


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(steps=st.integers(1, 200), warm_up=st.floats(0, 0.99, allow_nan=False))
def test_a_rate_is_positive_at_most_one_and_never_rises_after_its_top(
    schedule: str, steps: int, warm_up: float
) -> None:
    factors = [rate_factor(schedule, step, steps, warm_up) for step in range(steps)]
    assert all(0 < factor <= 1 for factor in factors)
    top = factors.index(max(factors))
    assert factors[top] == 1
    assert factors[: top + 1] == sorted(factors[: top + 1])
    assert factors[top:] == sorted(factors[top:], reverse=True)


def test_one_step_has_the_whole_rate() -> None:
    assert [rate_factor(schedule, 0, 1, 0.5) for schedule in SCHEDULES] == [1.0, 1.0, 1.0]


def test_an_unknown_schedule_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown schedule 'cosin'; did you mean 'cosine'\?"):
        rate_factor("cosin", 0, 10)


@pytest.mark.parametrize("warm_up", [-0.1, 1.0, math.nan])
def test_a_rise_is_a_share_of_the_training(warm_up: float) -> None:
    with pytest.raises(UsageError, match="warm_up=.*at least 0 and below 1"):
        rate_factor("cosine", 0, 10, warm_up)
