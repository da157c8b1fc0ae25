"""How neurons lie relative to features: projections and squared cosines."""

from __future__ import annotations

import torch
from torch import Tensor


def projections(weights: Tensor, dictionary: Tensor) -> Tensor:
    """<w_i, M_j>: (run, m, d1) and (run, d1, d) to (run, m, d)."""
    return torch.bmm(weights, dictionary)


def outside(weights: Tensor, dictionary: Tensor) -> Tensor:
    """The part of each neuron outside the feature space, w - M M^T w: (run, m, d1)."""
    return weights - torch.bmm(projections(weights, dictionary), dictionary.transpose(1, 2))


def squared_cosines(weights: Tensor, dictionary: Tensor) -> Tensor:
    """How much of each neuron lies in each feature: <w_i, M_j>^2 / |w_i|^2.

    Arguments:
        weights: (run, m, d1).
        dictionary: (run, d1, d).

    Returns:
        (run, m, d), 0 to 1; 0 for a neuron of norm 0.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> atoms = rarefy.lab.dictionary(draws, d1=100, d=9)
        >>> weights = rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3))
        >>> rarefy.lab.squared_cosines(weights, atoms).shape
        torch.Size([3, 24, 9])
    """
    squared_norm = weights.square().sum(dim=2, keepdim=True)
    tiny = torch.finfo(weights.dtype).tiny
    return projections(weights, dictionary).square() / squared_norm.clamp(min=tiny)


def inside_fraction(weights: Tensor, dictionary: Tensor) -> Tensor:
    """|M M^T w_i|^2 / |w_i|^2, the share of (34): (run, m)."""
    return squared_cosines(weights, dictionary).sum(dim=2)


def growth_factor(before: Tensor, after: Tensor, dim: int | tuple[int, ...]) -> Tensor:
    """The factor g with E[after] = g before, by least squares through 0 over ``dim``.

    Unbiased when after = g before + noise of mean zero, which a mean of log ratios is not.
    """
    return (before * after).sum(dim=dim) / before.square().sum(dim=dim)
