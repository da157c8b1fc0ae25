"""From estimates to verdicts: every judge can say each word."""

from __future__ import annotations

import numpy as np
import pytest

from rarefy.core.errors import UsageError
from rarefy.measure.statistics import (
    Interval,
    Slope,
    Trend,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_fraction,
    judge_slope,
    judge_trend,
    judge_upper_exponent,
    mean_interval,
)

IDENTITY = ("C1", "toy", "tiny", "default")


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---------------------------------------------------------------------------------- judges


def slope(low: float, high: float, n: int = 10, points: int = 5) -> Slope:
    return Slope((low + high) / 2, low, high, n, points)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.95, 1.05, "holds"),
        (0.85, 1.05, "inconclusive"),
        (0.5, 1.5, "inconclusive"),
        (1.2, 1.4, "fails"),
        (0.5, 0.6, "fails"),
        (np.nan, np.nan, "inconclusive"),
    ],
)
def test_judge_slope(low: float, high: float, outcome: str) -> None:
    verdict = judge_slope(IDENTITY, slope(low, high), predicted=1.0, tolerance=0.1, note="why")
    assert verdict.outcome == outcome
    assert verdict.identity == IDENTITY
    assert verdict.n == 10
    assert verdict.note == "why"
    if np.isfinite(low):
        assert verdict.measured == f"slope {(low + high) / 2:.3g} [{low:.3g}, {high:.3g}]"
        assert verdict.interval == (low, high)
    else:
        assert verdict.interval is None


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(-3, -2, "holds"), (0.2, 0.4, "holds"), (0.4, 0.6, "inconclusive"), (0.6, 0.7, "fails")],
)
def test_judge_upper_exponent(low: float, high: float, outcome: str) -> None:
    assert judge_upper_exponent(IDENTITY, slope(low, high), bound=0.5).outcome == outcome


@pytest.mark.parametrize(
    ("trend", "outcome"),
    [
        (Trend(0.6, 0.001, 1.0, 90, 0.45, 0.72), "holds"),
        (Trend(0.6, 0.001, 0.3, 90, 0.45, 0.72), "inconclusive"),
        (Trend(0.2, 0.001, 1.0, 90, 0.0, 0.39), "inconclusive"),
        (Trend(0.05, 0.001, 1.0, 9000, 0.03, 0.07), "fails"),
        (Trend(0.4, 0.2, 0.4, 9, -0.3, 0.8), "inconclusive"),
        (Trend(-0.6, 0.001, -1.0, 90, -0.72, -0.45), "fails"),
        (Trend(np.nan, np.nan, np.nan, 0), "inconclusive"),
    ],
)
def test_judge_trend(trend: Trend, outcome: str) -> None:
    up = judge_trend(IDENTITY, trend, "increasing", minimum_rho=0.3)
    assert up.outcome == outcome
    assert up.n == trend.n
    mirrored = Trend(
        -trend.rho, trend.p_value, -trend.rho_of_means, trend.n, -trend.high, -trend.low
    )
    assert judge_trend(IDENTITY, mirrored, "decreasing", minimum_rho=0.3).outcome == outcome
    if trend.n == 0:
        assert up.note == "no usable values"


@pytest.mark.parametrize(
    ("samples", "outcome"),
    [
        ([1.0, 1.01, 0.99, 1.0], "holds"),
        ([0.1, 0.1, 0.1], "fails"),
        ([0.0, 2.0, 1.0], "inconclusive"),
        (Interval(1.0, 0.99, 1.01, 5), "holds"),
        ([1.0], "inconclusive"),
        ([], "inconclusive"),
        ([np.nan, np.nan], "inconclusive"),
    ],
)
def test_judge_equal(samples: list[float], outcome: str) -> None:
    verdict = judge_equal(IDENTITY, samples, predicted=1.0, tolerance=0.1)
    assert verdict.outcome == outcome
    if outcome == "inconclusive" and verdict.n < 2:
        assert verdict.note in ("no usable values", "one value has no interval")


def test_equal_samples_are_not_undone_by_rounding() -> None:
    assert judge_equal(IDENTITY, np.full(7, 0.1 + 0.2), 0.3, tolerance=0.0).outcome == "holds"


@pytest.mark.parametrize(
    ("successes", "total", "outcome"),
    [(100, 100, "holds"), (90, 100, "inconclusive"), (50, 100, "fails"), (0, 0, "inconclusive")],
)
def test_judge_fraction(successes: int, total: int, outcome: str) -> None:
    verdict = judge_fraction(IDENTITY, successes, total, at_least=0.9)
    assert verdict.outcome == outcome
    assert verdict.n == total
    assert ("no cases" in verdict.note) == (total == 0)


@pytest.mark.parametrize(
    ("side", "samples", "outcome"),
    [
        ("at_least", [2.0, 2.1, 1.9], "holds"),
        ("at_most", [2.0, 2.1, 1.9], "fails"),
        ("at_least", [0.5, 1.6, 1.1], "inconclusive"),
        ("at_most", [0.2, 0.3, 0.1], "holds"),
        ("at_least", [0.2, 0.3, 0.1], "fails"),
        ("at_most", [], "inconclusive"),
    ],
)
def test_judge_bound(side: str, samples: list[float], outcome: str) -> None:
    assert judge_bound(IDENTITY, samples, 1.0, side).outcome == outcome  # type: ignore[arg-type]


def test_wrong_words_are_refused() -> None:
    with pytest.raises(UsageError, match="'increasing' or 'decreasing'"):
        judge_trend(IDENTITY, Trend(0, 1, 0, 0), "upwards")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'at_least' or 'at_most'"):
        judge_bound(IDENTITY, [1.0], 1.0, "above")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"0\.\.3"):
        judge_fraction(IDENTITY, 4, 3, 0.5)
    with pytest.raises(UsageError, match="direction='up': must be 'positive' or 'negative'"):
        judge_difference(IDENTITY, [1.0, 2.0], "up")  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------- differences


@pytest.mark.parametrize(
    ("samples", "outcome", "note"),
    [
        ([1.0, 1.2, 0.9], "holds", ""),
        ([1.0, 1.0, 1.0], "holds", ""),
        ([-1.0, -1.2, -0.9], "fails", ""),
        ([1.0, -0.5, 0.2], "inconclusive", ""),
        ([0.0, 0.0, 1e-9], "inconclusive", ""),
        ([0.0, 0.0, 0.0], "fails", "no effect at all"),
        ([0.0, np.nan, 0.0], "fails", "no effect at all"),
        ([0.0], "inconclusive", "one value has no interval"),
        ([5.0], "inconclusive", "one value has no interval"),
        ([], "inconclusive", "no usable values"),
        ([np.nan, np.inf], "inconclusive", "no usable values"),
        (Interval(0.3, 0.1, 0.5, 9), "holds", ""),
        (Interval(0.3, 0.0, 0.5, 9), "inconclusive", ""),
        (Interval(-0.3, -0.5, -0.1, 9), "fails", ""),
        (Interval(0.0, 0.0, 0.0, 9), "fails", "no effect at all"),
        (Interval(0.0, np.nan, np.nan, 1), "inconclusive", "one value has no interval"),
    ],
)
def test_judge_difference(samples: list[float] | Interval, outcome: str, note: str) -> None:
    verdict = judge_difference(IDENTITY, samples, "positive")
    assert (verdict.outcome, verdict.note) == (outcome, note)
    assert verdict.identity == IDENTITY and verdict.predicted == "positive difference"
    mirrored = (
        Interval(-samples.mean, -samples.high, -samples.low, samples.n)
        if isinstance(samples, Interval)
        else [-value for value in samples]
    )
    other = judge_difference(IDENTITY, mirrored, "negative", note="why")
    assert other.outcome == outcome and other.n == verdict.n
    assert other.note == ("why; " + note if note else "why")


def test_a_difference_is_shown_with_its_interval_and_judged_at_its_level() -> None:
    samples = [1.0, 2.0, 4.0]
    verdict = judge_difference(IDENTITY, samples, "positive")
    mean, low, high, n = mean_interval(samples)
    assert verdict.interval == (low, high) and verdict.n == n == 3
    assert verdict.measured == f"mean {mean:.3g} [{low:.3g}, {high:.3g}]"
    assert verdict.outcome == "inconclusive"
    assert judge_difference(IDENTITY, samples, "positive", level=0.8).outcome == "holds"
    alone = judge_difference(IDENTITY, [5.0], "negative")
    assert alone.measured == "mean 5" and alone.interval is None
    nothing = judge_difference(IDENTITY, [], "negative")
    assert nothing.measured == "mean undefined" and nothing.interval is None and nothing.n == 0
