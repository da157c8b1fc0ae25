"""How long the first stage of training takes (002 Lemmas F.1 and H.1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.topk.stages import charts
from rarefy.studies.topk.stages import claims as judged
from rarefy.studies.topk.stages.experiment import StagesExperiment


class TopKStages(StagesExperiment, Study):
    """Steps until signal or noise is learnt, one quantity varied at a time."""

    name: ClassVar[str] = "topk-stages"
    title: ClassVar[str] = "How long it takes to learn the signal, or to memorise the noise"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "App. F.1, H.1"
    claims: ClassVar[tuple[str, ...]] = ("S11",)
    needs: ClassVar[str] = "a CPU; a GPU is advisable at scale paper"
    paper_says: ClassVar[str] = (
        "Where the signal wins, every filter that begins on the positive side of its signal holds "
        "gamma >= 3 after a number of steps proportional to m T/(eta mu^2) (002 Lemma F.1). Where "
        "the noise wins, every filter that begins on the positive side of a sample's noise holds "
        "rho >= 3 of it after a number proportional to m n/(eta sigma_p^2 d) (Lemma H.1). Each "
        "quantity is varied while all others, the learning rate included, stay as they are."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
