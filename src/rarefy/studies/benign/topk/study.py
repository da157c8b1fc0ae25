"""TopK pruning in the world of 003: does it destroy the noise that is useful?"""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.topk import charts
from rarefy.studies.benign.topk import claims as judged
from rarefy.studies.benign.topk.experiment import TopKExperiment


class BenignTopK(TopKExperiment, Study):
    """Of every filter only the K coordinates of largest magnitude stay after each update."""

    name: ClassVar[str] = "benign-topk"
    title: ClassVar[str] = "TopK where noise is useful: does pruning destroy what was memorised?"
    papers: ClassVar[tuple[str, ...]] = ("002", "003")
    shows: ClassVar[str] = "our question"
    claims: ClassVar[tuple[str, ...]] = ("Q2",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 has TopK pruning keep networks from memorising noise; in the world of 003 memorised "
        "noise is what classes are told by. Neither paper puts the two together. Here networks "
        "without a feature are trained with the mean of (1) until their loss is small, while of "
        "every filter only the K largest of d coordinates stay after each update: pruned ones may "
        "come back, or the support of the first update is final. In 003's setting the useful "
        "directions are spread over all coordinates; the other basis has them on coordinates."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
