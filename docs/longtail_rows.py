"""Committed results of long-tailed pre-training, scale by scale, and the numbers asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from rarefy.core.contracts import Study
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.studies.longtail._words import LINEAR
from rarefy.studies.longtail.longtail_table import LongTailTable
from rarefy.sweep.results import find_results, read_results
from rarefy.tools.longtail.readings import LONG_TAIL, difference, readings
from rarefy.train.contrast.method import Method

STUDY = LongTailTable.name
NOT_RUN = "not run yet"
BASELINE = "simclr"
JUDGE = LINEAR


@dataclass(frozen=True, eq=False)
class Found:
    """Committed results of one scale."""

    study: Study
    scale: str
    results: xr.Dataset

    def methods(self, kind: str) -> list[str]:
        names = [str(name) for name in self.results["way"].values]
        return [name for name in names if Method.parse(name).kind == kind]

    @property
    def data(self) -> str:
        return str(self.study.parameters()["data"])

    @property
    def epochs(self) -> int:
        return int(self.study.parameters()["epochs"])

    @property
    def rho(self) -> float:
        return float(self.results["rho"].values[-1])

    @property
    def name(self) -> str:
        return f"{set_name(self.data)}, rho {self.rho:g}"

    def gain(self, method: str, name: str = "overall", protocol: str = JUDGE) -> Interval:
        told = readings(self.results, protocol)
        return difference(told, name, method, BASELINE, images=LONG_TAIL, rho=self.rho)

    def gain_count(self, method: str) -> int:
        """Orders of the classes behind a gain."""
        return self.gain(method).n if method in self.results["way"].values else 0

    def masked_gain(self, method: str) -> Interval:
        """Of the masked network over the dense baseline."""
        kept = readings(self.results, JUDGE, "masked_accuracy")["overall"]
        plain = readings(self.results, JUDGE)["overall"]
        both = kept.sel(images=LONG_TAIL, way=method) - plain.sel(images=LONG_TAIL, way=BASELINE)
        return mean_interval(both.values.reshape(-1))

    def mean(self, method: str, name: str, images: str = LONG_TAIL) -> Interval:
        told = readings(self.results, JUDGE)[name].sel(images=images, way=method)
        return mean_interval(told.values.reshape(-1))


def committed(folder: Path) -> dict[str, Found]:
    """Results of the study by scale."""
    found = {}
    for path in find_results(folder):
        if path.stem.startswith((f"{STUDY}-cifar", f"{STUDY}-digits-")):
            study, scale, results = read_results(path)
            found[scale] = Found(study, scale, results)
    return found


def shown(found: Interval, signed: bool = False) -> str:
    """Mean, and its 95 % interval where there is one."""
    form = "+.2f" if signed else ".2f"
    ends = f" [{found.low:{form}}, {found.high:{form}}]" if found.n > 1 else ""
    return f"{found.mean:{form}}{ends}" if found.n else "-"


def orders(n: int) -> str:
    return f"{n} order" + "s" * (n != 1)


def set_name(data: str) -> str:
    return {
        "digits": "digits",
        "cifar10": "CIFAR10-LT",
        "cifar100": "CIFAR100-LT",
        "imagenet": "ImageNet-LT",
    }[data]
