"""Any image set, any network: dense and pruned trainings beside each other (``rarefy train``)."""

from __future__ import annotations

from typing import ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies.sparse.images import charts, tables
from rarefy.tools.train_images import TrainImages


class TrainImagesStudy(TrainImages, Study):
    """What ``rarefy train`` runs. It judges no claim: answers are about the papers' data, the
    tool's own sentence about the user's."""

    name: ClassVar[str] = "train-images"
    title: ClassVar[str] = "Your own images: dense and pruned beside each other"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Fig. 3; Fig. 4; App. A.2"
    claims: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "The TopK paper, App. A.2, finds that a network that keeps some of its weights while it "
        "trains does better on test images than the dense one. This study asks it of any image "
        "set: rarefy train DATA --keep 0.3 runs it. The same seed means the same first weights, "
        "the same batches and the same noise for the dense and the pruned network."
    )

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return []

    picture = charts.pictures
    tables = tables.tables
