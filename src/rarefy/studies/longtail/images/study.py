"""Any image set: several ways to pre-train beside each other (``rarefy pretrain``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.longtail.pretraining import SMALLEST, LongTailPretraining


@dataclass(frozen=True, kw_only=True)
class PretrainImages(LongTailPretraining):
    """What ``rarefy pretrain`` fills: the claim of P6 asked of one's own data."""

    name: ClassVar[str] = "pretrain-images"
    title: ClassVar[str] = "Your own images: features learnt without labels, head and tail"
    paper_says: ClassVar[str] = (
        "000 Sec. 4 finds that pruning while a contrastive loss is trained gives features that "
        "serve a linear probe better when images are long-tailed. This study asks it of any set: "
        "`rarefy pretrain DATA --rho 20 --method simclr,branches:0.1` runs it. The same seed means "
        "the same first weights, the same images and the same views for all methods."
    )
    papers: ClassVar[tuple[str, ...]] = ("000",)
    shows: ClassVar[str] = "Remark 2; Table 2"
    claims: ClassVar[tuple[str, ...]] = ("P4", "P6")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "rho": (4.0,),
            "way": ("simclr", "branches:0.1", "pixels"),
            "images": ("long-tail",),
            **SMALLEST,
        },
        "quick": {},
        "paper": {"seeds": 10, "epochs": 200},
    }

    way: tuple[str, ...] = ("simclr", "branches:0.1")
    rho: tuple[float, ...] = (20.0,)
    epochs: int = 40
    batch: int = 128
    learning_rate: float = 0.1
    warm_up: float = 0.1
    watched: int = 4
