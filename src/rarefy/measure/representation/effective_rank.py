"""How many directions features use (Roy & Vetterli 2007): 1 where all lie on one line, d where they
spread evenly in all of them. It falls when a representation collapses."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.representation.labelled import check_features


def effective_rank(features: Tensor) -> float:
    """exp of the entropy of the singular values of the centred features, over their sum.

    Arguments:
        features: (sample, d).

    Returns:
        Between 1 and min(samples - 1, d); 0 where all rows are equal.

    Example:
        >>> effective_rank(torch.eye(3))  # two directions, evenly: about 2
    """
    rows = check_features(features).double()
    centred = rows - rows.mean(dim=0)
    values = torch.linalg.svdvals(centred)
    # what rounding leaves of a direction that is none
    floor = torch.finfo(features.dtype).eps if features.is_floating_point() else 0.0
    values = values[values > max(centred.shape) * floor * rows.abs().max()]
    shares = values / values.sum()
    return float((-(shares * shares.log()).sum()).exp()) if len(values) else 0.0
