"""What long-tailed samples in the training set do for test accuracy (003 Sec. 3)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.benign.mixing import charts
from rarefy.studies.benign.mixing import claims as judged
from rarefy.studies.benign.mixing.experiment import MixingExperiment


class BenignMixing(MixingExperiment, Study):
    """A training set of fixed size, with few or many long-tailed samples in it."""

    name: ClassVar[str] = "benign-mixing"
    title: ClassVar[str] = "Long-tailed samples in the training set, and what they are good for"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Sec. 3"
    claims: ClassVar[tuple[str, ...]] = ("B14",)
    needs: ClassVar[str] = "a CPU; a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "On long-tailed data accuracy grows with the noise correlation ratio Gamma (003 Theorem 1 "
        "2(b)). Sec. 3 concludes that more long-tailed samples in the training set raise test "
        "accuracy, as others have seen with images; Sec. 5.2 scores a sample by what it adds to "
        "the covariance of its class. The paper shows no synthetic experiment. Here a sample is "
        "long-tailed if |zeta| >= 2 along its class's special direction, and the training set "
        "keeps its size. More such samples also make the noise stronger there, so a control "
        "lowers the eigenvalue until the second moment is what it was: what is left is due to "
        "the tail itself. Trained with the mean of (1) until the loss is small; and the printed "
        "training carried on, with the sum over filters."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
