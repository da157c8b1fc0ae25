"""Test loss over noise and kept coordinates (002 Fig. 1 and 2, Theorems 4.4 and 4.5, App. I)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.topk.phase import charts
from rarefy.studies.topk.phase import claims as judged
from rarefy.studies.topk.phase import tables as listed
from rarefy.studies.topk.phase.experiment import PhaseExperiment


class TopKPhase(PhaseExperiment, Study):
    """The phase diagram of TopK pruning, once for each reading of what "pruned" means."""

    name: ClassVar[str] = "topk-phase"
    title: ClassVar[str] = "Where TopK pruning rescues generalisation: noise against kept weights"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Fig. 1, 2; Thm 4.4, 4.5; App. I"
    claims: ClassVar[tuple[str, ...]] = ("S4", "S5", "S6", "S7", "S12")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (a day on two cores)"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "A two-layer network keeps the K largest coordinates of every filter while it trains. At "
        "low signal-to-noise ratio a K inside a window rescues generalisation: enough coordinates "
        "that the signal's is among them, few enough that noise cannot be memorised (002 Theorem "
        "4.4); below the window the test loss is of order log T (Theorem 4.5). For n = d = 200, "
        "T = 10, K = 2..200 and sigma_p = 0.01..1 the test loss is under 2 between "
        "K = 120 exp(-1/(2 sigma_p^2)) and K = 95/sigma_p^2 (Fig. 2), with a training loss under "
        "0.01 everywhere. Sec. 3 sets weights to zero and goes on with descent, ReLU'(0) = 1: a "
        "pruned coordinate may come back; Sec. 5.2 says that signals are irreversibly removed. Run "
        "are the first, the same with ReLU'(0) = 0, and a support that is final."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = listed.tables
