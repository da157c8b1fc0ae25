"""How training goes and what the filters hold at its end (003 Lemmas 1-7, App. B and C.1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.training import charts
from rarefy.studies.benign.training import claims as judged
from rarefy.studies.benign.training import tables as tabled
from rarefy.studies.benign.training.experiment import TrainingExperiment


class BenignTraining(TrainingExperiment, Study):
    """Two stages of training, then active filters, memory and balance."""

    name: ClassVar[str] = "benign-training"
    title: ClassVar[str] = "How the loss falls, and what filters memorise on the way"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Lemmas 1-7"
    claims: ClassVar[tuple[str, ...]] = ("B1", "B2", "B10")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (about 5e14 operations)"
    paper_says: ClassVar[str] = (
        "In stage 1 the loss of each sample falls geometrically, at a rate of order eta |S_y| "
        "|u_y|^2/(m n) (003 Lemma 1); from T_0 on the mean training loss falls like 1/t, bounded "
        "by |W(T_0) - W*|_F^2/(eta t) + eps/2 (Lemma 2). At the end W_j A_j has rank 0.9 m at "
        "least and singular values between bounds (Lemma 3), a tenth of the filters or more are "
        "active on fresh noise (Lemma 4), a class's filters have memorised their own class's "
        "noise (Lemma 5), to an amount given by |A_y^T A_j|_F and b(S_j) (Lemma 6, (8)), and the "
        "residuals of all samples are within a constant of each other (Lemma 7). The lemmas' "
        "constants carry the 1/m of (1), so filters are averaged here. No network of feasible "
        "size meets all of Condition 1: Lemmas 3-7 are looked at where there are many more filters "
        "than samples, as it asks, and at the size of the paper's experiments; rates and sizes "
        "are our choice."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tabled.tables
