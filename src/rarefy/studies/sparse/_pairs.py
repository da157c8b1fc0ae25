"""Test accuracies laid out beside those of the dense network, and how far chance alone moves them.

Everything is in per cent and points. Cells of one seed began alike, so that differences are taken
seed by seed; a difference of one seed has no interval of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rarefy.measure.estimates import Interval, mean_interval

if TYPE_CHECKING:
    import xarray as xr

    from rarefy.studies.sparse._sparse import SparseTraining

POINTS = 100.0
LEVEL = 0.95
MODERATE_TO, EXTREME_FROM = 0.5, 5.0
"""002 Tables 1 and 2 have noise std 0 to 0.5 and 5 to 10; what is between belongs to neither."""
BANDS = ("moderate", "between", "extreme")
PLACES = {
    "both": "noise in training and test",
    "training": "noise in training only",
    "adapted": "noise in training only, BatchNorm measured without it",
    "test": "noise in the test only",
}
"""Where noise is, which 002 does not say; a level is the std of it."""
SPOKEN = {"fresh": "noise drawn anew", "once": "noise drawn once", "dense": "dense update"}
FEWEST = 3
"""Seeds from which a single cell's own interval is believed: of two, counts of right answers are
equal by chance now and then, and the interval has no width."""
ROUNDING = 1e-5
"""Of a share of right answers that was stored in single precision."""
NONE = "–"


# ----------------------------------------------------------------------------------------- readings


def readings(
    results: xr.Dataset, axes: Sequence[str] = ("update", "drawn")
) -> Iterator[tuple[str, xr.Dataset]]:
    """Each combination of what the paper leaves open: in words (of the axes that have more than
    one value, so that there may be none) and its part of the results."""
    values = [results[axis].values.tolist() for axis in axes]
    for chosen in product(*values):
        at = dict(zip(axes, chosen, strict=True))
        words = [_word(axis, value) for axis, value in at.items() if results.sizes[axis] > 1]
        yield ", ".join(words), results.sel(at)


def _word(axis: str, value: object) -> str:
    return f"noise {value:g}" if axis == "noise" else SPOKEN.get(str(value), str(value))


def setting_of(study: SparseTraining, words: str, what: str) -> str:
    """The setting of a verdict; ``default`` says nothing and is left out."""
    named = [part for part in (study.setting, words) if part and part != "default"]
    return f"{', '.join(named)}: {what}" if named else what


# --------------------------------------------------------------------------------------- accuracies


@dataclass(frozen=True)
class Paired:
    """Accuracies in per cent, (seed, level, keep): levels rise, keeps fall. Missing is NaN."""

    levels: NDArray[np.float64]
    keeps: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    @property
    def dense(self) -> NDArray[np.float64]:
        """(seed, level)"""
        return self.of(1.0)

    @property
    def thinned(self) -> list[float]:
        """Keeps below 1, largest first."""
        return [float(keep) for keep in self.keeps if not np.isclose(keep, 1)]

    def of(self, keep: float) -> NDArray[np.float64]:
        """Accuracies at one keep, (seed, level); NaN if it is not in the grid."""
        places = np.flatnonzero(np.isclose(self.keeps, keep))
        if len(places) == 0:
            return np.full(self.accuracy.shape[:2], np.nan)
        return self.accuracy[:, :, places[0]]

    def difference(self, keep: float) -> NDArray[np.float64]:
        """From dense, in points, (seed, level)."""
        return self.of(keep) - self.dense

    def band(self, name: str) -> Paired:
        """The levels of one band."""
        inside = np.array([band_of(level) == name for level in self.levels], dtype=bool)
        return Paired(self.levels[inside], self.keeps, self.accuracy[:, inside])


def band_of(level: float) -> str:
    if level <= MODERATE_TO:
        return "moderate"
    return "extreme" if level >= EXTREME_FROM else "between"


def placed(results: xr.Dataset, place: str) -> Paired:
    """Accuracies of one reading (``update`` and ``drawn`` chosen) with noise in one of ``PLACES``.
    No levels where the grid does not have what is needed."""
    if place == "adapted":
        return _adapted(results)
    values = results["test_accuracy"].transpose("seed", "noise", "test_noise", "keep").values
    shown, asked = results["noise"].values, results["test_noise"].values
    pairs = [
        (float(asked[column] if place == "test" else shown[row]), row, column)
        for row, column in product(range(len(shown)), range(len(asked)))
        if _belongs(place, float(shown[row]), float(asked[column]))
    ]
    pairs.sort()
    rows, columns = [row for _, row, _ in pairs], [column for _, _, column in pairs]
    levels = np.array([level for level, _, _ in pairs], dtype=np.float64)
    keeps, order = _falling(results["keep"].values)
    found = np.asarray(values, dtype=np.float64)[:, rows, columns][:, :, order]
    return Paired(levels, keeps, POINTS * found)


def _adapted(results: xr.Dataset) -> Paired:
    keeps, order = _falling(results["keep"].values)
    levels = np.sort(results["noise"].values.astype(np.float64))
    if not _measured_anew(results):
        return Paired(levels[:0], keeps, np.empty((results.sizes["seed"], 0, len(keeps))))
    clean = results["clean_accuracy"].mean("half").sortby("noise")
    values = np.asarray(clean.transpose("seed", "noise", "keep").values, dtype=np.float64)
    return Paired(levels, keeps, POINTS * values[:, :, order])


def _measured_anew(results: xr.Dataset) -> bool:
    """Whether measuring BatchNorm without noise changed an answer: a network that has none gives
    the same ones (the mean of two halves apart from them by rounding), no reading of its own."""
    if "clean_accuracy" not in results:
        return False
    asked = results["test_accuracy"].isel(test_noise=np.abs(results["test_noise"].values).argmin())
    moved = np.abs((results["clean_accuracy"].mean("half") - asked).values)
    return bool((moved > ROUNDING).any())


def without_noise(results: xr.Dataset, half: int | None = None) -> Paired:
    """Accuracies of one reading at one training noise, asked without noise: BatchNorm measured
    without it too, where results have that."""
    if "clean_accuracy" not in results:
        return at_test_noise(results, 0.0, half)
    clean = results["clean_accuracy"]
    clean = clean.mean("half") if half is None else clean.isel(half=half)
    keeps, order = _falling(results["keep"].values)
    values = np.asarray(clean.transpose("seed", "keep").values, dtype=np.float64)
    return Paired(np.zeros(1), keeps, POINTS * values[:, None, order])


def _belongs(place: str, noise: float, test_noise: float) -> bool:
    if place == "both":
        return bool(np.isclose(noise, test_noise))
    return bool(np.isclose(test_noise if place == "training" else noise, 0.0))


def at_test_noise(results: xr.Dataset, test_noise: float, half: int | None = None) -> Paired:
    """Accuracies of one reading at one training noise (``noise`` chosen too): a single level. The
    nearest test noise is taken. ``half``: on that half of the test images alone."""
    measured = results["test_accuracy"]
    if half is not None:
        measured = results["half_accuracy"].isel(half=half)
    values = measured.transpose("seed", "test_noise", "keep").values
    asked = results["test_noise"].values.astype(np.float64)
    column = int(np.abs(asked - test_noise).argmin())
    keeps, order = _falling(results["keep"].values)
    found = np.asarray(values, dtype=np.float64)[:, [column]][:, :, order]
    return Paired(asked[[column]], keeps, POINTS * found)


def _falling(keeps: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    found = np.asarray(keeps, dtype=np.float64)
    order = np.argsort(-found, kind="stable")
    return found[order], order


# -------------------------------------------------------------------------------------- differences


def band_gain(paired: Paired, keep: float, band: str) -> tuple[NDArray[np.float64], str]:
    """Difference from dense a seed, (seed,), on average over a band's levels, and which these are
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
    half = float(stats.t.ppf((1 + LEVEL) / 2, mean.n - 1) * sd / np.sqrt(mean.n))
    return Interval(mean.mean, mean.mean - half, mean.mean + half, mean.n)


class Spread(NamedTuple):
    """Standard deviation of a single value, and the degrees of freedom it was found with."""

    sd: float
    freedom: int

    def half(self, n: int = 1) -> float:
        """Half width of a Student interval of the mean of ``n`` values."""
        if self.freedom < 1 or n < 1:
            return float("nan")
        return float(stats.t.ppf((1 + LEVEL) / 2, self.freedom) * self.sd / np.sqrt(n))


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
