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
"""002 Tables 1 and 2 have noise std 0 to 0.5 and 5 to 10."""
BANDS = ("moderate", "extreme")
PLACES = {
    "both": "noise in training and test",
    "training": "noise in training only",
    "test": "noise in the test only",
}
"""Where noise is, which 002 does not say; a level is the std of it. Asked without the noise of
training, BatchNorm is measured without it too: its old statistics would hide what is known."""
SPOKEN = {"fresh": "noise drawn anew", "once": "noise drawn once", "dense": "dense update"}


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


def is_primary(part: xr.Dataset) -> bool:
    """The rule of 002 (Sec. 3.3: what is pruned is zero and trained on), noise anew each time an
    image is shown: in Table 2 dense accuracy rises up to std 0.3, as noise drawn once cannot do."""
    return str(part["update"].item()) == "project" and part["noise_resampling"].item() == "fresh"


def setting_of(experiment: SparseTraining, words: str, what: str) -> str:
    """The setting of a verdict; ``default`` says nothing and is left out."""
    named = [part for part in (experiment.setting, words) if part and part != "default"]
    return f"{', '.join(named)}: {what}" if named else what


# --------------------------------------------------------------------------------------- accuracies


@dataclass(frozen=True)
class Paired:
    """Accuracies in per cent, (seed, level, keep): levels rise, keeps fall. Missing is NaN. Cells
    of one seed began alike, so that differences are taken seed by seed."""

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
    """ "" for what belongs to neither."""
    if level <= MODERATE_TO:
        return "moderate"
    return "extreme" if level >= EXTREME_FROM else ""


def placed(results: xr.Dataset, place: str) -> Paired:
    """Accuracies of one reading (``update`` and ``noise_resampling`` chosen) with noise in one of
    ``PLACES``. No levels where the grid does not have what is needed."""
    results = results.sortby("noise").sortby("test_noise")
    shown, asked = (results[name].values.astype(np.float64) for name in ("noise", "test_noise"))
    if place == "training":
        return _paired(shown, results["clean_accuracy"].mean("half").rename(noise="level"), results)
    if place == "test":
        rows = np.isclose(shown, 0.0)
        part = results["test_accuracy"].isel(noise=rows).squeeze("noise") if rows.any() else None
        levels = asked
    else:
        levels = np.array([level for level in shown if np.isclose(asked, level).any()])
        diagonal = xr.DataArray(levels, dims="level")
        part = results["test_accuracy"].sel(noise=diagonal, test_noise=diagonal, method="nearest")
        return _paired(levels, part, results)
    if part is None:
        empty = results["test_accuracy"].isel(noise=0, test_noise=slice(0))
        return _paired(levels[:0], empty.rename(test_noise="level"), results)
    return _paired(levels, part.rename(test_noise="level"), results)


def without_noise(results: xr.Dataset, half: int | None = None) -> Paired:
    """Accuracies of one reading at one training noise, asked without noise (see ``PLACES``)."""
    clean = results["clean_accuracy"]
    clean = clean.mean("half") if half is None else clean.isel(half=half)
    return _paired(np.zeros(1), clean.expand_dims("level"), results)


def at_test_noise(results: xr.Dataset, test_noise: float, half: int | None = None) -> Paired:
    """Accuracies of one reading at one training noise (``noise`` chosen too): a single level. The
    nearest test noise is taken. ``half``: on that half of the test images alone."""
    measured = results["test_accuracy"]
    if half is not None:
        measured = results["half_accuracy"].isel(half=half)
    part = measured.sel(test_noise=[test_noise], method="nearest").rename(test_noise="level")
    return _paired(part["level"].values.astype(np.float64), part, results)


def _paired(levels: NDArray[np.float64], part: xr.DataArray, results: xr.Dataset) -> Paired:
    keeps = results["keep"].values.astype(np.float64)
    order = np.argsort(-keeps, kind="stable")
    values = np.asarray(part.transpose("seed", "level", "keep").values, dtype=np.float64)
    return Paired(levels, keeps[order], POINTS * values[:, :, order])
