"""Superclasses of CIFAR-100 after pre-training at many granularities (004 Fig. 5, Tables 1, 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.granularity.cifar100 import claims as judged
from rarefy.studies.granularity.images import charts
from rarefy.studies.granularity.images.recipe import SMALL, TINY, CifarTransfer

OTHER_SIZES = (
    *("target", "kmeans-within:38", "rebalanced:2", "rebalanced:38", "kmeans:40", "kmeans:768"),
    *("random-within:5", "random:40", "random:768", "samples"),
)
"""Sizes of made labels beside those with several seeds."""
FEW = ("target", "once", "class", "kmeans-within:2", "rebalanced:2", "kmeans:10", "random:10")


@dataclass(frozen=True, kw_only=True)
class GranularityCifar100(CifarTransfer):
    """Every kind of labels beside re-training, on 20 superclasses."""

    name: ClassVar[str] = "granularity-cifar100"
    title: ClassVar[str] = "How fine should the labels of pre-training be?"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Fig. 5; Tables 1, 2"
    claims: ClassVar[tuple[str, ...]] = ("G7", "G8", "G9", "G10", "G15")
    needs: ClassVar[str] = "a CPU for digits; CIFAR-100 and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "004 Sec. 6.2 pre-trains a ResNet-34 on iNaturalist 2021 with labels of many "
        "granularities and fine-tunes it on 11 superclasses (Fig. 5, Tables 1, 2). Error over the "
        "number of pre-training classes is a U for the manual hierarchy; clusters within "
        "superclasses gain little, clusters of the whole set and random ids lose, all against "
        "re-training on the superclasses, which beats one pass on them. Here CIFAR-100 stands in: "
        "20 superclasses, 100 classes, 762 nouns of its file names; clusters are of the "
        "features of a network trained on the superclasses, not of CLIP's."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "labels": FEW, "checkpoints": (0.5, 1.0)},
        "quick": {**SMALL, "seeds": 3, "labels": FEW, "checkpoints": (0.5, 1.0), "judged": True},
        "paper": {},
        "grid": {"seeds": 1, "labels": OTHER_SIZES},
        "checkpoints": {
            "labels": ("target", "class", "noun"),
            "checkpoints": (0.5, 1.0),
            "tune_epochs": 16,
            "judged": True,
            "looks": 8,  # the first of them while the rate still rises
        },
    }

    target: str = "coarse"
    labels: tuple[str, ...] = (
        *("target", "once", "class", "noun", "kmeans-within:2", "kmeans-within:5"),
        *("rebalanced:5", "kmeans:100", "random:100"),
    )

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
