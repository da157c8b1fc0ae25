"""What the two studies of S8 share: accuracy against the share of weights that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Picture, Table
from rarefy.studies.sparse.curve_charts import curve_pictures
from rarefy.studies.sparse.curve_claims import curve_verdicts
from rarefy.studies.sparse.curve_tables import curve_tables
from rarefy.studies.sparse.training import SMALLEST, SparseTraining

KEEPS = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3, 0.2, 0.1, 0.05)
QUICK = {
    "seeds": 3,
    "data": "digits",
    "compile": False,
    "keep": (1.0, 0.8, 0.5, 0.3, 0.1),
    "update": ("project",),
    "epochs": 8,
    "batch": 64,
    "learning_rate": 0.05,
    "watched": 4,
}
TINY = {**QUICK, **SMALLEST, "keep": (1.0, 0.5, 0.1), "drawn": ("fresh",)}


@dataclass(frozen=True, kw_only=True)
class KeepCurve(SparseTraining):
    """A figure of accuracies over keep ratios, for each reading of what the paper leaves open."""

    claims: ClassVar[tuple[str, ...]] = ("S8", "S12")

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return curve_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return curve_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return curve_tables(self, results)
