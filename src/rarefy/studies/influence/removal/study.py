"""What leaving out high, low or random scores does to test accuracy (003 Fig. 7)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.influence.removal import charts, tables
from rarefy.studies.influence.removal import claims as judged
from rarefy.studies.influence.removal.experiment import RemovalExperiment


class InfluenceRemoval(RemovalExperiment, Study):
    """Fig. 7 with the controls it lacks: random removal, plainer scores, several seeds, and the
    same share from every class beside the paper's sorting of the whole set."""

    name: ClassVar[str] = "influence-removal"
    title: ClassVar[str] = "What is lost when atypical samples are left out?"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Fig. 7"
    claims: ClassVar[tuple[str, ...]] = ("B13",)
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "003 Sec. 5.2 sorts MNIST and CIFAR-10 by the influence score of Eq. (10), leaves out a "
        "share with the highest or the lowest scores and trains LeNet or ResNet-18 on the rest "
        "(Fig. 7): leaving out high scores costs far more test accuracy. Fractions, repeats and a "
        "random control are not given. Here: also at random and by plainer scores (distance to the "
        "class mean, class Mahalanobis, norm, neighbours' labels), from each class the same share "
        "or from the whole set, asked on all test samples, on their tail (the tenth of each class "
        "with the highest held-out influence) and, as that is the score's own choice, on the tenth "
        "farthest from the class mean."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables
