"""Test accuracies laid out beside those of the dense network, and how far chance alone moves them.

Everything is in per cent and points. Cells of one seed began alike, so that differences are taken
seed by seed; a difference of one seed has no interval of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarefy.measure.estimates import Interval, mean_interval, t_quantile
from rarefy.studies.sparse.readings import BANDS, Paired, band_of

LEVEL = 0.95
FEWEST = 3
"""Seeds from which a single cell's own interval is believed: of two, counts of right answers are
equal by chance now and then, and the interval has no width."""
NONE = "–"


# -------------------------------------------------------------------------------------- differences


def band_gain(paired: Paired, keep: float, band: str) -> tuple[NDArray[np.float64], str]:
    """Difference from dense per seed, (seed,), on average over a band's levels, and which these are
    (see ``seed_means``)."""
    part = paired.band(band)
    found, used = seed_means(part.difference(keep))
    if not used.any():
        return found, f"no {band} noise level to compare at"
    words = ", ".join(f"{level:g}" for level in part.levels[used])
    where = f"at noise {words}" if used.sum() == 1 else f"mean over noise {words}"
    left = "" if used.all() else f" (too few seeds at the other {int((~used).sum())})"
    return found, where + left


def seed_means(samples: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Mean over columns, (seed,), of samples (seed, column), and which columns were used: those
    that at least two seeds have (one, if none has two). Only seeds that have all of these, else
    seeds would be averages over different columns."""
    there = np.isfinite(samples)
    count = there.sum(axis=0)
    found = np.full(len(samples), np.nan)
    if not count.any():
        return found, count > 0
    used = count >= min(2, int(count.max()))
    whole = there[:, used].all(axis=1)
    found[whole] = samples[whole][:, used].mean(axis=1)
    return found, used


def cautious(samples: NDArray[np.float64], alike: NDArray[np.float64]) -> Interval:
    """Mean and Student interval of samples (seed,), with their own spread or that of comparable
    samples ``alike`` (seed, case) pooled, whichever is larger: of three seeds a spread is tiny by
    chance now and then, and would decide anything. Under three seeds there is no interval."""
    mean = mean_interval(samples)
    if mean.n < FEWEST:
        return Interval(mean.mean, float("nan"), float("nan"), mean.n)
    own = float(np.nanstd(samples, ddof=1))
    spread = pooled(alike).sd
    sd = max(own, spread) if np.isfinite(spread) else own
    half = float(t_quantile(mean.n - 1, LEVEL) * sd / np.sqrt(mean.n))
    return Interval(mean.mean, mean.mean - half, mean.mean + half, mean.n)


class Spread(NamedTuple):
    """Standard deviation of a single value, and the degrees of freedom it was found with."""

    sd: float
    freedom: int

    def half(self, n: int = 1) -> float:
        """Half width of a Student interval of the mean of ``n`` values."""
        if self.freedom < 1 or n < 1:
            return float("nan")
        return float(t_quantile(self.freedom, LEVEL) * self.sd / np.sqrt(n))


def pooled(samples: NDArray[np.float64]) -> Spread:
    """Spread over seeds, pooled over levels; samples (seed, level)."""
    there = np.isfinite(samples)
    n = there.sum(axis=0)
    mean = np.where(there, samples, 0.0).sum(axis=0) / np.maximum(n, 1)
    squares = np.where(there, samples - mean, 0.0) ** 2
    freedom = int(np.maximum(n - 1, 0).sum())
    return Spread(float(np.sqrt(squares.sum() / freedom)) if freedom else float("nan"), freedom)


def lone_spread(paired: Paired, keep: float) -> Spread:
    """Spread of the difference between one pruned and one dense training: that of pairs with the
    same seed or of two independent ones, whichever is larger (002 does not say which it has)."""
    both, ours, dense = (
        pooled(each) for each in (paired.difference(keep), paired.of(keep), paired.dense)
    )
    return Spread(max(both.sd, float(np.hypot(ours.sd, dense.sd))), both.freedom)


@dataclass(frozen=True)
class Comparison:
    """One pruned cell beside its dense one: means over seeds, and what tells them apart from 0."""

    level: float
    keep: float
    dense: float
    difference: Interval
    pooled_half: float
    """half width of the difference's interval, spread pooled over the levels of its band"""
    lone_half: float
    """beyond this the difference between two single trainings, such as a published one, is real"""

    @property
    def apart(self) -> bool | None:
        """By its own interval; None where it has none to speak of."""
        return is_apart(self.difference) if self.difference.n >= FEWEST else None

    @property
    def apart_pooled(self) -> bool | None:
        return self._beyond(self.difference.mean, self.pooled_half)

    def published_apart(self, difference: float) -> bool | None:
        return self._beyond(difference, self.lone_half)

    @staticmethod
    def _beyond(value: float, half: float) -> bool | None:
        return bool(abs(value) > half) if np.isfinite([value, half]).all() else None


def comparisons(paired: Paired) -> list[Comparison]:
    """Every level and keep below 1, levels rising and keeps falling."""
    found = []
    bands = {name: paired.band(name) for name in BANDS}
    spreads = {
        (name, keep): (pooled(band.difference(keep)), lone_spread(band, keep).half())
        for name, band in bands.items()
        for keep in paired.thinned
    }
    for place, level in enumerate(paired.levels):
        for keep in paired.thinned:
            samples = paired.difference(keep)[:, place]
            there = np.isfinite(samples)
            mean = mean_interval(samples)
            # that of the same seeds, so that accuracy and difference add up
            dense = paired.dense[there if there.any() else slice(None), place]
            spread, lone = spreads[band_of(level), keep]
            found.append(
                Comparison(
                    float(level), keep, mean_interval(dense).mean, mean, spread.half(mean.n), lone
                )
            )
    return found


# -------------------------------------------------------------------------------------------- texts


def said(difference: Interval) -> str:
    """A difference with its interval; starred where that excludes 0, a dagger for one seed."""
    if not np.isfinite(difference.mean):
        return NONE
    if difference.n < 2:
        return f"{difference.mean:+.2f}†"
    star = "*" if difference.n >= FEWEST and is_apart(difference) else ""
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]{star}"


def is_apart(difference: Interval) -> bool:
    return bool(difference.low > 0 or difference.high < 0)


def number(value: float, form: str = ".2f") -> str:
    return format(value, form) if np.isfinite(value) else NONE


def asked_at(test_noise: float) -> str:
    return "without noise" if np.isclose(test_noise, 0) else f"at noise {test_noise:g}"


def yes_no(value: bool | None) -> str:
    return NONE if value is None else "yes" if value else "no"
