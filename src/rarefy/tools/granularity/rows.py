"""What was measured with each kind of pre-training labels, as rows for a person."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from rarefy.data.hierarchy.made import MEANINGLESS, kind_of
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.tools.granularity.sets import ONCE, TARGET

KINDS = {TARGET: "re-training", ONCE: "one pass"}
CONTROLS = (*KINDS.values(), *MEANINGLESS)
"""Kinds that are compared with, and never advised."""


def kind(labels: str) -> str:
    """given, kmeans-within, rebalanced, kmeans, random, samples, re-training or one pass."""
    return KINDS.get(labels) or kind_of(labels)


def chosen(held_out: xr.DataArray, asked: xr.DataArray) -> xr.DataArray:
    """``asked`` in per cent, (labels, seed), where ``held_out`` is best: test images choose
    nothing. Where that is so at several places, the last of them (the longest training)."""
    held, values = (
        one.transpose("labels", "seed", ...).values.reshape(one.labels.size, one.seed.size, -1)
        for one in (held_out, asked)
    )
    last = held.shape[-1] - 1
    best = last - np.where(np.isfinite(held), held, -np.inf)[..., ::-1].argmax(axis=-1)
    found = 100 * np.take_along_axis(values, best[..., None], axis=-1)[..., 0]
    return xr.DataArray(found, {"labels": asked.labels, "seed": asked.seed}, ("labels", "seed"))


def tuned_accuracy(results: xr.Dataset) -> xr.DataArray:
    """Of the fine-tuned networks, on test images."""
    return chosen(results["held_out_accuracy"], results["test_accuracy"])


def probe_accuracy(results: xr.Dataset) -> xr.DataArray:
    """Of linear probes, on test images."""
    return chosen(results["probe_held_out"], results["probe_accuracy"])


def gain(accuracy: xr.DataArray, labels: str, over: str = TARGET, level: float = 0.95) -> Interval:
    """Of one kind of labels over another, seed by seed, in points."""
    difference = accuracy.sel(labels=labels) - accuracy.sel(labels=over)
    return mean_interval(difference.values, level)


def rows_of(results: xr.Dataset, accuracy: xr.DataArray, shown: int = 0) -> list[dict[str, Any]]:
    """One per pre-training labels; per cent and points, None where there is nothing. ``accuracy``
    is what they are judged by, ``shown`` what a training costs: images times epochs."""
    probe = probe_accuracy(results)
    rows = []
    for labels in map(str, results["labels"].values):
        at, reached = results.sel(labels=labels), mean_interval(accuracy.sel(labels=labels).values)
        gained = gain(accuracy, labels)
        compared = labels != TARGET and gained.n > 0
        counts = {name: _mean(at[name]) for name in ("classes", "smallest")}
        rows.append(
            {
                "labels": labels,
                "kind": kind(labels),
                **{name: None if one is None else round(one) for name, one in counts.items()},
                "agreement": _mean(at["agreement"]),
                "accuracy": _finite(reached.mean),
                "accuracy_interval": _ends(reached, 0, 100),
                "gain": gained.mean if compared else None,
                "gain_interval": _ends(gained) if compared else None,
                "n": reached.n,
                "pairs": gained.n if compared else 0,
                "probe_accuracy": _mean(probe.sel(labels=labels)),
                "worst_subclass": _mean(100 * at["worst_subclass"]),
                "worst_tenth": _mean(100 * at["worst_tenth"]),
                "images_shown": shown or None,
                "stopped": int((at["nonfinite_step"] >= 0).sum()) if "nonfinite_step" in at else 0,
            }
        )
    return rows


def _mean(values: xr.DataArray) -> float | None:
    return _finite(mean_interval(values.values).mean)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _ends(interval: Interval, least: float = -np.inf, most: float = np.inf) -> list[float] | None:
    """Not beyond what is possible."""
    return [max(interval.low, least), min(interval.high, most)] if interval.n > 1 else None
