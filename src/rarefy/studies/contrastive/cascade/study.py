"""Pruning with three frequencies: the rarest level first? (000 Theorem 3.2, Remark 1)"""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.cascade import charts
from rarefy.studies.contrastive.cascade import claims as judged
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment


class ContrastCascade(CascadeExperiment, Study):
    """Levels of frequency under pruning and, from the same draws, without it."""

    name: ClassVar[str] = "contrast-cascade"
    title: ClassVar[str] = "Pruning with several frequencies: the rarest level first, then the next"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Theorem 3.2, Remark 1"
    claims: ClassVar[tuple[str, ...]] = ("P7",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "Theorem 3.2 is proved for one rare feature among comparable ones. For several frequencies "
        "its Remark 1 expects a cascade: neurons of the rarest feature are the smallest, so they "
        "are pruned and grow until they are as large as those of the next rarest; from then on "
        "both are pruned and grow, and so on upward (000, without proof). This presupposes neurons "
        "that are pure, as large as their feature is frequent (13), and changed by nothing else."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
