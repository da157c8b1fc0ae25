"""What a scoring will cost, told before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rarefy.measure.influence.forecast import (
    Rates,
    calibrate,
    forecast_neighbours,
    forecast_scores,
)
from rarefy.measure.influence.passes import score_classes

RATES = Rates(flops=1e11, values=1e9, search_flops=2e11, pairs=1e9)


def test_flops_of_both_routes():
    wide = forecast_scores(np.array([5000] * 10), 3072, itemsize=1)
    # n^2 d a class and a little for the diagonal tiles, distances in 256 directions
    assert wide.flops == pytest.approx(10 * 5000**2 * 3072, rel=0.25)
    tall = forecast_scores(np.array([100_000] * 10), 512)
    assert tall.flops == pytest.approx(3 * 1e6 * 512**2, rel=0.01)
    assert tall.seconds is None
    timed = forecast_scores(np.array([100_000] * 10), 512, rates=RATES)
    assert timed.seconds == pytest.approx(tall.flops / 1e11 + 2 * 1e6 * 512 / 1e9)


def test_less_memory_means_more_reading():
    much = forecast_scores(np.array([3000] * 4), 2000, rates=RATES)
    little = forecast_scores(np.array([3000] * 4), 2000, memory=40 << 20, rates=RATES)
    assert little.memory <= 40 << 20 < much.memory
    read = [each.seconds - each.flops / RATES.flops for each in (much, little)]
    assert read[1] > read[0]


def test_the_memory_is_that_of_the_scoring():
    features, labels = np.random.default_rng(0).standard_normal((90, 6)), np.arange(90) % 3
    told = forecast_scores(np.bincount(labels), 6, itemsize=8)
    assert told.memory == score_classes(features, labels, 3).memory


def test_neighbours():
    told = forecast_neighbours(60_000, 20_000, 784, dimensions=64, rates=RATES)
    search = 2 * 60_000 * 20_000 * 64
    projection = 2 * 80_000 * 784 * 64
    assert told.flops == search + projection
    expected = search / 2e11 + 60_000 * 20_000 / 1e9 + projection / 1e11 + 80_000 * 784 / 1e9
    assert told.seconds == pytest.approx(expected)
    assert forecast_neighbours(10, 20, 5).flops == 2 * 10 * 20 * 5


def test_rates_are_measured(threads):
    rates = calibrate(torch.device("cpu"))
    # a core of today does 1e10 to 1e11 float64 operations a second; far outside is a wrong count
    assert 1e8 < rates.flops < 1e13 and 1e8 < rates.search_flops < 1e14
    assert 1e6 < rates.values < 1e12 and 1e6 < rates.pairs < 1e12
