"""Means and shares recover what was put in, and intervals cover it."""

from __future__ import annotations

import numpy as np
import pytest

from rarefy.measure.estimates import SEED, bootstrap_ends
from rarefy.measure.statistics import bootstrap_interval, mean_band, mean_interval, wilson_interval


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_mean_interval_is_students_and_leaves_missing_values_out() -> None:
    mean, low, high, n = mean_interval([1.0, 2.0, np.nan, 3.0, np.inf])
    assert (mean, n) == (2.0, 3)
    # t quantile 4.3027 with two degrees of freedom, standard error 1/sqrt(3)
    assert high - 2 == pytest.approx(4.302653 / np.sqrt(3), rel=1e-6)
    assert 2 - low == pytest.approx(high - 2)


@pytest.mark.parametrize(("samples", "n"), [([], 0), ([np.nan], 0), ([3.0], 1)])
def test_mean_interval_without_enough_data_has_no_ends(samples: list[float], n: int) -> None:
    interval = mean_interval(samples)
    assert interval.n == n
    assert np.isnan([interval.low, interval.high]).all()


def test_mean_band_follows_its_axis() -> None:
    samples = generator().normal(size=(7, 5))
    samples[2, 1] = np.nan
    band = mean_band(samples, axis=0)
    for point in range(5):
        assert mean_interval(samples[:, point]) == pytest.approx(
            (band.mean[point], band.low[point], band.high[point], band.n[point])
        )
    across = mean_band(samples.T, axis=1)
    np.testing.assert_allclose(across.low, band.low)


def test_mean_interval_covers_at_its_level() -> None:
    samples = generator(1).exponential(size=(2000, 40))
    band = mean_band(samples, axis=1, level=0.9)
    covered = np.mean((band.low <= 1) & (band.high >= 1))
    assert 0.86 < covered < 0.92


@pytest.mark.parametrize("count", [3, 8])
def test_bootstrap_interval_covers_even_with_few_samples(count: int) -> None:
    draws = generator(2).normal(size=(300, count))
    covered = 0
    for samples in draws:
        interval = bootstrap_interval(samples, lambda v: v.mean(axis=1), resamples=300)
        covered += interval.low <= 0 <= interval.high
    assert 0.90 < covered / 300 < 0.99


def test_bootstrap_interval_keeps_a_sample_together_and_repeats_itself() -> None:
    samples = np.array([[1.0, 101.0], [2.0, 102.0], [3.0, 103.0]])
    # both numbers of a sample are always drawn together: their difference never varies
    interval = bootstrap_interval(samples, lambda v: np.mean(v[..., 1] - v[..., 0], axis=1))
    assert interval == (100.0, 100.0, 100.0, 3)
    noise = generator(3).normal(size=30)
    median = [bootstrap_interval(noise, lambda v: np.median(v, axis=1)) for _ in range(2)]
    assert median[0] == median[1]
    assert median[0] != bootstrap_interval(noise, lambda v: np.median(v, axis=1), seed=1)
    assert bootstrap_interval([], lambda v: v.mean(axis=1)).n == 0


def test_bootstrap_interval_draws_as_one_resample_at_a_time_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rarefy.measure.estimates._CHUNK", 50)  # several chunks
    for n in (4, 12):  # few resamples differ, or most
        samples, draw = generator(n).normal(size=n), np.random.default_rng(SEED)
        one = [np.sort(samples[np.sort(draw.integers(0, n, n))]).mean() for _ in range(300)]
        ends = bootstrap_ends(float(samples.mean()), np.array(one), 0.95, n)
        found = bootstrap_interval(samples, lambda v: v.mean(axis=1), resamples=300)
        assert found[1:3] == pytest.approx(ends, rel=1e-12)


def test_wilson_interval_known_values() -> None:
    assert wilson_interval(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson_interval(0, 10)[0] == 0.0
    assert np.isnan(wilson_interval(0, 0)).all()
