"""Made-up results of pre-training on images at many granularities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies import get_study

SPREAD = np.array([0.0, 0.4, -0.2, 0.3, -0.5])
"""Seeds differ by more than labels do, in points of error; so little do pairs of them differ: """
LITTLE = np.array([0.0, 0.02, -0.02, 0.01, -0.01])
CLASSES = {"target": 20, "once": 20, "group": 6, "coarse": 20, "class": 100, "noun": 768}
AS_PUBLISHED = {
    **{"target": 20.0, "once": 21.0, "class": 18.0, "noun": 18.4, "kmeans-within:2": 19.5},
    **{"kmeans-within:5": 19.7, "rebalanced:5": 19.6, "kmeans:40": 21.0, "kmeans:100": 20.9},
    **{"random:100": 24.0},
}
"""Errors in per cent, in the order of Table 1."""


def classes(labels: str) -> float:
    number = labels.partition(":")[2]
    return CLASSES[labels] if labels in CLASSES else float(number or 1000)


def made_up(study: Study, errors: Mapping[str, float]) -> xr.Dataset:
    """Errors in per cent that stay the same at all checkpoints and looks, on test and held-out
    images and for probes; everything else is 1."""
    seeds = np.arange(study.seeds) % len(SPREAD)
    grid: dict[str, Any] = {
        "labels": list(study.parameters()["labels"]),
        "seed": np.arange(study.seeds),
        **study.coordinates(),
    }
    base = np.zeros((len(grid["labels"]), study.seeds))
    for row, one in enumerate(grid["labels"]):
        own = 0.0 if one == "target" else np.roll(LITTLE, row)[seeds]
        base[row] = errors.get(one, errors["target"]) + SPREAD[seeds] + own
    accuracy = xr.DataArray(1 - base / 100, dims=("labels", "seed"))
    found = {}
    for output in study.outputs():
        shape = {dim: len(grid[dim]) for dim in output.dims}
        same = ("test_accuracy", "held_out_accuracy", "probe_accuracy", "pretrained_accuracy")
        value = accuracy if output.name in same else xr.ones_like(accuracy)
        found[output.name] = value.expand_dims(shape).transpose("labels", "seed", *shape).copy()
    results = xr.Dataset(found).assign_coords(grid)
    results["classes"][:] = np.array([[classes(one)] for one in grid["labels"]])
    return results


def at(name: str, scale: str = "paper", errors: Mapping[str, float] = AS_PUBLISHED,
       **more: object) -> tuple[Study, xr.Dataset]:  # fmt: skip
    study = get_study(name).at(scale, **more)
    return study, made_up(study, errors)


def said(study: Study, results: xr.Dataset, scale: str = "paper") -> dict[str, list[Verdict]]:
    """Verdicts by the text of their claim."""
    found: dict[str, list[Verdict]] = {}
    for verdict in study.verdicts(results, scale):
        found.setdefault(verdict.claim, []).append(verdict)
    return found
