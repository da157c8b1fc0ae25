"""What a network is asked: readings of the paper, noise in one place, accuracies seed by seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.tools.sparse_experiment import SparseTraining

AXES = ("update", "noise_resampling", "noise")
"""What may be read in more than one way."""
POINTS = 100.0
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
ROUNDING = 1e-5
"""Of a share of right answers that was stored in single precision."""


# ----------------------------------------------------------------------------------------- readings


def readings(
    results: xr.Dataset, axes: Sequence[str] = AXES[:2]
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


def setting_of(experiment: SparseTraining, words: str, what: str) -> str:
    """The setting of a verdict; ``default`` says nothing and is left out."""
    named = [part for part in (experiment.setting, words) if part and part != "default"]
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
