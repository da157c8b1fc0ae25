"""Does the influence score put hard images first? (003 Fig. 5, as numbers)"""

from __future__ import annotations

from typing import ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.influence.gallery import charts
from rarefy.studies.influence.gallery import claims as judged
from rarefy.studies.influence.gallery.experiment import GalleryExperiment


class InfluenceGallery(GalleryExperiment, Study):
    """Fig. 5 shows some images with high and low scores. Here all are asked, by classifiers that
    were trained without them, and plainer scores stand beside."""

    name: ClassVar[str] = "influence-gallery"
    title: ClassVar[str] = "Are images with high influence scores the hard ones?"
    papers: ClassVar[tuple[str, ...]] = ("003",)
    shows: ClassVar[str] = "Eq. (10); Fig. 5"
    claims: ClassVar[tuple[str, ...]] = ("B11",)
    needs: ClassVar[str] = "a CPU; at scale paper also MNIST and CIFAR-10"
    paper_says: ClassVar[str] = (
        "003 Sec. 5.2 scores an image by what the squared norm of its class's covariance loses "
        "without it, Eq. (10), and shows images of MNIST and CIFAR-10 with high and low scores "
        "(Fig. 5): high ones are said to be atypical, scrawly digits and objects hard to classify. "
        "Here every image is classified by logistic regression and by nearest neighbours on "
        "principal components, trained on other images; if high scores mark hard images, the tenth "
        "of each class with the highest scores is misclassified more often than the lowest tenth; "
        "if they are rare, it lies farther from its nearest neighbours in the class. "
        "Beside it the plainer distance to the class mean, class Mahalanobis distance and norm."
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
