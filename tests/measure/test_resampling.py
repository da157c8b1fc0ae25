"""Intervals from overlapping parts of one data set are about the population."""

from __future__ import annotations

import numpy as np
import pytest

from rarefy.measure.resampling import resampled_band, resampled_interval


@pytest.mark.parametrize(("share", "seeds"), [(0.5, 10), (0.2, 5)])
def test_intervals_cover_the_population_although_draws_share_samples(
    share: float, seeds: int
) -> None:
    """Means of subsamples of 100 normal numbers; the truth is 0."""
    generator = np.random.default_rng(1)
    covered, plain = [], []
    for _ in range(600):
        numbers = generator.normal(size=100)
        drawn = [generator.permutation(numbers)[: round(100 * share)].mean() for _ in range(seeds)]
        found = resampled_interval(drawn, share)
        assert found.n == seeds and found.mean == pytest.approx(np.mean(drawn))
        covered.append(found.low <= 0 <= found.high)
        naive = resampled_interval(drawn, 1.0)
        plain.append(naive.low <= 0 <= naive.high)
    # 95 % with a standard error of 0.9 points; plain intervals are far too narrow
    assert 0.92 < np.mean(covered) < 0.98
    assert np.mean(plain) < 0.9


def test_intervals_of_too_few_draws_have_no_ends() -> None:
    assert np.isnan(resampled_interval([1.0, np.nan], 0.5).low)
    assert resampled_interval([], 0.5).n == 0
    band = resampled_band(np.array([[1.0, 2.0], [3.0, np.nan]]), 0.5)
    assert band.n.tolist() == [2, 1] and np.isnan(band.low[1]) and band.low[0] < 2 < band.high[0]
