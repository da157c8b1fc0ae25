"""Test accuracy over feature strength and noise correlation ratio (003 Fig. 3, Theorem 1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.correlation import charts
from rarefy.studies.benign.correlation import claims as judged
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment


class BenignCorrelation(CorrelationExperiment, Study):
    """The maps of Fig. 3, for three laws of the noise and two trainings."""

    name: ClassVar[str] = "benign-correlation"
    title: ClassVar[str] = "Learning from noise: feature strength against noise correlation"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Fig. 3; Theorem 1"
    claims: ClassVar[tuple[str, ...]] = ("B3", "B4", "B5", "B6")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (a day on two cores)"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "Where the noise of each class has a shape of its own, a network that memorises it also "
        "learns to tell classes by it: test accuracy rises with feature strength |u| and with the "
        "noise correlation ratio Gamma, and at a large Gamma it is near-optimal with hardly any "
        "feature (003 Sec. 5.1, Fig. 3; Gaussian and uniform noise). Theorem 1: error on all data "
        "at most a sum of exp(-c_1 |S||u|^4/|A_k^T A_j|_F^2), error on L-long-tailed data at most "
        "a sum of exp(-c_2 L^2 Gamma), and error above a constant where both ratios are small. "
        "The printed training (mean over filters, PyTorch's initialisation, rate 0.05, 20 "
        "full-batch steps) hardly moves the training loss from log K. A second one, trained until "
        "the loss is small as Theorem 1 has it, was chosen after that had been seen. "
        "Optimal is measured against the best classifier by noise alone."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
