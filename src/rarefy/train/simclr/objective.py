"""What is minimised: two views of one image near each other, all others far.

Points are brought to length 1; tau is a tensor, so that a schedule does not compile anew.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.train.losses import info_nce

_SHARPNESS = 2.0
"""t of uniformity (Wang and Isola 2020, Sec. 4.1.2)."""


class Contrast(NamedTuple):
    """A loss and two measures of the same points, without gradients."""

    loss: Tensor
    alignment: Tensor
    """Mean squared distance of the two views of an image (Wang and Isola 2020, alpha = 2)."""
    uniformity: Tensor
    """log mean exp(-2 |a - b|^2) over pairs of first views of different images."""
    each: Tensor | None = None
    """Loss of each image, the mean of its two views, where it is asked for."""
    directions: Tensor | None = None
    """Of first views, (n, targets), where there are any (``harmonising.py``)."""


def contrast(
    first: Tensor, second: Tensor, tau: Tensor, objective: str = "nt-xent", remember: bool = False
) -> Contrast:
    """Of the two views of a batch, (n, k) each; ``remember``: with the (symmetric) loss of each
    image."""
    wide = torch.promote_types(first.dtype, torch.float32)
    a, b = (functional.normalize(points.to(wide), dim=1) for points in (first, second))
    each = None
    if remember:
        of_views = nt_xent_of_views(a, b, tau)
        loss, each = of_views.mean(), of_views.detach().unflatten(0, (2, -1)).mean(dim=0)
    else:
        loss = nt_xent(a, b, tau) if objective == "nt-xent" else one_sided(a, b, tau)
    with torch.no_grad():
        alignment = (a - b).square().sum(dim=1).mean()
        # (not by .diagonal(), for which torch 2.13's compiler shows a warning of its own)
        itself = torch.eye(len(a), dtype=torch.bool, device=a.device)
        apart = torch.exp(_SHARPNESS * (2 * (a @ a.T) - 2)).masked_fill(itself, 0)
        uniformity = torch.log(apart.sum() / (len(a) * (len(a) - 1)))
    return Contrast(loss, alignment, uniformity, each)


def nt_xent(a: Tensor, b: Tensor, tau: Tensor) -> Tensor:
    """The symmetric loss of SimCLR (Chen et al. 2020, Eq. (1)): each of the 2n points has the other
    view of its image to find among the 2n - 1 others. Rows of a, b: of length 1."""
    return nt_xent_of_views(a, b, tau).mean()


def nt_xent_of_views(a: Tensor, b: Tensor, tau: Tensor) -> Tensor:
    """The same before the mean: (2n,), first views first."""
    count = len(a)
    points = torch.cat([a, b])
    logits = points @ points.T / tau
    itself = torch.eye(2 * count, dtype=torch.bool, device=a.device)
    logits = logits.masked_fill(itself, -torch.inf)
    # the partner of i is i + n, and the other way round
    positive = (a * b).sum(dim=1).repeat(2) / tau
    return torch.logsumexp(logits, dim=1) - positive


def one_sided(a: Tensor, b: Tensor, tau: Tensor) -> Tensor:
    """The loss of 000 eq. (1)-(2): first views look for their partner among all second views, which
    get no gradient."""
    one = torch.ones(1, dtype=a.dtype, device=a.device)
    return info_nce(a[None], b[None], tau.reshape(1).to(a), one)[0]
