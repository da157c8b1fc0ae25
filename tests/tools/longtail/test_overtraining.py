"""When a training was too long: certain, by luck, and never looked at."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from rarefy.measure.statistics import mean_interval
from rarefy.tools.longtail.overtraining import (
    CHANCE,
    WORTH_A_WORD,
    Course,
    certainly_fallen,
    courses,
    overtraining_note,
)
from rarefy.tools.longtail.readings import PERCENT
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import PretrainingHistory

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


@pytest.mark.slow
def test_where_nothing_falls_a_fall_is_seldom_called_certain() -> None:
    draw = np.random.default_rng(0)
    called = [
        only(
            watched({"simclr": draw.normal(0.6, 0.02, (4, 10)).tolist()}, tuple(range(10)))
        ).certain
        for _ in range(400)
    ]
    assert np.mean(called) <= CHANCE + 2 * np.sqrt(CHANCE * (1 - CHANCE) / len(called))


METHOD = Method.parse("simclr")
LABELS = np.repeat(np.arange(10), 20)


def answers(draw: np.random.Generator, looks: int, fall: float = 0.0) -> np.ndarray:
    """(look, image): some images are easy, each look has its own luck; ``fall``: what all images
    have become harder by at the end, from the middle on."""
    easy = draw.normal(0.5, 1.5, len(LABELS))
    harder = fall * np.clip(np.linspace(-1, 1, looks), 0, 1)[:, None]
    return (easy - harder + draw.normal(size=(looks, len(LABELS))) > 0).astype(float)


def falls(right: np.ndarray) -> list[bool]:
    """At each look after the first, as a training is watched: against the best one before."""
    best, found = right[0], []
    for now in right[1:]:
        if now.mean() >= best.mean():  # (classes are equally large)
            best, fallen = now, False
        else:
            fallen = certainly_fallen(best, now, LABELS, len(right))
        found.append(fallen)
    return found


def test_a_flat_training_is_seldom_called_fallen_and_never_stopped() -> None:
    draw, runs, looks = np.random.default_rng(1), 400, 20
    seen = [falls(answers(draw, looks)) for _ in range(runs)]
    allowed = CHANCE + 2 * np.sqrt(CHANCE * (1 - CHANCE) / runs)
    assert np.mean([any(one) for one in seen]) <= allowed
    stopped = [any(a and b for a, b in itertools.pairwise(one)) for one in seen]
    assert np.mean(stopped) <= CHANCE / 5  # (twice in a row is rarer still)


def test_a_planted_fall_is_found_and_a_slow_one_by_more_images() -> None:
    draw = np.random.default_rng(2)
    seen = [falls(answers(draw, 20, fall=3.0)) for _ in range(50)]
    assert np.mean([any(a and b for a, b in itertools.pairwise(one)) for one in seen]) > 0.9


def test_pairs_of_looks_share_the_chance_and_a_tiny_fall_is_nothing() -> None:
    best, now = np.ones(200), np.r_[np.zeros(8), np.ones(192)]
    # 8 images, all in one direction: 8 / sqrt(8) = 2.83 standard errors
    quantiles = {
        looks: -NormalDist().inv_cdf(CHANCE / (looks * (looks - 1) / 2)) for looks in (2, 8)
    }
    assert quantiles[2] < 8**0.5 < quantiles[8]
    assert certainly_fallen(best, now, LABELS, 2) and not certainly_fallen(best, now, LABELS, 8)
    assert not certainly_fallen(now, best, LABELS, 2)
    many = np.repeat(np.arange(2), 5000)
    assert not certainly_fallen(np.ones(10_000), np.r_[np.zeros(40), np.ones(9960)], many, 2)
    assert certainly_fallen(np.ones(10_000), np.r_[np.zeros(60), np.ones(9940)], many, 2)


def test_one_training_by_itself_says_what_it_lost() -> None:
    seen = {"knn": [0.5, 0.65, 0.6], "fallen": [0.0, 0.0, 1.0]}
    said = overtraining_note(METHOD, (10, 20, 30), PretrainingHistory(watched=seen))
    assert said == (
        "over-trained: held-out kNN accuracy peaked at 65.0 % (epoch 20) and ended at 60.0 %; "
        "fewer epochs, or masks (branches:0.1), may keep more"
    )
    masked = Method.parse("branches:0.3")
    assert "fewer epochs may keep more" in overtraining_note(
        masked, (10, 20, 30), PretrainingHistory(watched=seen)
    )
    stopped = PretrainingHistory(watched=seen, stopped_epoch=30)
    assert overtraining_note(METHOD, (10, 20, 30, 40), stopped) == (
        "stopped after epoch 30: held-out kNN accuracy fell for certain, from 65.0 % (epoch 20, "
        "which is kept) to 60.0 %"
    )
    fine = {"knn": [0.5, 0.4, 0.6], "fallen": [0.0, 1.0, 0.0]}
    for watched in ({}, fine, {"knn": [math.nan]}):
        assert overtraining_note(METHOD, (10, 20, 30), PretrainingHistory(watched=watched)) == ""
