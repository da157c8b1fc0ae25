"""When a training was too long: certain, by luck, and never looked at."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.statistics import mean_interval
from rarefy.tools.longtail.overtraining import (
    CHANCE,
    WORTH_A_WORD,
    Course,
    courses,
    overtraining_note,
)
from rarefy.tools.longtail.readings import PERCENT
from rarefy.tools.longtail.watching import _error
from rarefy.train.simclr.method import Method

LOOKS = (10, 20, 30, 40)


def watched(by_way: dict[str, list[list[float]]], looks: tuple[int, ...] = LOOKS) -> xr.Dataset:
    """(seed, look) of every method."""
    values = np.array(list(by_way.values()))[None, None]
    return xr.Dataset(
        {"watched_knn": (("images", "rho", "algorithm", "seed", "watched_epoch"), values)},
        coords={
            **{"images": ["long-tail"], "rho": [20.0], "algorithm": list(by_way)},
            "watched_epoch": list(looks),
        },
    )


def only(found: xr.Dataset) -> Course:
    (one,) = courses(found)
    return one


FALLS = [[0.50, 0.70, 0.69, 0.60], [0.40, 0.61, 0.60, 0.50], [0.45, 0.65, 0.66, 0.56]]


def test_a_fall_in_every_seed_is_named_with_where_it_began() -> None:
    one = only(watched({"simclr": FALLS}))
    assert one.certain and (one.best_epoch, one.fall.n) == (20, 3)
    assert one.best == pytest.approx(100 * np.mean([0.70, 0.61, 0.65]))
    assert one.last == pytest.approx(100 * np.mean([0.60, 0.50, 0.56]))
    assert one.fall.mean == pytest.approx(one.best - one.last)
    words = one.words()
    assert "65.3 % (epoch 20) and ended at 55.3 %" in words
    assert "fewer epochs, or masks (branches:0.1), may keep more" in words
    assert "fewer epochs may keep more" in only(watched({"branches:0.3": FALLS})).words()


def test_a_certain_fall_is_named_before_a_larger_one_that_may_be_luck() -> None:
    wild = [[0.95, 0.64, 0.6, 0.6], [0.50, 0.55, 0.5, 0.51], [0.70, 0.59, 0.5, 0.55]]
    one = only(watched({"simclr": wild}))
    assert one.certain and one.best_epoch == 20 and one.fall.mean == pytest.approx(4.0)


def test_a_fall_that_is_certain_and_tiny_is_no_word_worth() -> None:
    fall = WORTH_A_WORD / PERCENT
    for size, said in ((0.9 * fall, False), (1.1 * fall, True)):
        one = only(watched({"simclr": [[0.5, 0.5 + size, 0.5, 0.5]] * 8}))
        assert one.certain is said and one.fall.low > 0 and one.best_epoch == 20


def test_the_interval_knows_how_often_one_looked() -> None:
    one = only(watched({"simclr": FALLS}))
    falls = 100 * np.array([0.10, 0.11, 0.09])
    plain, corrected = (mean_interval(falls, level) for level in (0.95, 1 - CHANCE / 3))
    assert (one.fall.low, one.fall.high) == pytest.approx((corrected.low, corrected.high))
    assert corrected.low < plain.low


def test_a_rise_too_few_seeds_and_one_look_are_never_called_a_fall() -> None:
    rising = only(watched({"simclr": [[0.1, 0.2, 0.3, 0.4]] * 3}))
    assert not rising.certain and rising.best_epoch == 40 and rising.fall.mean == 0
    for seeds in (1, 2):  # (two seeds that fall by the same have an interval of no width)
        alone = only(watched({"simclr": FALLS[:1] * seeds}))
        assert not alone.certain and (alone.best_epoch, alone.fall.n) == (20, seeds)
    assert list(courses(watched({"simclr": [[0.5]] * 3}, (40,)))) == []


def test_trainings_that_stopped_are_left_out() -> None:
    lost = [0.5, np.nan, np.nan, np.nan]
    ways = {"simclr": [*FALLS, lost], "pixels": [[np.nan] * 4] * 4}
    one = only(watched(ways))  # (without training there is nothing to see on the way)
    assert one.method == "simclr" and one.fall.n == 3 and one.certain


@given(st.integers(0, 10_000))
def test_shifting_all_of_a_seed_changes_no_fall(seed: int) -> None:
    """Seeds have easier and harder orders of the classes."""
    draw = np.random.default_rng(seed)
    base = draw.uniform(0.2, 0.8, (4, 4))
    moved = base + draw.uniform(-0.2, 0.2, (4, 1))
    one, two = only(watched({"simclr": base.tolist()})), only(watched({"simclr": moved.tolist()}))
    assert one.best_epoch == two.best_epoch and one.certain == two.certain
    assert one.fall.low == pytest.approx(two.fall.low)


def test_where_nothing_falls_a_fall_is_seldom_called_certain() -> None:
    draw = np.random.default_rng(0)
    called = [
        only(
            watched({"simclr": draw.normal(0.6, 0.02, (4, 10)).tolist()}, tuple(range(10)))
        ).certain
        for _ in range(400)
    ]
    assert np.mean(called) <= CHANCE + 2 * np.sqrt(CHANCE * (1 - CHANCE) / len(called))


def test_one_training_by_itself_is_judged_by_its_images() -> None:
    method, knn = Method.parse("simclr"), (0.50, 0.65, 0.60)
    said = overtraining_note(method, (10, 20, 30), knn, (0.01, 0.01, 0.01))
    assert "65.0 % (epoch 20) and ended at 60.0 %; fewer epochs, or masks" in said
    # two looks to choose from: 2.24 standard errors of a difference are allowed to luck
    for error, word in ((0.0157, True), (0.0159, False)):
        assert bool(overtraining_note(method, (10, 20, 30), knn, (error,) * 3)) is word
    assert (
        overtraining_note(method, (10, 20), (0.504, 0.5), (1e-6, 1e-6)) == ""
    )  # certain, and nothing
    assert overtraining_note(method, (10, 20), (0.5, 0.6), (0.0, 0.0)) == ""
    assert (
        overtraining_note(method, (10,), (0.5,), (0.01,))
        == overtraining_note(method, (), (), ())
        == ""
    )
    assert overtraining_note(method, (10, 20), (float("nan"),) * 2, (float("nan"),) * 2) == ""
    # (a checkpoint from before errors were written down)
    assert overtraining_note(method, (10, 20), (0.9, 0.5), (0.01,)) == ""


def test_the_error_of_a_look_is_that_of_drawing_other_images() -> None:
    """Closed form against Monte Carlo; classes of any size, one that is always right."""
    draw, classes = np.random.default_rng(0), np.array([200, 50, 20])
    chances = np.array([0.9, 0.5, 0.3])
    labels = torch.repeat_interleave(torch.arange(3), torch.tensor(classes))
    shares = draw.binomial(classes, chances, (20_000, 3)) / classes
    told = [_error(torch.tensor(row), labels) for row in shares[:200]]
    assert np.mean(told) == pytest.approx(shares.mean(axis=1).std(), rel=0.05)
    assert _error(torch.ones(3, dtype=torch.float64), labels) > 0
    absent = torch.tensor([0.9, float("nan"), 0.3], dtype=torch.float64)
    some = labels[labels != 1]
    two = np.sqrt(sum(p * (1 - p) / n for p, n in ((0.9, 200), (0.3, 20)))) / 2
    assert _error(absent, some) == pytest.approx(two, rel=0.05)
