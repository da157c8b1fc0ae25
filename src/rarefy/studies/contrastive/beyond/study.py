"""Two assumptions dropped: attention that is trained, and features that come together."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.beyond import charts
from rarefy.studies.contrastive.beyond import claims as judged
from rarefy.studies.contrastive.beyond.experiment import BeyondExperiment


class ContrastBeyond(BeyondExperiment, Study):
    """Imbalance and pruning when W_Q, W_K are trained and when a rare feature has a companion."""

    name: ClassVar[str] = "contrast-beyond"
    title: ClassVar[str] = "Trained attention, and rare features that come with a frequent one"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3; Theorem 3.2"
    claims: ClassVar[tuple[str, ...]] = ("C10", "P3")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "000 starts from W_Q = W_K = identity and analyses them as fixed, and lets features appear "
        "independently of each other. Here both assumptions are dropped, alone and together: does "
        "a rare feature still align with fewer, weaker neurons (Fig. 2-3), and does pruning give "
        "it more pure neurons (Theorem 3.2)?"
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
