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
    values = _variances(features)
    return values / values.sum()


def effective_rank(features: Tensor) -> float:
    """exp of the entropy of the singular values of centred features, as shares of their sum (Roy
    and Vetterli 2007, Definition 1): d where they vary alike in d directions, 1 on a line. It falls
    when a representation collapses.

    Arguments:
        features: (n, d).

    Returns:
        A number from 1 to min(n - 1, d); 0 where nothing varies.
    """
    sizes = _variances(features).sqrt()
    if not bool(sizes.any()):
        return 0.0
    return float(torch.special.entr(sizes / sizes.sum()).sum().exp())


def _variances(features: Tensor) -> Tensor:
    """Squared singular values of the centred features; 0 for what rounding leaves of a direction
    that is none."""
    rows = check_features(features).double()
    centred = rows - rows.mean(dim=0)
    # the smaller of the two products has the same eigenvalues, and costs far less than an SVD
    wide = centred.shape[0] < centred.shape[1]
    values = torch.linalg.eigvalsh(centred @ centred.T if wide else centred.T @ centred)
    values = values.flip(0).clamp(min=0).cpu()
    most = max(centred.shape)
    eps = torch.finfo(features.dtype).eps if features.is_floating_point() else 0.0
    given = (most * eps * float(rows.abs().max())) ** 2
    ours = most * torch.finfo(torch.float64).eps * float(values[0])
    return torch.where(values > max(given, ours), values, 0.0)
