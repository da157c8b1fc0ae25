"""Committed results of long-tailed pre-training, scale by scale, and the numbers asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import xarray as xr

from rarefy.core.contracts import Study
from rarefy.measure.order_pairs import OverOrders, by_pair, over_orders
from rarefy.studies import get_study
from rarefy.studies.api import read_results
from rarefy.studies.longtail.table.study import BRANCHES
from rarefy.sweep.results import find_results
from rarefy.tools.longtail.experiment import LongTailPretraining
from rarefy.tools.longtail.readings import LONG_TAIL, readings
from rarefy.train.simclr.method import Method

STUDY = "longtail-table"
SCALES = get_study(STUDY).scales
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


@dataclass(frozen=True, eq=False)
class Found:
    """Committed results of one scale, of which the largest rho is told."""

    study: Study
    scale: str
    results: xr.Dataset
    _told: dict[str, xr.Dataset] = field(default_factory=dict, repr=False)

    @property
    def data(self) -> str:
        return str(self.study.parameters()["data"])

    @property
    def epochs(self) -> int:
        return int(self.study.parameters()["epochs"])

    @property
    def weight_decay(self) -> float:
        return float(self.study.parameters()["weight_decay"])

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
    ) -> np.ndarray:
        """Per cent, one number per seed; NaN for what is not there."""
        there = method in self.ways and images in self.results["images"].values
        if not there or protocol not in self.protocols:
            return np.full(self.results.sizes["seed"], np.nan)
        if protocol not in self._told:
            self._told[protocol] = readings(self.results, protocol)
        told = self._told[protocol][name]
        return np.asarray(told.sel(images=images, rho=self.rho, algorithm=method).values)

    def gain(
        self,
        method: str,
        name: str = "overall",
        protocol: str = JUDGE,
        level: float = 0.95,
        over: str = BASELINE,
    ) -> OverOrders:
        """Over the baseline or another method, order by order of the classes."""
        both = (self.values(one, name, protocol) for one in (method, over))
        return over_orders(next(both) - next(both), self._pairs(), level)

    def mean(
        self, method: str, name: str = "overall", protocol: str = JUDGE, images: str = LONG_TAIL
    ) -> float:
        """Over pairs and single orders, as gains are."""
        return over_orders(self.values(method, name, protocol, images), self._pairs()).mean

    def gains(self, method: str) -> np.ndarray:
        """One number per pair or single order, NaN in the other places."""
        return by_pair(self.values(method) - self.values(BASELINE), self._pairs())

    def _pairs(self) -> list[int]:
        assert isinstance(self.study, LongTailPretraining)
        return self.study.pairs(self.results["seed"].values)

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


def at_rho(found: dict[str, Found], data: str, rho: float) -> dict[int, Found]:
    """By the number of epochs, what was run of a row of the table: all its methods, or two branches
    alone where they were run in more orders of the classes."""
    names = (f"{data}-rho{rho:g}-", *([f"{data}-branches-"] if rho == LARGEST else []))
    there = [one for scale, one in found.items() if scale.startswith(names)]
    there = [one for one in there if BRANCHES in one.ways or one.is_row]
    there.sort(key=lambda one: (one.epochs, len(one.gain(BRANCHES).values), one.is_row))
    return {one.epochs: one for one in there}


def by_length(found: dict[str, Found], data: str, method: str) -> dict[int, Found]:
    """By the number of epochs, results with this method; of several those with most orders."""
    there = [
        one
        for one in found.values()
        if one.data == data
        and (f"-rho{LARGEST}-" in one.scale or "-branches-" in one.scale)
        and one.gain(method).values
    ]
    there.sort(key=lambda one: (one.epochs, len(one.gain(method).values)))
    return {one.epochs: one for one in there}


def sets_of(found: dict[str, Found]) -> list[str]:
    return list(dict.fromkeys(one.data for one in found.values()))


def in_words(gain: OverOrders) -> str:
    """``+2.00, +3.00 (1 pair)``"""
    return f"{gain.shown()} ({gain.counted})"
