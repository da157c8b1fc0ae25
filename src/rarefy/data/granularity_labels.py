"""Labels of every granularity for multi-view samples, and what can be wrong with them (004 Sec. 6.2
and 7).

Granularity is the number of labels per side: 1 is coarse, k_y fine; fewer than k_y merge adjacent
subclasses, more cut every subclass into pieces by the number a sample has in it, down to one label
a sample. Labels of + come first.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.multi_view import MultiView


@dataclass(frozen=True)
class Labels:
    """per_side: labels per side; noise: share of samples with a label drawn from all; misaligned:
    share of subclasses whose fine label is tossed between it and its counterpart of the other side,
    so that labels cut across the superclasses."""

    data: MultiView
    per_side: int
    noise: float = 0.0
    misaligned: float = 0.0

    def __post_init__(self) -> None:
        sides = (self.data.plus, self.data.minus)
        if self.per_side < 1:
            raise bad_value("per_side", self.per_side, "must be at least 1")
        for side in sides:
            if side % self.per_side and self.per_side % side:
                raise bad_value(
                    "per_side", self.per_side, f"must divide k={side} or be a multiple of it"
                )
        for name in ("noise", "misaligned"):
            if not 0 <= getattr(self, name) <= 1:
                raise bad_value(name, getattr(self, name), "must be in [0, 1]: it is a share")
        if self.misaligned > 0 and not sides[0] == sides[1] <= self.per_side:
            raise bad_value(
                "misaligned", self.misaligned, "needs k_+ = k_-, and labels as fine as subclasses"
            )

    @property
    def outputs(self) -> int:
        return 2 * self.per_side

    def side(self) -> Tensor:
        """The superclass of each label: (output,)."""
        return torch.arange(self.outputs) // self.per_side

    def of(
        self, subclass: Tensor, number: Tensor, draws: Draws, stream: str = "labels", step: int = 0
    ) -> Tensor:
        """The label of each sample, (run, n); ``number``: which of its subclass a sample is, (run,
        n), needed for pieces."""
        side = self.data.superclass(subclass)
        within = torch.where(side == 0, subclass, subclass - self.data.plus)
        count = torch.where(side == 0, self.data.plus, self.data.minus)
        merged = within * self.per_side // count  # neighbouring subclasses share a label
        pieces = (self.per_side // count).clamp(min=1)
        cut = within * pieces + number % pieces
        label = torch.where(count >= self.per_side, merged, cut)
        shape = tuple(subclass.shape[1:])
        if self.misaligned > 0:
            crossed = within < round(self.misaligned * self.data.plus)
            tossed = draws.uniform(f"{stream} side", shape, step) < 0.5
            side = torch.where(crossed, tossed.long(), side)
        label = side * self.per_side + label
        if self.noise > 0:
            wrong = draws.uniform(f"{stream} wrong", shape, step) < self.noise
            other = draws.integers(f"{stream} other", self.outputs, shape, step)
            label = torch.where(wrong, other, label)
        return label
