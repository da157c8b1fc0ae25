"""Errors of a multi-view network on easy and hard samples, on the coarse and the fine question."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.multi_view import MultiView, MultiViewSamples
from rarefy.train.multi_view_classifier import side_scores

CHUNK = 8
"""Samples of every subclass at a time. It must not depend on the batch."""

Scores = Callable[[MultiViewSamples], Tensor]
"""Samples to scores, (run, output, n)."""


@dataclass(frozen=True)
class Answers:
    """Of each test sample, (run, n): ``margin``, score of its own side minus that of the other
    (004 Theorem G.3: the maximum over a side's outputs); ``label_margin``, score of its own label
    minus the largest other; ``subclass``. An answer is wrong unless its margin is positive."""

    margin: Tensor
    label_margin: Tensor
    subclass: Tensor

    @property
    def error(self) -> Tensor:
        """Share of samples on the wrong side: (run,)."""
        return (~(self.margin > 0)).to(self.margin.dtype).mean(dim=1)

    @property
    def label_error(self) -> Tensor:
        """Share of samples with the wrong label: (run,)."""
        return (~(self.label_margin > 0)).to(self.margin.dtype).mean(dim=1)


def answers(
    scores: Scores,
    data: MultiView,
    draws: Draws,
    label_of: Callable[[Tensor], Tensor],
    side: Tensor,
    each: int,
    hard: bool,
) -> Answers:
    """Test on ``each`` fresh samples of every subclass. label_of: subclasses to their labels;
    side: of every output."""
    found = []
    side = side.to(draws.keys.device)
    kind = "hard" if hard else "easy"
    for chunk, start in enumerate(range(0, each, CHUNK)):
        count = min(CHUNK, each - start)
        subclass = torch.arange(data.subclasses, device=side.device).repeat_interleave(count)
        views = data.grouped(data.sample(draws, subclass[None], hard, f"test {kind}", chunk))
        given = scores(views)
        sides, _ = side_scores(given, side)
        own_side = data.superclass(views.subclass)[:, None]
        margin = (sides.gather(1, own_side) - sides.gather(1, 1 - own_side))[:, 0]
        label = label_of(views.subclass)[:, None]
        own = given.gather(1, label)[:, 0]
        other = given.scatter(1, label, -torch.inf).amax(dim=1)
        found.append((margin, own - other, views.subclass))
    margin, label_margin, subclasses = (
        torch.cat(parts, dim=1) for parts in zip(*found, strict=True)
    )
    return Answers(margin, label_margin, subclasses)
