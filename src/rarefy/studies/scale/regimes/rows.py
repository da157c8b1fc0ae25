"""What the searches of ``regimes-at-scale`` found, laid out for fits over seeds.

A row whose outcome does not turn between the ends of its road still says something: its boundary
is beyond an end. It is counted there, which can only flatten an exponent, and how many there are is
told; an exponent of 0 is not believed where they are many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.statistics import BIG_O, Interval, Slope, bootstrap_interval
from rarefy.studies.scale.regimes.experiment import RegimesExperiment
from rarefy.studies.scale.regimes.questions import Question, question_of

Array = NDArray[np.float64]


def words_of(results: xr.Dataset, *roads: str) -> list[str]:
    """The questions on some roads, in the order of the results."""
    return [str(word) for word in results["question"].values if question_of(word).road in roads]


def on(results: xr.Dataset, word: str) -> xr.Dataset:
    """One question's rows, (seed, size, classes, ...)."""
    return results.sel(question=word)


def level_of(study: RegimesExperiment, question: Question) -> float:
    """The share of chance that loss or error falls to at the boundary."""
    return study.tail_level if question.by_noise else question.number


def ends_of(results: xr.Dataset, word: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Lower and upper end of a question's road, log10, (size, classes)."""
    question, size, classes = question_of(word), results["size"], results["classes"]
    both = [
        [question.ends(int(one), int(number)) for number in classes.values] for one in size.values
    ]
    low, high = (
        xr.DataArray(
            np.array(both)[..., end],
            coords={"size": size.values, "classes": classes.values},
            dims=("size", "classes"),
        )
        for end in (0, 1)
    )
    return low, high


def boundary_of(results: xr.Dataset, word: str) -> xr.DataArray:
    """log10 of the boundary, (seed, size, classes[, d]); beyond an end: that end."""
    here = on(results, word)
    low, high = ends_of(results, word)
    outside = here["outside"]
    return here["boundary"].where(outside == 0, low.where(outside < 0, high)).drop_vars("question")


def boundaries_of(results: xr.Dataset, words: Sequence[str]) -> xr.DataArray:
    """The same of several questions, with dimension ``question``."""
    return xr.concat([boundary_of(results, word) for word in words], dim="question").assign_coords(
        question=list(words)
    )


def beyond(results: xr.Dataset, words: Sequence[str]) -> tuple[int, int, int]:
    """Rows above the upper end, below the lower one, and all."""
    outside = results["outside"].sel(question=list(words))
    return int((outside > 0).sum()), int((outside < 0).sum()), int(outside.size)


def beyond_note(results: xr.Dataset, words: Sequence[str]) -> str:
    above, below, rows = beyond(results, words)
    if not above + below:
        return f"all {rows} rows have a boundary in the range"
    parts = [f"{count} {where}" for count, where in ((above, "above"), (below, "below")) if count]
    return f"boundary out of range in {' and '.join(parts)} of {rows} rows, counted at that end"


def share_beyond(results: xr.Dataset, words: Sequence[str]) -> float:
    above, below, rows = beyond(results, words)
    return (above + below) / rows


def share_unfitted(study: RegimesExperiment, results: xr.Dataset, words: Sequence[str]) -> float:
    """Of the boundaries, those at which the training loss was not of order epsilon when the updates
    were used up: no theorem speaks of such networks."""
    loss = results["train_loss"].sel(question=list(words), place="boundary").values
    known = loss[np.isfinite(loss)]
    return float((known > BIG_O * study.epsilon).mean()) if known.size else 0.0


# --------------------------------------------------------------------------------------- exponents


def exponent(values: xr.DataArray, columns: Mapping[str, xr.DataArray], of: str) -> Slope:
    """Coefficient of column ``of`` when ``values`` are fitted by a constant and all columns, a seed
    at a time (both in log10: an exponent); mean over seeds with its bootstrap interval."""
    wide = xr.broadcast(values, *columns.values())
    points = [dim for dim in wide[0].dims if dim != "seed"]
    flat = [part.transpose("seed", *points).values for part in wide]
    flat = [part.reshape(len(part), -1) for part in flat]
    names = list(columns)
    slopes = np.array(
        [
            _coefficient(flat[0][seed], [column[seed] for column in flat[1:]], names.index(of))
            for seed in range(values.sizes["seed"])
        ]
    )
    known = slopes[np.isfinite(slopes)]
    found = mean_of(known)
    fitted = int(np.isfinite(flat[0]).any(axis=0).sum()) if known.size else 0
    return Slope(found.mean, found.low, found.high, found.n, fitted)


def mean_of(samples: Array) -> Interval:
    """Mean over seeds with its bootstrap interval."""
    values = np.asarray(samples, dtype=np.float64)
    return _bootstrapped(tuple(values[np.isfinite(values)].tolist()))


@lru_cache(maxsize=4096)  # verdicts, tables and pictures ask for the same
def _bootstrapped(samples: tuple[float, ...]) -> Interval:
    return bootstrap_interval(np.array(samples), lambda some: float(some.mean()))


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
