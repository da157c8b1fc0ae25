"""The two-layer patch network of 002 (Sec. 3) and 003 (eq. 1).

    F_k(x) = output_scale * sum over filters r and patches p of ReLU(<w_kr, x_p>)

``output_scale`` is 1/m in both papers' formulas ("mean"); 002's figure was made without it ("sum").
What ReLU'(0) is, 1 in 002 and 0 in automatic differentiation, is the trainer's affair.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws

COMBINATIONS = ("mean", "sum")
INITIALISATIONS = ("gaussian", "default")
_UNROLLED = 128


def output_scale(combine: str, filters: int) -> float:
    """The factor in front of the sum over filters."""
    if combine not in COMBINATIONS:
        raise bad_value("combine", combine, f"must be one of {', '.join(COMBINATIONS)}")
    return 1 / filters if combine == "mean" else 1.0


def initial_filters(
    draws: Draws, classes: int, filters: int, d: int, law: str = "gaussian"
) -> Tensor:
    """Filters of the patch network before training.

    Arguments:
        draws: one key per run.
        classes, filters, d: classes, filters of each, dimensions of a patch.
        law: "gaussian": N(0, 1), to be multiplied by sigma_0; "default": uniform on +-1/sqrt(d),
            what PyTorch gives a linear layer with d inputs (Xu & Chen, Sec. 5.1).

    Returns:
        (run, classes, filters, d).

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> rarefy.lab.initial_filters(draws, classes=2, filters=10, d=50).shape
        torch.Size([3, 2, 10, 50])
    """
    shape = (classes, filters, d)
    if law == "gaussian":
        return draws.normal("filters", shape)
    if law == "default":
        return (2 * draws.uniform("filters", shape) - 1) / math.sqrt(d)
    raise bad_value("initialisation", law, f"must be one of {', '.join(INITIALISATIONS)}")


def responses(filters: Tensor, patches: Tensor) -> Tensor:
    """<w_kr, x_p>: (run, classes, filters, patch) for filters (run, classes, filters, d) and
    patches (run or 1, patch, d)."""
    runs, classes, m, d = filters.shape
    if len(patches) == 1:  # one product for all runs: far faster than many small ones
        flat = filters.reshape(-1, d) @ patches[0].transpose(0, 1)
        return flat.reshape(runs, classes, m, -1)
    rows = filters.reshape(runs, classes * m, d)
    return torch.bmm(rows, patches.transpose(1, 2)).reshape(runs, classes, m, -1)


def pooled(seen: Tensor) -> Tensor:
    """Sum over filters of ReLU: (run, classes, patch) from ``responses``."""
    filters = seen.shape[2]
    if not torch.compiler.is_compiling() or filters > _UNROLLED:
        return torch.relu(seen).sum(dim=2)
    # written out, the compiler makes one pass along the patches; its own reduction over a middle
    # dimension takes four times as long
    total = torch.relu(seen[:, :, 0])
    for r in range(1, filters):
        total = total + torch.relu(seen[:, :, r])
    return total


def class_scores(noise: Tensor, feature: Tensor, one_hot: Tensor) -> Tensor:
    """A sample's noise part plus its feature's part: (run, classes, n) from pooled responses to the
    noise patches, (run, classes, n), and to the features, (run, classes, classes); ``one_hot``:
    (run or 1, n, classes)."""
    shared = one_hot[0] if len(one_hot) == 1 else one_hot
    return noise + feature @ shared.transpose(-1, -2)
