"""A CNN on MNIST under TopK pruning: accuracy and loss against the keep ratio (002 Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from rarefy.studies.sparse.keep_curve import KEEPS, QUICK, TINY, KeepCurve


@dataclass(frozen=True, kw_only=True)
class SparseMnist(KeepCurve):
    """Fig. 3 with the rules and readings that the paper leaves open side by side."""

    name: ClassVar[str] = "sparse-mnist"
    title: ClassVar[str] = "Does a thinner CNN do better on MNIST?"
    paper_says: ClassVar[str] = (
        "002 App. A.2 trains a CNN on MNIST with TopK pruning while mild random perturbations are "
        "added to the training images (Fig. 3): training accuracy rises with the keep ratio, test "
        "accuracy is best at an intermediate one. Network, epochs, the perturbation and how often "
        "masks are chosen are not given. Here: a small CNN with BatchNorm, Gaussian noise of std "
        "0.1, masks anew after every update; pruned weights either are set to zero and trained on "
        "(Sec. 3.3 of the paper) or wait and are updated too; the noise is drawn anew each time an "
        "image is shown, or once for all as in the paper's theory."
    )
    headline: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": TINY, "quick": QUICK, "paper": {}}

    data: str = "mnist"
    keep: tuple[float, ...] = KEEPS
    update: tuple[str, ...] = ("project", "dense")
    drawn: tuple[str, ...] = ("fresh", "once")
    noise: tuple[float, ...] = (0.1,)
    test_noise: tuple[float, ...] = (0.0, 0.1)
    epochs: int = 10
    batch: int = 512
    seeds: int = 3
