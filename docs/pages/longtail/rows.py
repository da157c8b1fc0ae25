"""Committed results of long-tailed pre-training, scale by scale, and the numbers asked of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.studies import get_study
from rarefy.studies.api import read_results
from rarefy.sweep.results import find_results
from rarefy.tools.longtail.readings import LONG_TAIL, readings
from rarefy.train.simclr.method import Method

STUDY = "longtail-table"
SCALES = get_study(STUDY).scales
ROWS = [chosen for name, chosen in SCALES.items() if "-rho" in name]
"""Parameters of the scales that are rows of the table."""
EPOCHS = sorted({row["epochs"] for row in ROWS})
NOT_RUN = "not run yet"
BASELINE = "simclr"
JUDGE = "linear"
LARGEST = 100
"""The imbalance at which lengths of training are compared."""
SET_NAMES = {
    "digits": "digits",
    "cifar10": "CIFAR10-LT",
    "cifar100": "CIFAR100-LT",
    "imagenet": "ImageNet-LT",
}


def way_of(row: Mapping[str, Any], kind: str) -> str:
    """The method of a kind that a row has."""
    return next(way for way in row["algorithm"] if Method.parse(way).kind == kind)


@dataclass(frozen=True, eq=False)
class Found:
    """Committed results of one scale, of which the largest rho is told."""

    study: Study
    scale: str
    results: xr.Dataset
    _told: dict[tuple[str, str], xr.Dataset] = field(default_factory=dict, repr=False)

    @property
    def data(self) -> str:
        return str(self.study.parameters()["data"])

    @property
    def epochs(self) -> int:
        return int(self.study.parameters()["epochs"])

    @property
    def rho(self) -> float:
        return float(self.results["rho"].values.max())

    @property
    def name(self) -> str:
        return f"{SET_NAMES[self.data]}, rho {self.rho:g}"

    @property
    def is_row(self) -> bool:
        return "-rho" in self.scale

    @property
    def protocols(self) -> list[str]:
        return [str(name) for name in self.results["protocol"].values]

    @property
    def ways(self) -> list[str]:
        return [str(name) for name in self.results["algorithm"].values]

    def methods(self, kind: str) -> list[str]:
        return [name for name in self.ways if Method.parse(name).kind == kind]

    def values(
        self,
        method: str,
        name: str = "overall",
        protocol: str = JUDGE,
        images: str = LONG_TAIL,
        which: str = "accuracy",
    ) -> np.ndarray:
        """Per cent, one number per seed; NaN for what is not there."""
        there = method in self.ways and images in self.results["images"].values
        if not there or protocol not in self.protocols:
            return np.full(self.results.sizes["seed"], np.nan)
        if (protocol, which) not in self._told:
            self._told[protocol, which] = readings(self.results, protocol, which)
        told = self._told[protocol, which][name]
        return np.asarray(told.sel(images=images, rho=self.rho, algorithm=method).values)

    def gain(
        self, method: str, name: str = "overall", protocol: str = JUDGE, level: float = 0.95
    ) -> Interval:
        """Over the baseline, seed by seed."""
        both = (self.values(one, name, protocol) for one in (method, BASELINE))
        return mean_interval(next(both) - next(both), level)

    def masked_gain(self, method: str) -> Interval:
        """Of the masked network over the dense baseline."""
        kept = self.values(method, which="masked_accuracy")
        return mean_interval(kept - self.values(BASELINE))

    def mean(
        self, method: str, name: str = "overall", protocol: str = JUDGE, images: str = LONG_TAIL
    ) -> Interval:
        return mean_interval(self.values(method, name, protocol, images))

    def both(self, method: str) -> tuple[float, float]:
        """Mean of the baseline and of a method over the seeds that both have."""
        plain, theirs = self.values(BASELINE), self.values(method)
        there = np.isfinite(plain) & np.isfinite(theirs)
        return (plain[there].mean(), theirs[there].mean()) if there.any() else (np.nan, np.nan)

    def at(self, seeds: Sequence[int]) -> Found:
        """The same with these orders of the classes alone."""
        chosen = np.isin(self.results["seed"].values, seeds)
        return Found(self.study, self.scale, self.results.isel(seed=chosen))

    def of(self, method: str, output: str) -> xr.DataArray:
        """What came out for a method, of the long-tailed images."""
        return self.results[output].sel(images=LONG_TAIL, rho=self.rho, algorithm=method)

    def held_out(self, method: str) -> float:
        """Linear probe on held-out training images, per cent; NaN where there is none."""
        return 100 * float(self.of(method, "validation").sel(protocol=JUDGE).mean())


def committed(folder: Path) -> dict[str, Found]:
    """Results of the study by scale."""
    found = {}
    for path in find_results(folder):
        if path.stem.startswith((f"{STUDY}-cifar", f"{STUDY}-digits-")):
            study, scale, results = read_results(path)
            found[scale] = Found(study, scale, results)
    return found


def by_length(found: dict[str, Found], data: str, method: str) -> dict[int, Found]:
    """By the number of epochs, results with this method; of several those with most orders."""
    there = [
        one
        for one in found.values()
        if one.data == data
        and (f"-rho{LARGEST}-" in one.scale or "-branches-" in one.scale)
        and one.gain(method).n
    ]
    there.sort(key=lambda one: (one.epochs, one.gain(method).n))
    return {one.epochs: one for one in there}


def sets_of(found: dict[str, Found]) -> list[str]:
    return list(dict.fromkeys(one.data for one in found.values()))


def orders(n: int) -> str:
    return f"{n} order" + "s" * (n != 1)
