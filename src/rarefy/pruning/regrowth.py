"""Sparse training with a moving support: the smallest kept weights go, as many others come.

    SET    they come at random (Mocanu et al. 2018)
    RigL   where the gradient is largest (Evci et al. 2020)

The share that moves falls to zero by a cosine, so that the support settles. New weights begin at
zero. Both belong to the update rule ``masked``: with the others weights come back by themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.pruning.masks import keep_largest

KINDS = ("set", "rigl")


@dataclass(frozen=True)
class Regrowth:
    """``kind``: one of ``KINDS``; ``share`` of the kept weights that move at first; ``until``: the
    update at which none do any more (RigL: three quarters of the training)."""

    kind: str
    until: int
    share: float = 0.3

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise bad_value("kind", self.kind, f"must be one of {', '.join(KINDS)}")
        if not 0 < self.share < 1:
            raise bad_value("share", self.share, "must lie in (0, 1)")
        if self.until < 1:
            raise bad_value("until", self.until, "must be at least 1 update")

    @property
    def needs_gradient(self) -> bool:
        return self.kind == "rigl"

    def moving(self, step: int) -> float:
        """Share of the kept weights that move after ``step`` updates."""
        if step >= self.until:
            return 0.0
        return self.share / 2 * (1 + math.cos(math.pi * step / self.until))

    def moved(
        self, kept: Tensor, magnitude: Tensor, growth: Tensor, step: int, total: int | None = None
    ) -> Tensor:
        """The next mask. kept, magnitude, growth: (row, candidate), each row with as many kept;
        ``growth``: score by which those that are left out come. What has just gone does not come
        back at once. ``total``: how many each row keeps, where that is known: asking a GPU would
        wait for it."""
        if total is None:
            total = int(kept[0].sum())
        number = min(math.floor(self.moving(step) * total), kept.shape[1] - total)
        if number < 1:
            return kept
        stay = keep_largest(torch.where(kept, magnitude, -1.0), total - number)
        return stay | keep_largest(torch.where(kept, -1.0, growth), number)


def SET(until: int, share: float = 0.3) -> Regrowth:
    """A moving support: the smallest weights go, as many others come at random (Mocanu et al.
    2018).

    Arguments:
        until: the update at which none move any more.
        share: of the kept weights, that move at first.

    Returns:
        A rule, for ``rarefy.Pruner(regrow=..., update="masked")``.

    Example:
        >>> model = torch.nn.Linear(8, 4)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5, update="masked",
        ...                        regrow=rarefy.pruning.SET(until=100))
        >>> pruner.keep
        0.5
    """
    return Regrowth("set", until, share)


def RigL(until: int, share: float = 0.3) -> Regrowth:
    """A moving support: the smallest weights go, others come where the gradient is largest (Evci et
    al. 2020).

    Arguments:
        until: the update at which none move any more (theirs: three quarters of the training).
        share: of the kept weights, that move at first.

    Returns:
        A rule, for ``rarefy.Pruner(regrow=..., update="masked")``.

    Example:
        >>> model = torch.nn.Linear(8, 4)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5, update="masked",
        ...                        regrow=rarefy.pruning.RigL(until=100))
        >>> pruner.keep
        0.5
    """
    return Regrowth("rigl", until, share)
