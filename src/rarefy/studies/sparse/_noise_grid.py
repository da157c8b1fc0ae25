"""What the two studies of noise levels and keep ratios share (002 Tables 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Picture, Table
from rarefy.studies.sparse._grid_pictures import grid_pictures
from rarefy.studies.sparse._grid_tables import grid_tables
from rarefy.studies.sparse._grid_verdicts import grid_verdicts
from rarefy.studies.sparse._published import KEEP, NOISE, Published
from rarefy.studies.sparse._sparse import SMALLEST, SparseTraining

QUICK: dict[str, Any] = {
    "seeds": 2,
    "data": "digits",
    "compile": False,
    "noise": (0.0, 0.5, 5.0),
    "test_noise": (0.0, 0.5, 5.0),
    "keep": (1.0, 0.5, 0.1),
    "update": ("project",),
    "epochs": 10,
    "batch": 64,
    "shift": 0,
    "flip": False,
    "watched": 5,
}
TINY: dict[str, Any] = {**QUICK, **SMALLEST, "noise": (0.0, 5.0), "test_noise": (0.0, 5.0)}
SCALES: dict[str, dict[str, Any]] = {
    "tiny": TINY,
    "quick": QUICK,
    "paper": {},
    "std": {"noise_unit": "std", "keep": (1.0, 0.5, 0.1), "seeds": 1},
}
"""``std``: the same with noise in units of the pixels' std (added after normalising)."""


@dataclass(frozen=True, kw_only=True)
class NoiseGrid(SparseTraining):
    """A published table of noise levels and keep ratios. Every network is asked at every noise
    level, so that noise in training only, in the test only, and in both are all there."""

    published: ClassVar[Published]

    keep: tuple[float, ...] = KEEP
    update: tuple[str, ...] = ("project", "dense")
    noise: tuple[float, ...] = NOISE
    test_noise: tuple[float, ...] = NOISE
    watched: int = 1

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return grid_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return grid_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return grid_tables(self, results)
