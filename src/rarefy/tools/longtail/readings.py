"""Numbers that people read, from accuracies by rank: overall, many, medium, few, Delta_20; methods
compared seed by seed, each with its balanced control."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.errors import UsageError
from rarefy.measure.representation.groups import summary
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.train.simclr.method import Method

LONG_TAIL, BALANCED = "long-tail", "balanced"
READINGS = ("overall", "many", "medium", "few", "delta_20", "spread")
FEWEST = 3
"""Seeds from which an interval is believed."""
PERCENT = 100.0


def readings(results: xr.Dataset, protocol: str, which: str = "accuracy") -> xr.Dataset:
    """Per cent, one value per cell (images, rho, method, seed) and reading."""
    if protocol not in results["protocol"].values:
        known = ", ".join(map(str, results["protocol"].values))
        raise UsageError(f"protocol {protocol!r} was not asked for; there is {known}")
    cells = ("images", "rho", "algorithm", "seed")
    by_rank = PERCENT * results[which].sel(protocol=protocol).transpose(*cells, "rank").values
    counts = results["class_count"].transpose(*cells, "rank").values
    found = {name: np.full(by_rank.shape[:-1], np.nan) for name in READINGS}
    for place in np.ndindex(*by_rank.shape[:-1]):
        there = np.isfinite(counts[place])  # (a split may lack classes)
        values = by_rank[place][there]
        if not np.isfinite(values).any():
            continue
        told = summary(values, [int(count) for count in counts[place][there]])
        for name in READINGS:
            found[name][place] = getattr(told, name)
    coordinates = {dim: results[dim] for dim in cells}
    return xr.Dataset({name: (cells, values) for name, values in found.items()}, coordinates)


def rows(results: xr.Dataset, protocol: str = "linear") -> Iterator[dict[str, Any]]:
    """One row per set and method of what ``rarefy pretrain`` stores: means over seeds in per cent,
    the difference to the baseline (``baseline_of``), and Delta_20 of the control."""
    told = readings(results, protocol)
    methods = [str(name) for name in results["algorithm"].values]
    baseline = baseline_of(methods)
    kinds = [str(name) for name in results["images"].values]
    for rho in results["rho"].values:
        for images in kinds:
            for method in methods:
                here = told.sel(images=images, rho=rho, algorithm=method)
                ended = results["nonfinite_step"].sel(images=images, rho=rho, algorithm=method)
                stopped = int((ended >= 0).sum())
                overall = mean_interval(here["overall"].values)
                if not overall.n and not stopped:
                    continue
                row: dict[str, Any] = {
                    "images": images,
                    "rho": float(rho),
                    "method": method,
                    "n": overall.n,
                    "stopped": stopped,
                }
                row |= {name: _mean(here[name]) for name in READINGS}
                row["overall_interval"] = _ends(overall)
                row["control_delta_20"] = None
                if images == LONG_TAIL and BALANCED in kinds:
                    control = told["delta_20"].sel(images=BALANCED, rho=rho, algorithm=method)
                    row["control_delta_20"] = _mean(control)
                row |= {"difference": None, "difference_interval": None, "pairs": 0}
                if method != baseline:
                    plain = told.sel(images=images, rho=rho, algorithm=baseline)
                    gain = mean_interval((here["overall"] - plain["overall"]).values)
                    row["pairs"] = gain.n
                    row["difference"] = gain.mean if gain.n else None
                    row["difference_interval"] = _ends(gain)
                yield row


def baseline_of(methods: list[str]) -> str:
    """What others are compared with: the first that is trained without masks, else the first that
    is trained, else the first."""
    trained = [name for name in methods if Method.parse(name).trained]
    plain = [name for name in trained if not Method.parse(name).masked]
    return (plain or trained or methods or [""])[0]


def _mean(values: xr.DataArray) -> float | None:
    found = values.values[np.isfinite(values.values)]
    return float(found.mean()) if found.size else None


def _ends(interval: Interval) -> list[float] | None:
    ends = [interval.low, interval.high]
    return ends if interval.n > 1 and np.isfinite(ends).all() else None
