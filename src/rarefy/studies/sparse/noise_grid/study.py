"""Networks at some of the twelve noise levels and five keep ratios of 002 Tables 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.sparse.noise_grid import charts, tables
from rarefy.studies.sparse.noise_grid import claims as judged
from rarefy.tools.sparse_experiment import SMALLEST, SparseTraining

QUICK: dict[str, Any] = {
    "seeds": 2,
    "data": "digits",
    "compile": False,
    "noise": (0.0, 0.5, 5.0),
    "test_noise": (0.0, 0.5, 5.0),
    "keep": (1.0, 0.8, 0.5, 0.1),
    "noise_unit": "pixel",
    "epochs": 10,
    "batch": 64,
}
TINY: dict[str, Any] = {**QUICK, **SMALLEST, "keep": (1.0, 0.8, 0.1), "noise": (0.0, 5.0)}
TINY["test_noise"] = TINY["noise"]


@dataclass(frozen=True, kw_only=True)
class NoiseGrid(SparseTraining, Study):
    """A published table of noise levels and keep ratios, thinned. Every network is asked at every
    noise level, so that noise in training only, in the test only, and in both are all there."""

    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": TINY, "quick": QUICK, "paper": {}}

    seeds: int = 5
    noise_unit: str = "std"
    evaluations: int = 5
    batch: int = 512
    compile: bool = True

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables


@dataclass(frozen=True, kw_only=True)
class SparseCifar100Noise(NoiseGrid):
    """Table 1, trained until the dense network knows its training images by heart."""

    name: ClassVar[str] = "sparse-cifar100-noise"
    title: ClassVar[str] = "Noise and sparsity: a CNN on CIFAR-100"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Table 1; App. B.1"
    claims: ClassVar[tuple[str, ...]] = ("S9",)
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 Table 1 gives the accuracy of a CNN on CIFAR-100 at noise std 0 to 0.5 and 5 to 10, "
        "dense and with 80, 50, 30 and 10 % of its weights. Moderate sparsity gains half a point "
        "to one and a half at moderate noise; the text says that aggressive pruning hurts under "
        "extreme noise, where the table has +1.07 at std 5. Whether the noise is in training, in "
        "the test or in both, its unit, the network, epochs and repeats are not given. Here: a CNN "
        "of seven convolutions, 100 epochs without augmentation, so that the dense network fits "
        "what it sees, noise in units of the pixels' std; scale paper has noise 0 and 0.5, "
        "extreme noise 5, once noise 0.5 drawn once for all."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        **NoiseGrid.scales,
        "extreme": {"noise": (5.0,), "test_noise": (0.0, 5.0), "keep": (1.0, 0.1)},
        "once": {"noise": (0.5,), "noise_resampling": ("once",)},
    }

    data: str = "cifar100"
    noise: tuple[float, ...] = (0.0, 0.5)
    test_noise: tuple[float, ...] = (0.0, 0.5)
    keep: tuple[float, ...] = (1.0, 0.8, 0.5)
    epochs: int = 100
    learning_rate: float = 0.2


@dataclass(frozen=True, kw_only=True)
class SparseVitMnist(NoiseGrid):
    """Table 2, thinned."""

    name: ClassVar[str] = "sparse-vit-mnist"
    title: ClassVar[str] = "Noise and sparsity: a Vision Transformer on MNIST"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Table 2; App. B.2"
    claims: ClassVar[tuple[str, ...]] = ("S10",)
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 Table 2 repeats Table 1 with a Vision Transformer on MNIST: light pruning is neutral "
        "to slightly better, keeping 10 % costs about a point at noise up to 0.5 and five to eight "
        "at std 5 to 10. Here: six blocks of width 64 on patches of 4 x 4 pixels, AdamW, no "
        "augmentation besides the noise, which is in units of the pixels' std."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        **NoiseGrid.scales,
        "tiny": {**TINY, "network": "vit", "epochs": 1, "samples": 80, "test_samples": 40},
        "quick": {**QUICK, "keep": (1.0, 0.8, 0.1), "epochs": 8},
    }

    data: str = "mnist"
    network: str = "vit"
    noise: tuple[float, ...] = (0.0, 0.5, 5.0)
    test_noise: tuple[float, ...] = (0.0, 0.5, 5.0)
    keep: tuple[float, ...] = (1.0, 0.8, 0.1)
    epochs: int = 8
    optimizer: str = "adamw"
    learning_rate: float = 0.002
    weight_decay: float = 0.05
