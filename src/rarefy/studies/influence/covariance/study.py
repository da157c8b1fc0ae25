"""Do real classes have noise of their own? Class covariances of images (003 Fig. 6, Fig. 1)."""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.influence.covariance import charts
from rarefy.studies.influence.covariance import claims as judged
from rarefy.studies.influence.covariance.experiment import CovarianceExperiment


class InfluenceCovariance(CovarianceExperiment, Study):
    """Fig. 6 without the bias of its diagonal, and Fig. 1's shapes put as a question that can be
    answered wrongly."""

    name: ClassVar[str] = "influence-covariance"
    title: ClassVar[str] = "Does every class of images have noise of its own?"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Fig. 6; Fig. 1"
    claims: ClassVar[tuple[str, ...]] = ("B12",)
    needs: ClassVar[str] = "a CPU; at scale paper also MNIST and CIFAR-10"
    paper_says: ClassVar[str] = (
        "003 takes noise to depend on the class: x = feature + A_y zeta. For MNIST it shows "
        "|A_i^T A_j|_F^2 = tr(Sigma_i Sigma_j) between all classes (Fig. 6), whose diagonal stands "
        "out, so that noise correlation ratios are large as Theorem 1, 2(b) needs them, and a "
        "t-SNE in which classes have different shapes (Fig. 1). Here: raw pixels, covariances from "
        "random halves of the training samples; overlaps with one covariance from each half of "
        "these, as an estimate multiplied with itself is too large on the diagonal; and, as t-SNE "
        "does not keep shapes, whether held-out samples without their class's mean still tell "
        "their class."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
