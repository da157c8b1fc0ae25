"""A CNN on CIFAR-10 under TopK pruning: accuracy and loss against the keep ratio (002 Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.sparse.keep_curve import QUICK, TINY, KeepCurve


@dataclass(frozen=True, kw_only=True)
class SparseCifar10(KeepCurve):
    """Fig. 4 with the rules and readings that the paper leaves open side by side."""

    name: ClassVar[str] = "sparse-cifar10"
    title: ClassVar[str] = "Does a thinner CNN do better on CIFAR-10?"
    paper_says: ClassVar[str] = (
        "002 App. A.2 does the same on CIFAR-10 (Fig. 4): test accuracy peaks at a moderate keep "
        "ratio and falls towards the dense network. Here: a CNN of seven convolutions with "
        "BatchNorm, no augmentation besides Gaussian noise of std 0.1, so that a network can fit "
        "what it sees; pruning rules and ways to draw the noise as for MNIST."
    )
    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": TINY, "quick": QUICK, "paper": {}}

    data: str = "cifar10"
    keep: tuple[float, ...] = (1.0, 0.9, 0.8, 0.65, 0.5, 0.3, 0.1, 0.05)
    update: tuple[str, ...] = ("project", "dense")
    drawn: tuple[str, ...] = ("fresh", "once")
    noise: tuple[float, ...] = (0.1,)
    test_noise: tuple[float, ...] = (0.0, 0.1)
    epochs: int = 10
    batch: int = 512
    learning_rate: float = 0.2
    seeds: int = 3
