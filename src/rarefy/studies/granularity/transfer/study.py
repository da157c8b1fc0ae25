"""From the levels of CIFAR-100 to CIFAR-10 (004 Fig. 2, Tables 7, 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.granularity.images import charts
from rarefy.studies.granularity.images.recipe import SMALL, TINY, CifarTransfer
from rarefy.studies.granularity.transfer import claims as judged

LEVELS = ("target", "once", "parity", "class")


@dataclass(frozen=True, kw_only=True)
class GranularityTransfer(CifarTransfer):
    """Pre-trained on one set at each of its levels, asked on another."""

    name: ClassVar[str] = "granularity-transfer"
    title: ClassVar[str] = "Do finer labels transfer better to another set?"
    papers: ClassVar[tuple[str, ...]] = ("004",)
    shows: ClassVar[str] = "Fig. 2; Tables 7, 8"
    claims: ClassVar[tuple[str, ...]] = ("G11",)
    needs: ClassVar[str] = "a CPU for digits; CIFAR-10, CIFAR-100 and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "004 Sec. 6.1 pre-trains a ViT-B/16 on ImageNet21k at six levels of WordNet, 21,843 to 38 "
        "classes, and transfers it to ImageNet1k (Fig. 2, Tables 7, 8): fine-tuned accuracy falls "
        "from 82.51 to 72.75 % with coarser labels, that of a linear probe from 81.45 to 57.35 %. "
        "Here a ResNet-18 goes from CIFAR-100 at 6, 20, 100 and 768 classes to CIFAR-10. (At the "
        "smaller scales both sets are the digits.)"
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "target_data": "digits", "labels": LEVELS},
        "quick": {**SMALL, "target_data": "digits", "target": "class", "labels": LEVELS},
        "paper": {},
    }

    target_data: str = "cifar10"
    target: str = "class"
    labels: tuple[str, ...] = ("target", "group", "coarse", "class", "noun")

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = charts.tables
