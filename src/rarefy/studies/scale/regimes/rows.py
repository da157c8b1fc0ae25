"""What the searches of ``regimes-at-scale`` found, laid out for fits over seeds.

A row whose outcome does not turn between the ends of its path still says something: its boundary
is beyond an end. It is counted there, which can only flatten an exponent, and how many there are is
told; an exponent of 0 is not believed where they are many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.statistics import BIG_O, Interval, Slope, bootstrap_interval
from rarefy.studies.scale.questions import Question, question_of
from rarefy.studies.scale.regimes.experiment import RegimesExperiment

Array = NDArray[np.float64]


def words_of(results: xr.Dataset, *paths: str) -> list[str]:
    """The questions on some paths, in the order of the results."""
    return [str(word) for word in results["question"].values if question_of(word).path in paths]


def level_of(study: RegimesExperiment, question: Question) -> float:
    """The share of chance that loss or error falls to at the boundary."""
    return study.tail_level if question.by_noise else question.number


def laid_out(results: xr.Dataset) -> xr.Dataset:
    """The results in order, with the ends of each question's path, ``log_low`` and ``log_high``,
    and ``log_boundary``, log10, which is that end where it lies beyond one."""
    results = results.sortby(["d", "size", "classes"])
    axes = {name: results[name].values for name in ("question", "size", "classes")}
    both = [
        question_of(word).ends(int(size), int(classes))
        for word, size, classes in product(*axes.values())
    ]
    shape = [len(values) for values in axes.values()]
    low, high = (xr.DataArray(np.reshape(end, shape), axes) for end in zip(*both, strict=True))
    outside = results["outside"]
    end = low.where(outside < 0, high.where(outside > 0))
    place = results["boundary"].where(outside == 0, end)
    return results.assign(log_low=low, log_high=high, log_boundary=place)


def by_question(words: Sequence[str], of: Callable[[str], xr.DataArray]) -> xr.DataArray:
    """Something of several questions, with dimension ``question``."""
    return xr.concat([of(word) for word in words], dim="question").assign_coords(
        question=list(words)
    )


@dataclass(frozen=True)
class Boundaries:
    """Of some questions: where they are, how many have none in the range, and how many lie where
    networks are not fitted."""

    results: xr.Dataset
    """``laid_out``"""
    words: Sequence[str]

    @cached_property
    def place(self) -> xr.DataArray:
        """log10, (question, seed, size, classes[, d])."""
        return self.results["log_boundary"].sel(question=list(self.words))

    @property
    def typical(self) -> float:
        """Geometric mean."""
        return 10 ** float(self.place.mean())

    @cached_property
    def beyond(self) -> tuple[int, int, int]:
        """Rows above the upper end, below the lower one, and all."""
        outside = self.results["outside"].sel(question=list(self.words))
        return int((outside > 0).sum()), int((outside < 0).sum()), int(outside.count())

    @property
    def note(self) -> str:
        above, below, rows = self.beyond
        if not above + below:
            return f"all {rows} rows have a boundary in the range"
        counts = ((above, "above"), (below, "below"))
        said = " and ".join(f"{count} {where}" for count, where in counts if count)
        return f"boundary out of range in {said} of {rows} rows, counted at that end"

    @property
    def lost(self) -> float:
        """Share of the rows without one in the range."""
        above, below, rows = self.beyond
        return (above + below) / max(rows, 1)

    def unfitted(self, study: RegimesExperiment) -> float:
        """Share at which the training loss was not of order epsilon when the updates were used up:
        no theorem speaks of such networks."""
        loss = self.results["train_loss"].sel(question=list(self.words), place="boundary").values
        known = loss[np.isfinite(loss)]
        return float((known > BIG_O * study.epsilon).mean()) if known.size else 0.0


# --------------------------------------------------------------------------------------- exponents


def exponent(values: xr.DataArray, columns: Mapping[str, xr.DataArray], of: str) -> Slope:
    """Coefficient of column ``of`` when ``values`` are fitted by a constant and all columns, one
    seed at a time (both in log10: an exponent); mean over seeds with its bootstrap interval."""
    wide = xr.broadcast(values, *columns.values())
    points = [dim for dim in wide[0].dims if dim != "seed"]
    flat = [part.transpose("seed", *points).values for part in wide]
    flat = [part.reshape(len(part), -1) for part in flat]
    which = list(columns).index(of)
    found = mean_of(np.array([_coefficient(y, x, which) for y, *x in zip(*flat, strict=True)]))
    fitted = int(np.isfinite(flat[0]).any(axis=0).sum()) if found.n else 0
    return Slope(found.mean, found.low, found.high, found.n, fitted)


def mean_of(samples: Array) -> Interval:
    """Mean over seeds with its bootstrap interval."""
    values = np.asarray(samples, dtype=np.float64)
    return _bootstrapped(tuple(values[np.isfinite(values)].tolist()))


@lru_cache(maxsize=4096)  # verdicts, tables and pictures ask for the same
def _bootstrapped(samples: tuple[float, ...]) -> Interval:
    return bootstrap_interval(np.array(samples), lambda some: some.mean(axis=1))


def _coefficient(y: Array, columns: Sequence[Array], which: int) -> float:
    """NaN where the column does not vary on its own."""
    there = np.isfinite(y) & np.all([np.isfinite(column) for column in columns], axis=0)
    if not there.any():
        return np.nan
    others = [np.ones(int(there.sum()))]
    others += [column[there] for i, column in enumerate(columns) if i != which]
    rest = np.stack(others, axis=1)
    x = columns[which][there]
    own = x - rest @ np.linalg.lstsq(rest, x, rcond=None)[0]  # what the others do not say
    if float(own @ own) <= 1e-12 * max(float(x @ x), 1.0):
        return np.nan
    return float(own @ y[there] / (own @ own))


def log10(values: xr.DataArray) -> xr.DataArray:
    """Of an axis or a quantity; nothing where it is not positive."""
    found: xr.DataArray = xr.apply_ufunc(np.log10, values.where(values > 0))
    return found
