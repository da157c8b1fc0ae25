"""When masks are chosen and how far the way still is, by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.pruning.schedules import Schedule, constant, gradual, one_shot, periodic


def due(schedule: Schedule, steps: int = 20) -> list[int]:
    return [step for step in range(steps) if schedule.due(step)]


def test_constant_begins_before_the_first_update_and_never_ends() -> None:
    assert due(constant(), 5) == [0, 1, 2, 3, 4]
    assert due(constant(every=6)) == [0, 6, 12, 18]
    assert constant().share(0) == constant().share(1000) == 0.0


def test_periodic_counts_from_its_begin_and_its_end_is_a_last_time() -> None:
    assert due(periodic(5, begin=3)) == [3, 8, 13, 18]
    assert due(periodic(5, begin=3, end=13)) == [3, 8, 13]
    assert due(periodic(5, begin=3, end=15)) == [3, 8, 13, 15]
    assert [periodic(5, begin=3).share(step) for step in (0, 2, 3, 4)] == [1.0, 1.0, 0.0, 0.0]


def test_one_shot_is_once() -> None:
    assert due(one_shot(7)) == [7]
    assert due(one_shot()) == [0]
    assert [one_shot(7).share(step) for step in (6, 7, 8)] == [1.0, 0.0, 0.0]


def test_gradual_falls_by_a_cubic() -> None:
    """From 2 to 6: after 1 of 4 updates (3/4)^3 of the way is left, and so on."""
    schedule = gradual(2, 6)
    found = [schedule.share(step) for step in range(8)]
    assert found == [1.0, 1.0, 1.0, 27 / 64, 8 / 64, 1 / 64, 0.0, 0.0]
    assert due(gradual(2, 6), 9) == [2, 3, 4, 5, 6]
    assert due(gradual(2, 7, every=3), 9) == [2, 5, 7]


@given(st.integers(0, 20), st.integers(1, 30), st.integers(1, 5), st.integers(0, 60))
def test_the_way_never_grows_and_the_last_choice_has_come_to_its_end(
    begin: int, length: int, every: int, step: int
) -> None:
    schedule = gradual(begin, begin + length, every)
    assert 0 <= schedule.share(step + 1) <= schedule.share(step) <= 1
    assert schedule.due(begin + length) and schedule.share(begin + length) == 0
    assert schedule.due(begin) and schedule.share(begin) == 1


def test_freezing_ends_a_schedule_with_a_last_choice() -> None:
    assert due(constant(4).frozen_at(9)) == [0, 4, 8, 9]
    assert due(constant(4).frozen_at(0)) == [0]
    assert periodic(4, 1, 9).frozen_at(9) == periodic(4, 1, 9)
    assert one_shot(3).frozen_at(5) == one_shot(3)
    assert gradual(0, 6).frozen_at(6) == gradual(0, 6)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (constant, (0,), "every=0: must be at least 1 update"),
        (periodic, (-2,), "every=-2: must be at least 1 update"),
        (periodic, (2, -1), "begin=-1: must be at least 0"),
        (one_shot, (-1,), "begin=-1: must be at least 0"),
        (periodic, (2, 5, 4), "end=4: must not be before begin=5"),
        (gradual, (5, 4), "end=4: must not be before begin=5"),
        (gradual, (5, 5), "end=5: a gradual schedule needs an end after 5"),
        (gradual, (5, None), "end=None: a gradual schedule needs an end after 5"),
        (gradual(0, 6).frozen_at, (5,), "freeze_at=5: a gradual schedule ends at 6: freeze then"),
        (periodic(2, begin=4).frozen_at, (3,), "freeze_at=3: must not be before begin=4"),
        (constant().frozen_at, (-1,), "freeze_at=-1: must not be before begin=0"),
    ],
)
def test_impossible_schedules_are_refused(make: Any, arguments: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        make(*arguments)
    assert str(error.value) == message
