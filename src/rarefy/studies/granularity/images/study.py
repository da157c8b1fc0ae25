"""Any image set: pre-training on its levels beside each other (``rarefy granularity``)."""

from __future__ import annotations

from typing import Any, ClassVar

import xarray as xr

from rarefy.core.contracts import Study, Verdict
from rarefy.studies.granularity.images import charts
from rarefy.tools.granularity.images import ImageGranularity


class GranularityImages(ImageGranularity, Study):
    """What ``rarefy granularity`` runs. It judges no claim: answers are about the papers' data, the
    tool's own sentence about the user's."""

    name: ClassVar[str] = "granularity-images"
    title: ClassVar[str] = "Your own images: how fine should the labels of pre-training be?"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Fig. 5; Table 1"
    claims: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[str] = "a CPU for digits; the data set, and a GPU for photographs"
    paper_says: ClassVar[str] = (
        "004 Sec. 6.2 finds that pre-training on finer labels of a true hierarchy lowers the error "
        "on coarse ones, up to a point. This study asks it of any image set: rarefy granularity "
        "DATA --hierarchy FILE runs it. The same seed means the same first weights and the same "
        "images in the same order for all labels."
    )

    scales: ClassVar[dict[str, dict[str, Any]]] = {
        **ImageGranularity.scales,
        "tiny": {**ImageGranularity.scales["tiny"], "judged": True},
    }

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return []

    picture = charts.pictures
    tables = charts.tables
