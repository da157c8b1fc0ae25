"""Histograms of edge directions: what a linear classifier can tell shapes by, unlike pixels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, normalize

from rarefy.measure.influence.core_pool import CorePool

CELLS, DIRECTIONS = 4, 8
"""Histograms per side of an image, and bins of each."""
EDGES = CELLS * CELLS * DIRECTIONS
PIECE = 1 << 19
"""Numbers of the largest array held at a time: they stay in a core's cache."""


def edge_histograms(images: Tensor) -> Tensor:
    """(n, channels, height, width) to (n, 128): in each of 4 x 4 cells how strong edges of eight
    directions are, of length 1 in all, so that brightness and contrast do not count (Dalal and
    Triggs, "Histograms of oriented gradients for human detection")."""
    grey = images.mean(dim=1)
    across, down = (
        torch.gradient(grey, dim=side)[0] if grey.shape[side] > 1 else torch.zeros_like(grey)
        for side in (2, 1)
    )
    strength, turn = torch.hypot(across, down), torch.atan2(down, across) * DIRECTIONS / math.tau
    bins = torch.arange(DIRECTIONS, device=grey.device).view(1, -1, 1, 1)
    apart = (turn[:, None] - bins).remainder(DIRECTIONS)
    share = (1 - torch.minimum(apart, DIRECTIONS - apart)).clamp(min=0)
    cells = adaptive_avg_pool2d(share * strength[:, None], CELLS)
    return normalize(cells.flatten(1), dim=1)


def edges_of(
    features: NDArray[Any], shape: tuple[int, int, int], channels_last: bool
) -> NDArray[np.float32]:
    """The same of rows that are images, (channels, height, width) each, a piece at a time."""
    channels, height, width = shape
    step = max(1, PIECE // (DIRECTIONS * height * width))
    found = np.empty((len(features), EDGES), dtype=np.float32)

    def fill(first: int) -> None:
        rows = torch.from_numpy(np.asarray(features[first : first + step], dtype=np.float32))
        if channels_last:
            images = rows.view(-1, height, width, channels).movedim(3, 1)
        else:
            images = rows.view(-1, channels, height, width)
        found[first : first + step] = edge_histograms(images).numpy()

    with CorePool(torch.device("cpu")) as pool:  # a piece per core: one is too short for several
        pool.map(fill, range(0, len(features), step))
    return found
