"""A target with two classes; made hierarchies of fine classes (004 Tables 4, 5, 6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.granularity.binary import claims as judged
from rarefy.studies.granularity.images import charts
from rarefy.studies.granularity.images.recipe import SMALL, TINY, CifarTransfer

FEW = ("target", "once", "class", "kmeans-within:2", "random-within:2")


@dataclass(frozen=True, kw_only=True)
class GranularityBinary(CifarTransfer):
    """Living things or not, pre-trained at each level; at scale classes: 100 classes, cut finer."""

    name: ClassVar[str] = "granularity-binary"
    title: ClassVar[str] = "When finer labels bring nothing: few of them, or made ones"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Tables 4, 5, 6"
    claims: ClassVar[tuple[str, ...]] = ("G10", "G15", "G16")
    needs: ClassVar[str] = "a CPU for digits; CIFAR-100 and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "004 App. A.1.2 asks a ViT-B/16 whether an image of ImageNet21k shows a living thing "
        "(Tables 4, 5): the gain over re-training is largest with leaf labels and goes to 0 as "
        "the number of pre-training classes nears 2; a linear probe of the leaf network is far "
        "below re-training. App. A.1.3 cuts the classes of ImageNet1k finer by clusters or at "
        "random (Table 6) and finds no gain. Here both are asked of CIFAR-100, with a ResNet-18: "
        "living things or not, and (scale classes) its 100 classes in clusters."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "labels": FEW},
        "quick": {**SMALL, "labels": FEW},
        "paper": {},
        "classes": {
            "target": "class",
            "labels": ("target", "kmeans-within:2"),
        },
    }

    target: str = "living"
    labels: tuple[str, ...] = ("target", "group", "class", "noun")

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
