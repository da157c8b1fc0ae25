"""The three stages of contrastive learning under imbalance (000 Lemmas 3.1-3.2, Fig. 1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.contrastive.dynamics import charts
from rarefy.studies.contrastive.dynamics import claims as judged
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment


class ContrastDynamics(DynamicsExperiment, Study):
    """Growth rates, stage times and what Theorems C.1 and D.1 say about them."""

    name: ClassVar[str] = "contrast-dynamics"
    title: ClassVar[str] = "Three stages: features grow by frequency, then neurons specialise"
    papers: ClassVar[tuple[str, ...]] = ("000", "001")
    shows: ClassVar[str] = "Fig. 1; Lemmas 3.1, 3.2; Theorems C.1, D.1"
    claims: ClassVar[tuple[str, ...]] = ("C1", "C2", "C3", "C4", "C14")
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper and needed at scale large"
    paper_says: ClassVar[str] = (
        "Stage 1: the projection of a neuron on feature j grows by 1 - eta lambda + c eps_j a "
        "step, and what lies outside the feature space only decays (7)-(8). It ends at T1, when "
        "half of every neuron's squared norm lies in the feature space (34); Theorem C.1 lists "
        "what holds then. Stage 2 raises the bias and ends at T2, when some squared norm has "
        "grown d-fold (61); lucky neurons have specialised by then (9)-(10). Fig. 1 shows one "
        "neuron going through the stages."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
