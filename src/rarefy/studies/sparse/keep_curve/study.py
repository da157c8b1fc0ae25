"""A CNN under TopK pruning: accuracy and loss against the share of weights kept (002 Fig. 3, 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.core.contracts import Study
from rarefy.studies.sparse.keep_curve import charts, tables
from rarefy.studies.sparse.keep_curve import claims as judged
from rarefy.tools.sparse_experiment import SMALLEST, SparseTraining

QUICK: dict[str, Any] = {
    "seeds": 3,
    "data": "digits",
    "compile": False,
    "keep": (1.0, 0.5, 0.3, 0.1),
    "epochs": 6,
    "batch": 64,
    "learning_rate": 0.05,
    "evaluations": 4,
}
TINY = {**QUICK, **SMALLEST, "keep": (1.0, 0.5, 0.1)}


@dataclass(frozen=True, kw_only=True)
class KeepCurve(SparseTraining, Study):
    """A figure of accuracies over keep ratios."""

    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": TINY, "quick": QUICK, "paper": {}}

    seeds: int = 5
    keep: tuple[float, ...] = (1.0, 0.9, 0.8, 0.5, 0.3, 0.1)
    noise: tuple[float, ...] = (0.1,)
    test_noise: tuple[float, ...] = (0.0, 0.1)
    epochs: int = 10
    batch: int = 512

    verdicts = judged.verdicts
    picture = charts.pictures
    tables = tables.tables


@dataclass(frozen=True, kw_only=True)
class SparseMnist(KeepCurve):
    """Fig. 3 with several seeds."""

    name: ClassVar[str] = "sparse-mnist"
    title: ClassVar[str] = "Does a thinner CNN do better on MNIST?"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Fig. 3; App. A.2"
    claims: ClassVar[tuple[str, ...]] = ("S8",)
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    headline: ClassVar[bool] = True
    paper_says: ClassVar[str] = (
        "002 App. A.2 trains a CNN on MNIST with TopK pruning while mild random perturbations are "
        "added to the training images (Fig. 3): training accuracy rises with the keep ratio, test "
        "accuracy is best at an intermediate one. Network, epochs, the perturbation and how often "
        "masks are chosen are not given. Here: a small CNN with BatchNorm, Gaussian noise of std "
        "0.1, drawn anew each time an image is shown, masks anew after every update; pruned "
        "weights are set to zero and trained on (Sec. 3.3 of the paper)."
    )

    data: str = "mnist"


@dataclass(frozen=True, kw_only=True)
class SparseCifar10(KeepCurve):
    """Fig. 4 with several seeds."""

    name: ClassVar[str] = "sparse-cifar10"
    title: ClassVar[str] = "Does a thinner CNN do better on CIFAR-10?"
    papers: ClassVar[tuple[str, ...]] = ("002",)
    shows: ClassVar[str] = "Fig. 4; App. A.2"
    claims: ClassVar[tuple[str, ...]] = ("S8",)
    needs: ClassVar[str] = "a CPU for digits; the data set and a GPU at scale paper"
    paper_says: ClassVar[str] = (
        "002 App. A.2 does the same on CIFAR-10 (Fig. 4): test accuracy peaks at a moderate keep "
        "ratio and falls towards the dense network. Here: a CNN of seven convolutions with "
        "BatchNorm, no augmentation besides Gaussian noise of std 0.1, so that a network can fit "
        "what it sees; pruning and noise as for MNIST."
    )

    data: str = "cifar10"
    learning_rate: float = 0.2
