"""From estimates to verdicts: one judge per kind of claim.

The estimates themselves (``rarefy.measure.estimates``) are importable from here too: a study needs
this one module. Every judge takes the verdict's identity first, never raises for lack of data (the
outcome is then ``inconclusive`` and the note says why) and always sets ``n``.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.contracts import Verdict
from rarefy.core.errors import bad_value
from rarefy.core.text import joined
from rarefy.measure.estimates import (
    Band,
    Interval,
    bootstrap_interval,
    finite_mean,
    mean_band,
    mean_interval,
    wilson_interval,
)
from rarefy.measure.trends import (
    Slope,
    Trend,
    loglog_slope,
    spearman_trend,
)

__all__ = [
    "Band",
    "Identity",
    "Interval",
    "Slope",
    "Trend",
    "bootstrap_interval",
    "finite_mean",
    "judge_bound",
    "judge_difference",
    "judge_equal",
    "judge_fraction",
    "judge_slope",
    "judge_trend",
    "judge_upper_exponent",
    "loglog_slope",
    "mean_band",
    "mean_interval",
    "spearman_trend",
    "wilson_interval",
]

Identity = tuple[str, str, str, str]
"""(claim, study, scale, setting): what a verdict is about."""


BIG_O, OMEGA = 4.0, 0.25
"""How constants hidden in O(.) and Omega(.) are read, in every study; fixed before looking."""
MEANS_FOLLOW = 0.5
"""Least Spearman rho of the means for a trend to count as one."""


def judge_trend(
    identity: Identity,
    trend: Trend,
    direction: Literal["increasing", "decreasing"],
    alpha: float = 0.01,
    minimum_rho: float = 0.0,
    note: str = "",
) -> Verdict:
    """Holds: significant in the claimed direction, at least ``minimum_rho`` strong, and the means
    follow it too (their rho at least ``MEANS_FOLLOW``): many samples make a rise that soon levels
    off significant, and a claim that something grows is about the means. Fails: significant the
    other way, or certainly weaker than ``minimum_rho``."""
    if direction not in ("increasing", "decreasing"):
        raise bad_value("direction", direction, "must be 'increasing' or 'decreasing'")
    sign = 1.0 if direction == "increasing" else -1.0
    outcome, why = "inconclusive", ""
    if not np.isfinite(trend.rho):
        why = "no usable values" if trend.n == 0 else "the values do not vary: no ranks to compare"
    else:
        strength, strongest = sign * trend.rho, max(sign * trend.low, sign * trend.high)
        if trend.p_value <= alpha and strength > 0 and strength >= minimum_rho:
            outcome = "holds"
            if not sign * trend.rho_of_means >= MEANS_FOLLOW:
                outcome, why = "inconclusive", "significant, but the means do not follow it"
        elif (trend.p_value <= alpha and strength < 0) or (
            0 < minimum_rho and strongest < minimum_rho
        ):
            outcome = "fails"
    needed = f", rho at least {minimum_rho:g}" if minimum_rho > 0 else ""
    needed += f", rho of means at least {MEANS_FOLLOW:g}"
    return Verdict(
        *identity,
        predicted=direction,
        measured=f"rho {_show(trend.rho)} (p {_show_p(trend.p_value)}), "
        f"rho of means {_show(trend.rho_of_means)}",
        interval=_kept(trend.low, trend.high),
        n=trend.n,
        tolerance=f"p at most {alpha:g}{needed}",
        outcome=outcome,
        note=joined(note, why),
        value=_finite(trend.rho),
        allowed=(minimum_rho, 1.0) if sign > 0 else (-1.0, -minimum_rho),
        p=_finite(trend.p_value),
    )


def judge_slope(
    identity: Identity,
    slope: Slope,
    predicted: float,
    tolerance: float,
    note: str = "",
    published: float | None = None,
) -> Verdict:
    """Holds: the whole interval lies in predicted ± tolerance; fails: all of it lies outside."""
    return _by_interval(
        identity,
        f"slope {predicted:.3g}",
        "slope",
        (slope.value, slope.low, slope.high),
        (predicted - tolerance, predicted + tolerance),
        slope.n_samples,
        f"±{tolerance:g}",
        joined(note, _thin(slope)),
        published,
    )


def judge_upper_exponent(
    identity: Identity, slope: Slope, bound: float, tolerance: float = 0.0, note: str = ""
) -> Verdict:
    """An upper bound y <= C x^bound: holds when y grows at most, or falls at least, that fast."""
    return _by_interval(
        identity,
        f"slope at most {bound:.3g}",
        "slope",
        (slope.value, slope.low, slope.high),
        (-np.inf, bound + tolerance),
        slope.n_samples,
        f"+{tolerance:g}",
        joined(note, _thin(slope)),
    )


def judge_equal(
    identity: Identity,
    samples: ArrayLike | Interval,
    predicted: float,
    tolerance: float,
    level: float = 0.95,
    note: str = "",
    published: float | None = None,
) -> Verdict:
    """Equivalence reading: holds only when the data exclude any difference over ``tolerance``."""
    mean = samples if isinstance(samples, Interval) else mean_interval(samples, level)
    return _by_interval(
        identity,
        f"{predicted:.4g}",
        "mean",
        mean[:3],
        (predicted - tolerance, predicted + tolerance),
        mean.n,
        f"±{tolerance:g}",
        joined(note, _few(mean.n)),
        published,
    )


def judge_bound(
    identity: Identity,
    samples: ArrayLike | Interval,
    bound: float,
    side: Literal["at_least", "at_most"],
    level: float = 0.95,
    note: str = "",
    published: float | None = None,
) -> Verdict:
    """Holds when the whole interval of the mean is on the right side of ``bound``."""
    if side not in ("at_least", "at_most"):
        raise bad_value("side", side, "must be 'at_least' or 'at_most'")
    mean = samples if isinstance(samples, Interval) else mean_interval(samples, level)
    return _by_interval(
        identity,
        f"{side.replace('_', ' ')} {bound:.4g}",
        "mean",
        mean[:3],
        (bound, np.inf) if side == "at_least" else (-np.inf, bound),
        mean.n,
        "none",
        joined(note, _few(mean.n)),
        published,
    )


def judge_difference(
    identity: Identity,
    samples: ArrayLike | Interval,
    direction: Literal["positive", "negative"],
    level: float = 0.95,
    note: str = "",
    published: float | None = None,
) -> Verdict:
    """A paired difference has a sign: holds when its whole interval lies strictly on the claimed
    side, fails on the other side, and also when every difference is exactly 0 (no effect).
    ``published``: the size in the paper; whether the interval excludes it is for the answer."""
    if direction not in ("positive", "negative"):
        raise bad_value("direction", direction, "must be 'positive' or 'negative'")
    mean = samples if isinstance(samples, Interval) else mean_interval(samples, level)
    sign = 1.0 if direction == "positive" else -1.0
    low, high = sorted((sign * mean.low, sign * mean.high))
    outcome, why = "inconclusive", _few(mean.n)
    if low > 0:
        outcome = "holds"
    elif high < 0 or (low == 0 == high and mean.n > 1):
        outcome, why = "fails", "no effect at all" if high == 0 else why
    ends = f" [{_show(mean.low)}, {_show(mean.high)}]" if np.isfinite(mean[:3]).all() else ""
    return Verdict(
        *identity,
        predicted=f"{direction} difference",
        measured=f"mean {_show(mean.mean)}{ends}",
        interval=_kept(mean.low, mean.high),
        n=mean.n,
        tolerance="none",
        outcome=outcome,
        note=joined(note, why),
        value=_finite(mean.mean),
        allowed=(0.0, np.inf) if sign > 0 else (-np.inf, 0.0),
        published=published,
    )


def judge_fraction(
    identity: Identity,
    successes: int,
    total: int,
    at_least: float,
    level: float = 0.95,
    note: str = "",
) -> Verdict:
    """A share of cases: holds when even the low end of its Wilson interval is ``at_least``."""
    if not 0 <= successes <= total:
        raise bad_value("successes", successes, f"must lie in 0..{total} (the total)")
    share = successes / total if total else np.nan
    return _by_interval(
        identity,
        f"share at least {at_least:.3g}",
        f"{successes} of {total}, share" if total else "share",
        (share, *wilson_interval(successes, total, level)),
        (at_least, np.inf),
        total,
        "none",
        joined(note, "" if total else "no cases to count"),
    )


def _by_interval(
    identity: Identity,
    predicted: str,
    what: str,
    estimate: tuple[float, float, float],
    allowed: tuple[float, float],
    n: int,
    tolerance: str,
    note: str,
    published: float | None = None,
) -> Verdict:
    """The one rule of interval verdicts: inside holds, outside fails, astride is inconclusive."""
    value, low, high = estimate
    floor, ceiling = allowed
    slack = 1e-12 * max(1.0, abs(value))  # rounding of samples that are all equal
    outcome = "inconclusive"
    if low >= floor - slack and high <= ceiling + slack:  # False for NaN ends
        outcome = "holds"
    elif high < floor - slack or low > ceiling + slack:
        outcome = "fails"
    ends = f" [{_show(low)}, {_show(high)}]" if np.isfinite([low, high]).all() else ""
    return Verdict(
        *identity,
        predicted=predicted,
        measured=f"{what} {_show(value)}{ends}",
        interval=_kept(low, high),
        n=n,
        tolerance=tolerance,
        outcome=outcome,
        note=note,
        value=_finite(value),
        allowed=(float(floor), float(ceiling)),
        published=published,
    )


def _show(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "undefined"


def _show_p(value: float) -> str:
    return f"{value:.2g}" if np.isfinite(value) else "undefined"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _kept(low: float, high: float) -> tuple[float, float] | None:
    return (float(low), float(high)) if np.isfinite([low, high]).all() else None


def _few(n: int) -> str:
    return "" if n > 1 else "no usable values" if n == 0 else "one value has no interval"


def _thin(slope: Slope) -> str:
    if slope.n_points < 2:
        return f"{slope.n_points} usable points: no slope"
    return _few(slope.n_samples)
