"""What the two studies of noise levels and keep ratios share (002 Tables 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Picture, Table
from rarefy.studies.sparse.grid_charts import grid_pictures
from rarefy.studies.sparse.grid_claims import grid_verdicts
from rarefy.studies.sparse.grid_tables import grid_tables
from rarefy.studies.sparse.published import KEEP, NOISE, Published
from rarefy.studies.sparse.training import SMALLEST, SparseTraining

QUICK: dict[str, Any] = {
    "seeds": 2,
    "data": "digits",
    "compile": False,
    "noise": (0.0, 0.5, 5.0),
    "test_noise": (0.0, 0.5, 5.0),
    "keep": (1.0, 0.5, 0.1),
    "noise_unit": "pixel",
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
    "pixel": {"noise_unit": "pixel", "seeds": 1},
    "rules": {
        "noise": (0.0, 0.5),
        "test_noise": (0.0, 0.5),
        "keep": (1.0, 0.1),
        "update": (
            "project",
            "dense",
            "masked",
            "project+layer",
            "project+global",
            "project+inner",
            "project+epoch",
        ),
    },
}
"""``pixel``: noise in pixels scaled to [0, 1]. ``rules``: other ways to prune to a tenth, at two
noise levels."""


@dataclass(frozen=True, kw_only=True)
class NoiseGrid(SparseTraining):
    """A published table of noise levels and keep ratios. Every network is asked at every noise
    level, so that noise in training only, in the test only, and in both are all there."""

    published: ClassVar[Published]

    keep: tuple[float, ...] = KEEP
    noise_unit: str = "std"
    noise: tuple[float, ...] = NOISE
    test_noise: tuple[float, ...] = NOISE
    watched: int = 1

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return grid_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return grid_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return grid_tables(self, results)
