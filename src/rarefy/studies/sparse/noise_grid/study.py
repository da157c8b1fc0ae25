"""Networks at twelve noise levels and five keep ratios (002 Tables 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.sparse.noise_grid import charts, tables
from rarefy.studies.sparse.noise_grid import claims as judged
from rarefy.studies.sparse.published import KEEP, NOISE
from rarefy.tools.sparse_experiment import SMALLEST, SparseTraining

QUICK: dict[str, Any] = {
    "seeds": 2,
    "data": "digits",
    "compile": False,
    "noise": (0.0, 0.5, 5.0),
    "test_noise": (0.0, 0.5, 5.0),
    "keep": (1.0, 0.5, 0.1),
    "noise_unit": "pixel",
    "epochs": 10,
    "batch": 64,
    "shift": 0,
    "flip": False,
    "evaluations": 5,
}
TINY: dict[str, Any] = {**QUICK, **SMALLEST, "noise": (0.0, 5.0), "test_noise": (0.0, 5.0)}
RULES = ("layer", "global", "inner", "epoch")
SCALES: dict[str, dict[str, Any]] = {
    "tiny": TINY,
    "quick": QUICK,
    "paper": {},
    "pixel": {"noise_unit": "pixel", "seeds": 1},
    "rules": {
        "noise": (0.0, 0.5),
        "test_noise": (0.0, 0.5),
        "keep": (1.0, 0.1),
        "update": ("project", "dense", "masked", *(f"project+{rule}" for rule in RULES)),
    },
}
"""``pixel``: noise in pixels scaled to [0, 1]. ``rules``: other ways to prune to a tenth, at two
noise levels."""


@dataclass(frozen=True, kw_only=True)
class NoiseGrid(SparseTraining, Study):
    """A published table of noise levels and keep ratios. Every network is asked at every noise
    level, so that noise in training only, in the test only, and in both are all there."""

    scales: ClassVar[dict[str, dict[str, Any]]] = SCALES

    keep: tuple[float, ...] = KEEP
    noise_unit: str = "std"
    noise: tuple[float, ...] = NOISE
    test_noise: tuple[float, ...] = NOISE
    evaluations: int = 1
    batch: int = 512
    compile: bool = True

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables


@dataclass(frozen=True, kw_only=True)
class SparseCifar100Noise(NoiseGrid):
    """Table 1 for three places of the noise."""

    name: ClassVar[str] = "sparse-cifar100-noise"
    title: ClassVar[str] = "Noise and sparsity: a CNN on CIFAR-100"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Table 1; App. I"
    claims: ClassVar[tuple[str, ...]] = ("S9", "S12")
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 Table 1 gives the accuracy of a CNN on CIFAR-100 at noise std 0 to 0.5 and 5 to 10, "
        "dense and with 80, 50, 30 and 10 % of its weights. Moderate sparsity gains half a point "
        "to one and a half at moderate noise; the text says that aggressive pruning hurts under "
        "extreme noise, where the table has +1.07 at std 5. Whether the noise is in training, in "
        "the test or in both, its unit, the network and the number of repeats are not given. "
        "Here: a CNN of seven convolutions, shifts and flips, noise in units of the pixels' std: "
        "in pixels scaled to [0, 1] the published accuracies at std 5 to 10 are out of reach."
    )

    data: str = "cifar100"
    epochs: int = 12
    learning_rate: float = 0.2
    shift: int = 4
    flip: bool = True


@dataclass(frozen=True, kw_only=True)
class SparseVitMnist(NoiseGrid):
    """Table 2 for three places of the noise."""

    name: ClassVar[str] = "sparse-vit-mnist"
    title: ClassVar[str] = "Noise and sparsity: a Vision Transformer on MNIST"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Table 2; App. I"
    claims: ClassVar[tuple[str, ...]] = ("S10", "S12")
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 Table 2 repeats Table 1 with a Vision Transformer on MNIST: light pruning is neutral "
        "to slightly better, keeping 10 % costs about a point at noise up to 0.5 and five to eight "
        "at std 5 to 10. Here: six blocks of width 64 on patches of 4 x 4 pixels, AdamW, no "
        "augmentation besides the noise, which is in units of the pixels' std."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        **SCALES,
        "tiny": {
            **TINY,
            **{"network": "vit", "epochs": 1, "samples": 80, "test_samples": 40},
        },
        "quick": {**QUICK, "keep": (1.0, 0.1), "epochs": 8},
    }

    data: str = "mnist"
    network: str = "vit"
    epochs: int = 8
    optimizer: str = "adamw"
    learning_rate: float = 0.002
    weight_decay: float = 0.05
