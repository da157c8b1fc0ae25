"""What becomes of the small classes when one class gets more data (003 Sec. 3, after Theorem 1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.majority import charts
from rarefy.studies.benign.majority import claims as judged
from rarefy.studies.benign.majority.experiment import MajorityExperiment


class BenignMajority(MajorityExperiment, Study):
    """One class (the last) grows, the others stay small: what the small ones lose in the tail."""

    name: ClassVar[str] = "benign-majority"
    title: ClassVar[str] = "More data of one class: what becomes of the others' tails"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Sec. 3"
    claims: ClassVar[tuple[str, ...]] = ("B9",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "Theorem 1 2(b) of 003 bounds the error of class k on long-tailed data by a sum over the "
        "other classes j of exp(-c L^2 Gamma_kj), and Gamma_kj falls as 1/|S_j|. Hence, says Sec. "
        "3, accuracy on long-tailed data of a class may fall when other classes get more data: "
        "memorised noise of the majority outweighs that of the minority. The paper shows no "
        "experiment. More samples of a class change more than Gamma, so three controls take apart "
        "what Gamma does and what else does. Trained with the mean of (1) until the loss is small; "
        "and the printed training carried on, with the sum over filters."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
