"""Test accuracy over noise correlation ratio and class size, without a feature (003 Fig. 4b)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.sizes import charts
from rarefy.studies.benign.sizes import claims as judged
from rarefy.studies.benign.sizes.experiment import SizesExperiment


class BenignSizes(SizesExperiment, Study):
    """The map of Fig. 4b, for several trainings."""

    name: ClassVar[str] = "benign-sizes"
    title: ClassVar[str] = "Learning from noise: does it take many samples?"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Fig. 4b"
    claims: ClassVar[tuple[str, ...]] = ("B8",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (an hour on two cores)"
    paper_says: ClassVar[str] = (
        "With next to no feature (|u| = 1e-6) test accuracy depends on the noise correlation "
        "ratio Gamma, from 1 to 800, and stays of one order over class sizes |S| from 10 to 200 "
        "(003 Fig. 4b): Theorem 1, 2(b), has Gamma in its bound and, for equal classes, no |S|. "
        "Trained as printed with the sum over filters; and with the mean of (1), until the "
        "training loss is small ('trained')."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
