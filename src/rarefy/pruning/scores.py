"""How much a weight matters: the score by which weights, or whole filters, are kept.

A score has the shape of the weight and is never negative; the largest are kept. It looks at the
weights that wait as well (the *dense* weights): scored by what acts, a pruned weight would have
score zero and could never come back.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, unknown

Score = Callable[[str, Tensor, Tensor | None], Tensor]
"""Name of the parameter, its dense weights, its gradient (None before the first) to scores."""


def magnitude(name: str, weight: Tensor, gradient: Tensor | None) -> Tensor:
    """|w|"""
    return weight.abs()


def saliency(name: str, weight: Tensor, gradient: Tensor | None) -> Tensor:
    """|w g|, how much the loss changes to first order without the weight. Before there is a
    gradient, |w|."""
    return weight.abs() if gradient is None else (weight * gradient).abs()


SCORES: dict[str, Score] = {"magnitude": magnitude, "saliency": saliency}
RANDOM = "random"
"""The control: independent of the weights, drawn by whoever keeps the generator."""
NORM = "norm"
"""Every weight of a filter has the filter's norm: filters are kept one after the other. Computed by
whoever knows the layer's filters."""


def get_score(score: str | Score) -> Score | str:
    """The function behind a name; ``"random"`` stays a word, functions stay what they are."""
    if callable(score):
        return score
    if score in (RANDOM, NORM):
        return score
    if score not in SCORES:
        raise unknown("score", str(score), (*SCORES, NORM, RANDOM))
    return SCORES[score]


def random_scores(weight: Tensor, generator: torch.Generator) -> Tensor:
    """Independent of the weight. Drawn on the CPU: the same on every device and in every process
    that has the same generator."""
    return torch.rand(weight.shape, generator=generator).to(weight.device)


def check_scores(name: str, weight: Tensor, found: object) -> Tensor:
    """What a user's score function gave, refused if it is no score."""
    if not isinstance(found, Tensor) or found.shape != weight.shape:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise UsageError(
            f"score of {name}: must be a tensor of shape {tuple(weight.shape)}, not {shape}"
        )
    return found.detach()
