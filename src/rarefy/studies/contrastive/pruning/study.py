"""Pruning small neurons while training, and what it does to rare features (000 Theorem 3.2)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.pruning import charts
from rarefy.studies.contrastive.pruning import claims as judged
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment


class ContrastPruning(PruningExperiment, Study):
    """With and without pruning from the same state and the same draws."""

    name: ClassVar[str] = "contrast-pruning"
    title: ClassVar[str] = "Leaving small neurons out while training: when do rare features grow?"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Theorem 3.2; Lemma F.2"
    claims: ClassVar[tuple[str, ...]] = ("P2", "P3", "P4", "P5")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    paper_says: ClassVar[str] = (
        "Neurons of a rare feature are small, so magnitude pruning leaves them out; samples with "
        "that feature then look badly matched (Lemma F.2), weigh more in the update, and since "
        "pruned neurons are still updated (5), they grow: by order alpha/d a step along the rare "
        "feature against alpha/d^2 along others (15)-(16), until their weight no longer depends "
        "on the imbalance (18) and of order m/d neurons are pure in it (000 Theorem 3.2)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
