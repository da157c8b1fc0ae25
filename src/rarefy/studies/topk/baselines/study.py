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
        "the loss and the error on other samples. Whether a pruned coordinate may come back is "
        "not said in the paper: both readings are run. A signal's coordinate can only come back "
        "with ReLU'(0) = 1, which the paper says it uses (Sec. 3); that reading is also run with "
        "ReLU'(0) = 0, as automatic differentiation has it."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
