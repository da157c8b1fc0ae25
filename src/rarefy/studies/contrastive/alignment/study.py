"""How imbalance changes what neurons align with (000 Fig. 2-3, Theorem 3.1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.alignment import charts
from rarefy.studies.contrastive.alignment import claims as judged
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment


class ContrastAlignment(AlignmentExperiment, Study):
    """Alignment of neurons with majority and minority features against eps_min."""

    name: ClassVar[str] = "contrast-alignment"
    title: ClassVar[str] = "Rarer features are carried by fewer, less pure neurons"
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Fig. 2-3; Theorem 3.1 (14)"
    claims: ClassVar[tuple[str, ...]] = ("C7", "C8", "C10")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "When some features are rarer (eps_min below 1), fewer neurons align with them and the "
        "best alignment is weaker (Fig. 2-3). At convergence the number of features a neuron mixes "
        "is at most of order d^(1-(eps_min/eps_max)^2) (14), and at least of order "
        "m d^(-(eps_max/eps_min)^2) neurons are pure in each feature (Theorem 3.1)."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
