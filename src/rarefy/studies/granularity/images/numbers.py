"""Numbers of one experiment: errors, the best size of a kind of labels, differences in pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from rarefy.data.hierarchy.made import kind_of
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.tools.granularity.rows import chosen
from rarefy.tools.granularity.sets import GIVEN, ONCE, TARGET

PERCENT = 100.0
KINDS = {
    GIVEN: "manual levels",
    "kmeans-within": "clusters within target classes",
    "rebalanced": "the same, rebalanced",
    "kmeans": "clusters of the whole set",
    "random-within": "random ids within target classes",
    "random": "random ids",
    "samples": "one id per image",
}
"""Kinds of labels in words, in the published order of their best errors (004 Table 1)."""


def of_kind(results: xr.Dataset, kind: str) -> list[str]:
    """Labels of a kind that were run, fewest classes first."""
    found = [
        one
        for one in texts(results, "labels")
        if one not in (TARGET, ONCE) and kind_of(one) == kind
    ]
    return sorted(found, key=lambda one: classes(results, one))


def classes(results: xr.Dataset, labels: str) -> float:
    return float(results["classes"].sel(labels=labels).mean())


def at_end(accuracy: xr.DataArray) -> xr.DataArray:
    """After all of pre-training and of fine-tuning, as published."""
    last = {dim: -1 for dim in ("checkpoint", "tuned") if dim in accuracy.dims}
    return accuracy.isel(last, drop=True)


def errors(results: xr.Dataset) -> xr.DataArray:
    """Per cent of the test images, at the end: (labels, seed)."""
    return PERCENT * (1 - at_end(results["test_accuracy"]))


def chosen_errors(results: xr.Dataset) -> xr.DataArray:
    """The same at the checkpoint and look that are best on held-out images, cell by cell."""
    return PERCENT - chosen(results["held_out_accuracy"], results["test_accuracy"])


def best_of(
    results: xr.Dataset, labels: Sequence[Any], error: xr.DataArray | None = None
) -> tuple[xr.DataArray, str]:
    """Error of the best of some labels, (seed,), and which they were. Chosen by the held-out images
    of the other seeds: neither test images nor the luck of the network itself choose."""
    held = by_seed(at_end(results["held_out_accuracy"]).sel(labels=list(labels)), "labels")
    held = np.nan_to_num(held)  # a training that failed is not chosen
    others = held.sum(axis=0) - held if len(held) > 1 else held
    names = [labels[place] for place in others.argmax(axis=1)]
    which = xr.DataArray(names, dims="seed", coords={"seed": results["seed"]})
    counted = Counter(names).most_common()
    said = ", ".join(f"{one} ({times}x)" if counted[1:] else str(one) for one, times in counted)
    found = errors(results) if error is None else error
    return found.sel(labels=which).drop_vars("labels"), said


def share_of_error(results: xr.Dataset, difference: xr.DataArray) -> np.ndarray:
    """A difference of errors in per cent of the mean error of re-training, (seed,): data sets whose
    errors are larger have larger differences too."""
    mean = float(errors(results).sel(labels=TARGET).mean())
    return PERCENT * by_seed(difference) / (mean if mean > 0 else np.nan)
