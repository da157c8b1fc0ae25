"""Slopes and ranks recover what was put in, and intervals cover it."""

from __future__ import annotations

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.measure.statistics import loglog_slope, spearman_trend
from rarefy.measure.trends import row_slopes


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---------------------------------------------------------------------------------- slopes


@pytest.mark.parametrize("exponent", [-2.0, 0.5, 1.0])
def test_loglog_slope_recovers_an_exponent(exponent: float) -> None:
    x = np.geomspace(0.1, 10, 8)
    y = 3 * x**exponent * generator(4).lognormal(0, 0.3, (60, 8))
    slope = loglog_slope(x, y)
    assert slope.low < exponent < slope.high
    assert slope.high - slope.low < 0.2
    assert (slope.n_samples, slope.n_points) == (60, 8)


def test_loglog_slope_drops_what_has_no_logarithm_and_says_so() -> None:
    x = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0])
    y = np.tile(x**2, (5, 1)) * np.arange(1, 6)[:, None]
    y[:, 3] = 0.0
    y[:, 4] = np.nan
    y[0, 5] = np.inf
    slope = loglog_slope(x, y)
    assert slope.n_points == 3
    # sample 0 is missing at x = 16 only, which tilts the means by a known amount
    means = np.array([3.0, 12.0, 256 * 3.5])
    assert slope.value == pytest.approx(np.polyfit(np.log([1, 2, 16]), np.log(means), 1)[0])


def test_slopes_without_data_are_undefined_not_errors() -> None:
    for y in (np.full((4, 3), np.nan), np.zeros((4, 3)), np.empty((0, 3))):
        slope = loglog_slope([1.0, 2.0, 3.0], y)
        assert np.isnan([slope.value, slope.low, slope.high]).all()
        assert slope.n_points == 0
    single = loglog_slope([1.0, 2.0, 3.0], [[1.0, 2.0, 3.0]])
    assert single.value == pytest.approx(1.0)
    assert np.isnan(single.low), "one sample cannot say how sure it is"
    same_x = loglog_slope([2.0, 2.0], [[1.0, 2.0], [1.0, 3.0]])
    assert np.isnan(same_x.value)


def test_slope_intervals_cover() -> None:
    x = np.array([1.0, 2.0, 4.0, 8.0])
    source = generator(5)
    covered = 0
    for _ in range(1000):
        y = x * source.gamma(20.0, 1 / 20.0, (12, 4))
        slope = loglog_slope(x, y, resamples=400)
        covered += slope.low <= 1 <= slope.high
    assert 0.90 < covered / 1000 < 0.99


def test_every_row_has_a_slope_of_its_own() -> None:
    x = np.arange(5.0)
    rows = np.stack([1.5 + 0.25 * x, (x - 2) ** 2, np.where(x < 4, -x, np.nan)])
    np.testing.assert_allclose(row_slopes(x, rows), [0.25, 0.0, -1.0], atol=1e-12)
    assert np.isnan(row_slopes(x, np.where(x == 1, x, np.nan)[None]))


def test_wrong_shape_is_named() -> None:
    with pytest.raises(UsageError, match=r"shape must be \(samples, 3\)"):
        loglog_slope([1, 2, 3], np.ones((3, 2)))


# ---------------------------------------------------------------------------------- trends


def test_spearman_trend_of_monotone_data() -> None:
    x = np.linspace(0.1, 1, 10)
    y = np.exp(3 * x) + generator(6).normal(0, 0.5, (20, 10))
    trend = spearman_trend(x, y, permutations=999)
    assert trend.rho > 0.9
    assert trend.p_value == pytest.approx(1 / 1000)
    assert trend.rho_of_means == pytest.approx(1.0)
    assert trend.n == 200
    assert trend.low < trend.rho < trend.high
    assert spearman_trend(x, -y, permutations=99).rho == pytest.approx(-trend.rho)


def test_spearman_agrees_with_scipy() -> None:
    from scipy import stats

    y = generator(7).integers(0, 5, (6, 9)).astype(float)
    y[1, 2] = y[4, 0] = np.nan
    x = np.arange(9.0)
    there = np.isfinite(y)
    expected = stats.spearmanr(np.broadcast_to(x, y.shape)[there], y[there])
    trend = spearman_trend(x, y)
    assert trend.rho == pytest.approx(expected.statistic)
    assert trend.p_value == pytest.approx(expected.pvalue, abs=0.02)
    assert trend.n == 52


@pytest.mark.quick("False")
@pytest.mark.parametrize("within_rows", [False, True])
def test_permutation_p_value_is_uniform_under_the_null(within_rows: bool) -> None:
    source = generator(8)
    p_values = []
    for _ in range(200):
        y = source.normal(size=(4, 5))
        y[0, 1] = np.nan
        if within_rows:
            # whole rows shifted together: only exchange inside a row is right
            y = y + 3 * source.normal(size=(4, 1))
        p_values.append(
            spearman_trend(np.arange(5.0), y, permutations=99, within_rows=within_rows).p_value
        )
    p = np.sort(p_values)
    gap = np.abs(p - (np.arange(200) + 0.5) / 200).max()
    assert gap < 0.115, "Kolmogorov-Smirnov at 1 %"


def test_rows_that_share_draws_need_permutation_inside_them() -> None:
    y = 100 * generator(9).normal(size=(12, 1)) + np.arange(4.0)
    assert spearman_trend(np.arange(4.0), y, within_rows=True, permutations=999).p_value < 0.01
    assert spearman_trend(np.arange(4.0), y, within_rows=False, permutations=999).p_value > 0.3


def test_trend_of_nothing_is_undefined() -> None:
    for y in (np.full((3, 4), np.nan), np.ones((3, 4)), np.empty((0, 4))):
        assert np.isnan(spearman_trend(np.arange(4.0), y).rho)


def test_a_trend_inside_rows_counts_rows_and_bootstraps_them() -> None:
    """Values of one seed that share draws are not so many samples more."""
    rng = np.random.default_rng(3)
    x = np.arange(6.0)
    own = rng.normal(size=(40, 1))  # what a row's values share
    y = 0.3 * x + own + 0.1 * rng.normal(size=(40, 6))
    found = spearman_trend(x, y, within_rows=True, permutations=199)
    assert found.n == 40
    rhos = []
    for _ in range(300):
        again = 0.3 * x + rng.normal(size=(40, 1)) + 0.1 * rng.normal(size=(40, 6))
        rhos.append(spearman_trend(x, again, permutations=1).rho)
    assert found.high - found.low == pytest.approx(4 * np.std(rhos), rel=0.5)
    assert found.low < found.rho < found.high
    y[0] = np.nan
    assert spearman_trend(x, y, within_rows=True, permutations=9).n == 39
    assert spearman_trend(x, np.ones((4, 6)), within_rows=True).n == 4
