"""Rank correlation and means inside strata, on data whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from rarefy.core.errors import UsageError
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


def test_with_one_stratum_it_is_spearmans_rho() -> None:
    x, y = confounded(0.3)
    found = stratified_trend(pooled(x), pooled(y))
    assert found.rho == pytest.approx(stats.spearmanr(x.ravel(), y.ravel()).statistic)
    assert found.n == x.size and found.low < found.rho < found.high
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
    assert found.n == x.size - UNITS and found.rho > 0.6
    assert np.isfinite(adjusted_means(x, y, LEVELS, GROUPS).mean).sum() == 3


def test_without_variation_there_is_no_trend() -> None:
    x, y = confounded(1.0)
    for a, b in ((x, np.ones_like(y)), (np.ones_like(x), y), (x, np.full_like(y, np.nan))):
        found = stratified_trend(a, b, GROUPS)
        assert np.isnan([found.rho, found.p_value, found.rho_of_means]).all()


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
