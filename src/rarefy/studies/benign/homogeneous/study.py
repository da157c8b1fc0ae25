"""The classical transition between harmful and benign overfitting: two classes with noise of one
kind (003 footnote 2 and Remark 5)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.homogeneous import charts
from rarefy.studies.benign.homogeneous import claims as judged
from rarefy.studies.benign.homogeneous.experiment import HomogeneousExperiment


class BenignHomogeneous(HomogeneousExperiment, Study):
    """The boundary |u|^4 ~ d/n of benign overfitting, measured."""

    name: ClassVar[str] = "benign-homogeneous"
    title: ClassVar[str] = "Noise of one kind: where harmful overfitting turns benign"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "footnote 2; Remark 5"
    claims: ClassVar[tuple[str, ...]] = ("B15",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (half a minute; an hour on two cores)"
    paper_says: ClassVar[str] = (
        "With two classes whose noise covers all directions but the features' alike, the model of "
        "003 is the usual one of features and noise (footnote 2), and Theorem 1, 2(a) has the "
        "order known from Kou et al. 2023 (Remark 5): the test error is small where n |u|^4 is "
        "large against sigma^4 d and above a constant where it is small, so that the |u| at which "
        "it changes goes like (d/n)^(1/4). Trained with the mean of (1) until the loss is "
        "small; and the printed training carried on, with the sum over filters."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
