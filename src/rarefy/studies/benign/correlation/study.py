"""Test accuracy over feature strength and noise correlation ratio (003 Fig. 3)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.correlation import charts
from rarefy.studies.benign.correlation import claims as judged
from rarefy.studies.benign.correlation.experiment import CorrelationExperiment


class BenignCorrelation(CorrelationExperiment, Study):
    """The maps of Fig. 3, for several laws of the noise and trainings."""

    name: ClassVar[str] = "benign-correlation"
    title: ClassVar[str] = "Learning from noise: feature strength against noise correlation"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Fig. 3"
    claims: ClassVar[tuple[str, ...]] = ("B6",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (two hours on two cores)"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "Where the noise of each class has a shape of its own, a network that memorises it also "
        "learns to tell classes by it: test accuracy rises with feature strength |u| and with the "
        "noise correlation ratio Gamma, and at a large Gamma it is near-optimal with hardly any "
        "feature (003 Sec. 5.1, Fig. 3; Gaussian and uniform noise). Trained as printed (rate "
        "0.05, 20 full-batch steps, PyTorch's initialisation), with the sum over filters: with "
        "the mean that (1) prints this recipe does not train. The mean is run too, until its loss "
        "is small ('trained'). Optimal is measured against the best classifier by noise alone."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
