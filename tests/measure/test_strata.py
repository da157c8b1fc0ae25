"""Rank correlation and means inside strata, on data whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rarefy.core.errors import UsageError
from rarefy.measure.estimates import Interval
from rarefy.measure.strata import adjusted_means, pooled, stratified_trend

BLOCKS, RUNS, UNITS = 4, 12, 5
GROUPS = np.array([0, 0, 0, 1, 1])
LEVELS = np.arange(4)


def confounded(effect: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Counts and qualities that both rise from block to block; ``effect`` of a count inside one."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 2, (BLOCKS, RUNS, UNITS)) + (np.arange(BLOCKS) // 2)[:, None, None]
    height = 10.0 * np.arange(BLOCKS)[:, None, None] + 5.0 * GROUPS
    return x, height + effect * x + generator.normal(0, 0.5, x.shape)


@pytest.fixture
def without_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the time, where only the p-value is asked for."""
    unknown = Interval(np.nan, np.nan, np.nan, 0)
    monkeypatch.setattr("rarefy.measure.strata.bootstrap_interval", lambda *_: unknown)


def test_with_one_stratum_it_is_spearmans_rho() -> None:
    x, y = confounded(0.3)
    found = stratified_trend(pooled(x), pooled(y))
    assert found.rho == pytest.approx(stats.spearmanr(x.ravel(), y.ravel()).statistic)
    assert found.n == BLOCKS * RUNS  # units of one run are not independent
    assert found.low < found.rho < found.high
    assert found.rho_of_means == pytest.approx(1) and found.p_value == pytest.approx(1e-4)


def test_a_trend_that_the_blocks_make_is_not_found_inside_them() -> None:
    assert stratified_trend(*(pooled(values) for values in confounded(0.0))).rho > 0.6
    found = [
        stratified_trend(*confounded(0.0, seed), GROUPS, permutations=99) for seed in range(40)
    ]
    rho = np.array([trend.rho for trend in found])
    assert abs(rho.mean()) < 4 * rho.std() / np.sqrt(40)
    assert sum(trend.p_value <= 0.05 for trend in found) <= 7  # 2 are expected
    assert sum(trend.low > 0 or trend.high < 0 for trend in found) <= 8


@pytest.mark.parametrize("effect", [1.0, -1.0])
def test_a_trend_inside_the_strata_is_found_with_its_sign(effect: float) -> None:
    found = stratified_trend(*confounded(effect), GROUPS)
    assert np.sign(effect) * found.rho > 0.6 and found.p_value < 0.001
    assert found.rho_of_means == pytest.approx(np.sign(effect))
    assert min(abs(found.low), abs(found.high)) > 0.5


@pytest.mark.usefixtures("without_interval")
def test_units_of_one_run_are_not_taken_for_independent_ones() -> None:
    """x and y differ between runs only and have nothing to do with each other: exchanging single
    values would call a chance of 12 runs a certainty of 60 values."""
    small = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        x, y = (np.repeat(generator.normal(size=(1, RUNS, 1)), UNITS, axis=2) for _ in range(2))
        small += stratified_trend(x, y, permutations=99).p_value <= 0.05
    assert small <= 6  # of 40, 2 are expected; independent values would give about 20


def test_what_is_missing_is_left_out() -> None:
    x, y = confounded(1.0)
    y[0, 0] = np.nan
    found = stratified_trend(x, y, GROUPS)
    assert found.n == BLOCKS * RUNS - 1 and found.rho > 0.6
    assert np.isfinite(adjusted_means(x, y, LEVELS, GROUPS).mean).sum() == 3


def test_without_variation_there_is_no_trend() -> None:
    x, y = confounded(1.0)
    for a, b in ((x, np.ones_like(y)), (np.ones_like(x), y), (x, np.full_like(y, np.nan))):
        found = stratified_trend(a, b, GROUPS)
        assert np.isnan([found.rho, found.p_value, found.rho_of_means]).all()


def test_a_stratum_in_which_one_of_them_does_not_vary_is_left_out() -> None:
    x, y = confounded(1.0)
    y[2:] = 7.0  # as good as can be, whatever x is
    found, varying = stratified_trend(x, y, GROUPS), stratified_trend(x[:2], y[:2], GROUPS)
    assert found.rho == pytest.approx(varying.rho) and found.n == 2 * RUNS
    x[:2] = 1.0  # x varies in the other blocks only: nothing is left to compare
    nothing = stratified_trend(x, y, GROUPS)
    assert np.isnan([nothing.rho, nothing.low, nothing.high]).all()
    assert nothing.n == BLOCKS * RUNS


@pytest.mark.usefixtures("without_interval")
def test_chance_is_not_taken_for_a_trend_where_most_values_are_missing() -> None:
    """Few units of two exchanged runs are both there, so that their sums scatter less."""
    small = 0
    for seed in range(60):
        generator = np.random.default_rng(seed)
        x, y = (generator.normal(size=(2, 40, UNITS)) for _ in range(2))
        x[generator.random(x.shape) < 0.8] = np.nan
        small += stratified_trend(x, y, permutations=199).p_value <= 0.05
    assert small <= 8  # of 60, 3 are expected; plain sums would give 24


@pytest.mark.usefixtures("without_interval")
def test_chance_is_not_taken_for_a_trend_where_few_runs_have_few_values() -> None:
    small = 0
    for seed in range(150):
        generator = np.random.default_rng(seed)
        x, y = (generator.normal(size=(1, 6, UNITS)) for _ in range(2))
        x[generator.random(x.shape) < 0.7] = np.nan
        small += stratified_trend(x, y, permutations=199).p_value <= 0.05
    assert small <= 10  # of 150, 7 are expected; 15 if no signs were flipped


def thin(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """200 runs in which quality grows with the count, and one unit of a high count that is bad."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 3, (1, 200, UNITS)).astype(float)
    y = x + generator.normal(0, 0.1, x.shape)
    x[0, :2, 0], y[0, :2, 0] = (4.0, 3.0), -5.0
    return x, y


def test_a_level_that_few_runs_show_is_taken_with_the_one_below() -> None:
    x, y = thin()
    band = adjusted_means(x, y, np.arange(5))
    assert np.isfinite(band.mean).tolist() == [True, True, True, False, False]
    assert band.n.tolist() == [(x == 0).sum(), (x == 1).sum(), (x >= 2).sum(), 0, 0]
    assert band.mean[2] == pytest.approx(y[x >= 2].mean())
    assert stratified_trend(x, y, most=4).rho_of_means == pytest.approx(1)
    x = np.maximum(x, 1.0)
    x[0, 5:9, 0] = 0.0
    lowest = adjusted_means(x, y, np.arange(5))
    assert np.isfinite(lowest.mean).tolist() == [True, False, True, False, False]


def test_adjusted_means_take_the_strata_out_and_plain_ones_do_not() -> None:
    x, y = confounded(2.0)
    adjusted = adjusted_means(x, y, LEVELS, GROUPS)
    np.testing.assert_allclose(np.diff(adjusted.mean[:3]), 2.0, atol=0.4)
    assert np.isnan(adjusted.mean[3]) and adjusted.n[3] == 0  # no such count
    assert (adjusted.low[:3] < adjusted.mean[:3]).all()
    plain = adjusted_means(pooled(x), pooled(y), LEVELS)
    for level in range(3):
        assert plain.mean[level] == pytest.approx(y[x == level].mean())
    assert np.diff(plain.mean[:3]).min() > 5


def test_the_last_level_stands_for_all_from_it_on() -> None:
    x, y = confounded(2.0)
    capped = adjusted_means(pooled(x), pooled(y), [0, 1])
    assert capped.mean[1] == pytest.approx(y[x >= 1].mean()) and capped.n.tolist() == [
        (x == 0).sum(),
        (x >= 1).sum(),
    ]
    assert stratified_trend(x, y, GROUPS, most=1).rho_of_means == pytest.approx(1)


def test_intervals_of_means_cover_the_truth_about_as_often_as_they_say() -> None:
    covered = np.zeros(2)
    for seed in range(200):
        generator = np.random.default_rng(seed)
        x = generator.integers(0, 2, (1, 30, UNITS))
        shared = generator.normal(size=(1, 30, 1))  # what the units of one run have in common
        y = shared + generator.normal(size=x.shape) + x
        band = adjusted_means(x, y, [0, 1])
        covered += (band.low <= [0, 1]) & (band.high >= [0, 1])
    assert (covered >= 178).all() and (covered <= 199).all()  # of 200, 190 are expected


def test_shapes_that_do_not_fit_are_refused() -> None:
    x, y = confounded(1.0)
    with pytest.raises(UsageError, match=r"y=\(4, 12, 4\): x and y must be \(block, run, unit\)"):
        stratified_trend(x, y[:, :, 1:])
    with pytest.raises(UsageError, match=r"groups=\(4,\): must name the group of each of 5 units"):
        stratified_trend(x, y, GROUPS[1:])
