"""Sets of neurons: ordinary and lucky (000 Def. B.1), the sets N_i, and operational counterparts.

The paper's sets are read off a weight vector by thresholds relative to its feature-space norm,
with constants (28) that depend on the imbalance. At d = 9 the lucky sets are empty unless
eps_min/eps_max > 0.70, so each study that speaks of them says which set it uses:
"paper" for the sets below, "operational" for ``dominant``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.theory.contrastive import set_constants


def _relative(along: Tensor) -> Tensor:
    """<w_i, M_j>^2 / |M M^T w_i|^2 from projections (run, m, d)."""
    square = along.square()
    tiny = torch.finfo(along.dtype).tiny
    return square / square.sum(dim=2, keepdim=True).clamp(min=tiny)


def _threshold(constant: Tensor, d: int) -> Tensor:
    return (constant * math.log(d) / d)[:, None, None]


def ordinary(along: Tensor, ratio: Tensor, gamma: float = 0.001) -> Tensor:
    """M_j of (26): (run, m, d) boolean, true at [i, j] when i is in M_j, i.e. j is in N_i.

    along: projections (run, m, d), of the initial weights for the paper's set, of later ones for
    "N_i at time t"; ratio: eps_min/eps_max, (run,).
    """
    _, c2 = set_constants(ratio, gamma)
    return _relative(along) >= _threshold(c2, along.shape[2])


def lucky(along: Tensor, ratio: Tensor, gamma: float = 0.001) -> Tensor:
    """M*_j of (27): above the c1 threshold on j and below the c2 threshold on all others."""
    c1, c2 = set_constants(ratio, gamma)
    d = along.shape[2]
    relative = _relative(along)
    high = relative >= _threshold(c1, d)
    exceeds = relative > _threshold(c2, d)
    others = exceeds.sum(dim=2, keepdim=True) - exceeds.to(torch.int64)
    return high & (others == 0)


def dominant(cosines: Tensor, floor: float = 0.09, margin: float = 4.0) -> Tensor:
    """Operational lucky set: (run, m, d), true where the squared cosine on j is at least ``floor``
    (0.09: cosine 0.3, the level of 000 Fig. 2) and ``margin`` times the second largest."""
    top = cosines.topk(min(2, cosines.shape[2]), dim=2).values
    clear = top[:, :, :1] >= floor
    if cosines.shape[2] > 1:
        clear = clear & (top[:, :, :1] >= margin * top[:, :, 1:2])
    return clear & (cosines == top[:, :, :1])


def carried(cosines: Tensor, share: float = 0.1) -> Tensor:
    """Operational N_i: features that carry at least ``share`` of the neuron's squared norm."""
    return cosines >= share


def aligned_counts(cosines: Tensor, level: float = 0.3) -> Tensor:
    """Neurons whose cosine with feature j is at least ``level``, as in 000 Fig. 2: (run, d)."""
    return (cosines >= level**2).sum(dim=1)
