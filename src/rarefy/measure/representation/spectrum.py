"""Along how many directions features vary: the spectrum of their covariance, and its one number."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.representation.labelled import check_features


def spectrum(features: Tensor) -> Tensor:
    """Share of the variance along each principal direction, the largest first: (min(n, d),),
    float64 on the CPU, with sum 1; NaN where nothing varies.

    Arguments:
        features: (n, d); they are centred here.

    Example: ``spectrum(torch.eye(3))`` is (0.5, 0.5, 0): three points span a plane.
    """
    rows = check_features(features).double()
    rows = rows - rows.mean(dim=0)
    # the smaller of the two products has the same eigenvalues, and is exact enough in float64
    square = rows.T @ rows if rows.shape[0] >= rows.shape[1] else rows @ rows.T
    values = torch.linalg.eigvalsh(square).flip(0).clamp(min=0).cpu()
    return values / values.sum()


def effective_rank(features: Tensor) -> float:
    """exp of the entropy of the singular values of centred features, as shares of their sum (Roy
    and Vetterli 2007, Definition 1): d where they vary alike in d directions, 1 on a line.

    Arguments:
        features: (n, d).

    Returns:
        A number from 1 to min(n, d); NaN where nothing varies.
    """
    sizes = spectrum(features).sqrt()
    shares = sizes / sizes.sum()
    return float(torch.special.entr(shares).sum().exp())
