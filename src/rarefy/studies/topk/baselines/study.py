"""TopK pruning against cheap remedies: random masks, weight decay, early stopping (002)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.topk.baselines import charts
from rarefy.studies.topk.baselines import claims as judged
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment


class TopKBaselines(BaselinesExperiment, Study):
    """Every method at the knob that a validation set prefers, compared on test samples."""

    name: ClassVar[str] = "topk-baselines"
    title: ClassVar[str] = "Is it TopK pruning that rescues generalisation, or would anything do?"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Thm 4.4"
    claims: ClassVar[tuple[str, ...]] = ("S4",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (hours on two cores)"
    paper_says: ClassVar[str] = (
        "At low signal-to-noise ratio dense training memorises noise (002 Theorem 4.3) and TopK "
        "pruning with K in a window generalises (Theorem 4.4). The paper compares with dense "
        "training only. Here the same network on the same samples is also given a random mask of "
        "the same size, weight decay, and early stopping. K, weight decay and stopping time are "
        "chosen, seed by seed, by the loss on a validation set of their own; what is compared is "
        "the loss and the error on other samples, where TopK may bring pruned coordinates back "
        "(Sec. 3); two other readings of it are in the table."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
