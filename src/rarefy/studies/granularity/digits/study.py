"""Odd or even, after pre-training on ten digits, on clusters or at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.core.parameters import Count
from rarefy.studies.granularity.digits import claims as judged
from rarefy.studies.granularity.images import charts
from rarefy.studies.granularity.images.recipe import TINY
from rarefy.tools.granularity.experiment import GranularityExperiment

KINDS = ("target", "once", "class", "kmeans-within:5", "kmeans:10", "random:10", "samples")


@dataclass(frozen=True, kw_only=True)
class GranularityDigits(GranularityExperiment, Study):
    """The questions of ``granularity-cifar100`` at the size of a CPU; it decides no claim."""

    name: ClassVar[str] = "granularity-digits"
    title: ClassVar[str] = "Odd or even: do the ten digits help? (bundled images)"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Fig. 5; Table 1"
    claims: ClassVar[tuple[str, ...]] = ("G6", "G7", "G8", "G10")
    paper_says: ClassVar[str] = (
        "004 Sec. 6.2 (Fig. 5, Table 1) has fine labels of a true hierarchy help, clusters help "
        "less, random ids and one label per sample harm, on half a million photographs. Here the "
        "same kinds of labels are tried on 1,797 scanned digits: the target is odd or even, the "
        "true finer labels are the ten digits."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "labels": KINDS},
        "quick": {},
        "paper": {"judged": True, "seeds": 10},
        # the recipe that was run first: short, at a rate at which some LeNets hardly learn
        "lenet": {
            "judged": True,
            "seeds": 10,
            "network": "lenet",
            "epochs": 6,
            "tune_epochs": 4,
        },
    }

    labels: tuple[str, ...] = KINDS
    epochs: Count = 10
    tune_epochs: Count = 5

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
