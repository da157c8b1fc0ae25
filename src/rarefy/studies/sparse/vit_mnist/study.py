"""A Vision Transformer on MNIST at twelve noise levels and five keep ratios (002 Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.sparse.noise_grid import SCALES, NoiseGrid
from rarefy.studies.sparse.published import TRANSFORMER_ON_MNIST, Published


@dataclass(frozen=True, kw_only=True)
class SparseVitMnist(NoiseGrid):
    """Table 2 for three places of the noise."""

    name: ClassVar[str] = "sparse-vit-mnist"
    title: ClassVar[str] = "Noise and sparsity: a Vision Transformer on MNIST"
    paper_says: ClassVar[str] = (
        "002 Table 2 repeats Table 1 with a Vision Transformer on MNIST: light pruning is neutral "
        "to slightly better, keeping 10 % costs about a point at noise up to 0.5 and five to eight "
        "at std 5 to 10. Here: six blocks of width 64 on patches of 4 x 4 pixels, AdamW, no "
        "augmentation besides the noise, which is in units of the pixels' std."
    )
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Table 2; App. I"
    claims: ClassVar[tuple[str, ...]] = ("S10", "S12")
    published: ClassVar[Published] = TRANSFORMER_ON_MNIST
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        **SCALES,
        "tiny": {
            **SCALES["tiny"],
            "network": "vit",
            "keep": (1.0, 0.5, 0.1),
            "epochs": 1,
            "samples": 80,
            "test_samples": 40,
        },
        "quick": {**SCALES["quick"], "keep": (1.0, 0.1), "epochs": 8},
    }

    data: str = "mnist"
    network: str = "vit"
    epochs: int = 8
    batch: int = 512
    optimizer: str = "adamw"
    learning_rate: float = 0.002
    weight_decay: float = 0.05
    compile: bool = True
