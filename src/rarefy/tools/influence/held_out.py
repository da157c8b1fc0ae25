"""The influence that samples would have in a set they are not in: the tail of a test set."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.measure.influence.leave_one_out import add_one
from rarefy.tools.samples.samples import Samples

BLOCK = 2_048


def held_out(known: Samples, asked: Samples, device: torch.device) -> NDArray[np.float64]:
    """What each of ``asked`` would add to the squared covariance norm of its class in ``known``,
    without the term that all of a class have in common: for ranks within classes. (n,); NaN where
    that class has too few samples. q = x^T S x is the sum of squared products of x with the class's
    centred samples, so that no matrix of features times features is formed."""
    found = np.full(len(asked), np.nan)
    for label in np.unique(asked.labels):
        own = np.flatnonzero(known.labels == label)
        rows = np.flatnonzero(asked.labels == label)
        if len(own) < 2:
            continue
        blocks = [own[first : first + BLOCK] for first in range(0, len(own), BLOCK)]
        sums = [_rows(known, block, device).sum(0) for block in blocks]
        mean = torch.stack(sums).sum(0) / len(own)
        x = _rows(asked, rows, device) - mean
        q = torch.zeros(len(rows), dtype=torch.float64, device=device)
        for block in blocks:
            q += (x @ (_rows(known, block, device) - mean).T).square().sum(1)
        terms = add_one(len(own), q.cpu().numpy(), x.square().sum(1).cpu().numpy(), norm=0.0)
        found[rows] = terms.own + terms.shared
    return found


def _rows(samples: Samples, rows: NDArray[np.int64], device: torch.device) -> torch.Tensor:
    taken = torch.as_tensor(np.asarray(samples.features[rows]), device=device)
    return taken.to(torch.float64) * samples.scale
