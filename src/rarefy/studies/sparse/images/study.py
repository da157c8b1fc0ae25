"""Any image set, any network: dense and pruned trainings beside each other (``rarefy train``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Picture, Table
from rarefy.measure.statistics import judge_difference
from rarefy.studies.sparse.curve_charts import curve_pictures
from rarefy.studies.sparse.curve_tables import curve_tables
from rarefy.studies.sparse.readings import at_test_noise, readings, setting_of
from rarefy.studies.sparse.training import SMALLEST, SparseTraining


@dataclass(frozen=True, kw_only=True)
class TrainImages(SparseTraining):
    """What ``rarefy train`` fills: the claim of S8 asked of one's own data."""

    name: ClassVar[str] = "train-images"
    title: ClassVar[str] = "Your own images: dense and pruned beside each other"
    paper_says: ClassVar[str] = (
        "002 App. A.2 finds that a network that keeps some of its weights while it trains does "
        "better on test images than the dense one. This study asks it of any image set: "
        "`rarefy train DATA --keep 0.3` runs it. The same seed means the same first weights, the "
        "same batches and the same noise for the dense and the pruned network."
    )
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Fig. 3, 4, A.2"
    claims: ClassVar[tuple[str, ...]] = ("S8",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": SMALLEST,
        "quick": {},
        "paper": {"seeds": 10, "epochs": 40},
    }

    keep: tuple[float, ...] = (1.0, 0.3)
    batch: int = 64
    learning_rate: float = 0.05

    @property
    def setting(self) -> str:
        return f"{self.data}, {self.network}"

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        found = []
        for words, part in readings(results, ("update", "drawn", "noise")):
            for level in results["test_noise"].values:
                paired = at_test_noise(part, float(level))
                for keep in paired.thinned:
                    named = [words, f"keep {keep:g}"]
                    named += [f"test noise {level:g}"] if len(results["test_noise"]) > 1 else []
                    what = "better than dense"
                    setting = setting_of(self, ", ".join(word for word in named if word), what)
                    found.append(
                        judge_difference(
                            ("S8", self.name, scale, setting),
                            paired.difference(keep)[:, 0],
                            "positive",
                            note="points of test accuracy",
                        )
                    )
        return found

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return curve_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return curve_tables(self, results)
