"""Labels ever finer, down to one per sample (004 Sec. 6.2 and 7)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.granularity.extreme import charts
from rarefy.studies.granularity.extreme import claims as judged
from rarefy.studies.granularity.extreme.experiment import ExtremeExperiment


class GranularityExtreme(ExtremeExperiment, Study):
    """Labels of one stored set, from the two sides to one per sample."""

    name: ClassVar[str] = "granularity-extreme"
    title: ClassVar[str] = "Labels ever finer: from two sides to one label a sample"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Section 7"
    claims: ClassVar[tuple[str, ...]] = ("G6",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "Granularity can be overdone: where every sample is a class of its own, only accidents of "
        "single samples tell classes apart (004 Sec. 7). Error against granularity is U-shaped in "
        "iNaturalist (Sec. 6.2, Fig. 5): networks pre-trained with one id a sample and then "
        "fine-tuned on the coarse question err on 6.54 %, those pre-trained with that question on "
        "5.25 %, with the best hierarchy on 4.79 % (Table 1). The theorems say nothing about "
        "labels finer than subclasses. In the multi-view model those accidents are feature "
        "strengths and the noise in the patches, whose size is therefore an axis here. Networks "
        "are compared after all are fine-tuned on the coarse question (with their outputs kept and "
        "fresh samples, where the paper puts a new last layer and takes the old samples)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
