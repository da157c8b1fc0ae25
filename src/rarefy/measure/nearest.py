"""Nearest neighbours by matrix products, and what their labels say about a sample's own.

Exact where the data are small. Cost is bounded elsewhere: above ``width`` features the leading
principal directions of a seeded sample stand for all (distances between images are mostly there),
and above ``reference`` samples neighbours are looked for among a seeded part of them in which every
class is present.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import bad_value

WIDTH, REFERENCE = 64, 20_000
FITTED = 4_000
"""Samples from which principal directions are found."""
BLOCK = 2_048
"""Samples asked at a time."""


@dataclass(frozen=True, eq=False)
class Near:
    """Of each sample, in the order of the data."""

    indices: NDArray[np.int64]
    """(n, k) nearest others, nearest first; -1 where there are fewer than k"""
    distances: NDArray[np.float32]
    """(n, k) in the space they were looked for in; infinite where there is none"""
    disagreement: NDArray[np.float64]
    """(n,) share of them that has another label; NaN without any"""
    label: NDArray[np.int64]
    """(n,) the label most of them have, its own one in a tie with others, else the smallest"""
    among: int
    """Samples among which they were looked for."""
    width: int
    """Directions in which distances were taken."""


def nearest(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    k: int,
    *,
    width: int = WIDTH,
    reference: int = REFERENCE,
    device: torch.device | str = "cpu",
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
    stop: Callable[[], None] | None = None,
) -> Near:
    """The k nearest other samples of each. features: (n, d), any real type, read in blocks;
    ``progress`` is told shares of the work; ``stop`` is called after each block and may raise."""
    count = len(features)
    if not 1 <= k < max(count, 2):
        raise bad_value("neighbours", k, f"must be from 1 to {max(count - 1, 1)}")
    device = torch.device(device)
    generator = np.random.default_rng([seed, 17])
    project = _projection(features, width, generator, device)
    among = _reference(labels, reference, k, generator)
    known = _projected(features, among, project, device)
    squares = (known * known).sum(1)
    place = torch.full((count,), -1, dtype=torch.int64)
    place[torch.from_numpy(among)] = torch.arange(len(among))
    most = min(k, len(among))
    indices = np.full((count, k), -1, dtype=np.int64)
    distances = np.full((count, k), np.inf, dtype=np.float32)
    for first in range(0, count, BLOCK):
        rows = np.arange(first, min(first + BLOCK, count))
        asked = _projected(features, rows, project, device)
        apart = squares[None] - 2 * asked @ known.T
        own = place[first : first + len(rows)]
        inside = torch.nonzero(own >= 0).flatten()
        # excluded by place, not by distance: an exact copy is a neighbour like any other
        apart[inside.to(device), own[inside].to(device)] = float("inf")
        best = apart.topk(most, dim=1, largest=False)
        length = (best.values + (asked * asked).sum(1, keepdim=True)).clamp(min=0).sqrt()
        there = torch.isfinite(best.values).cpu().numpy()
        found = among[best.indices.cpu().numpy()]
        indices[rows, :most] = np.where(there, found, -1)
        distances[rows, :most] = np.where(there, length.cpu().numpy(), np.inf)
        if progress is not None:
            progress(len(rows) / count)
        if stop is not None:
            stop()
    disagreement, label = _votes(indices, labels)
    return Near(indices, distances, disagreement, label, len(among), known.shape[1])


def _votes(
    indices: NDArray[np.int64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    theirs = np.where(indices >= 0, labels[indices], -1)
    asked = (indices >= 0).sum(axis=1)
    other = ((theirs != labels[:, None]) & (indices >= 0)).sum(axis=1)
    disagreement = np.where(asked > 0, other / np.maximum(asked, 1), np.nan)
    # how often each neighbour's label is among them, without an array of all classes
    counts = np.stack(
        [((theirs == theirs[:, [j]]) & (theirs >= 0)).sum(axis=1) for j in range(theirs.shape[1])],
        axis=1,
    )
    best = counts.max(axis=1)
    candidates = np.where((counts == best[:, None]) & (theirs >= 0), theirs, np.iinfo(np.int64).max)
    label = candidates.min(axis=1)
    tied = ((candidates == labels[:, None]).any(axis=1)) | (asked == 0)
    return disagreement, np.where(tied, labels, label).astype(np.int64)


def _projection(
    features: NDArray[Any], width: int, generator: np.random.Generator, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """Where to measure from, and in which directions (None: in all)."""
    count, features_wide = features.shape
    some = np.sort(generator.choice(count, min(FITTED, count), replace=False))
    sample = torch.as_tensor(np.asarray(features[some]), device=device).to(torch.float32)
    mean = sample.mean(0)
    if features_wide <= width or len(some) <= width:
        return mean, None
    state = torch.Generator().manual_seed(int(generator.integers(2**62)))
    centred = sample - mean
    # a randomised range finder with two power steps: the leading directions, in a few products
    wide = min(width + 16, len(some))
    start = torch.randn(len(some), wide, generator=state).to(device)
    found = torch.linalg.qr(centred.T @ start).Q
    for _ in range(2):
        found = torch.linalg.qr(centred.T @ (centred @ found)).Q
    _, _, right = torch.linalg.svd(centred @ found, full_matrices=False)
    return mean, (found @ right.T)[:, :width]


def _projected(
    features: NDArray[Any],
    rows: NDArray[np.int64],
    project: tuple[Tensor, Tensor | None],
    device: torch.device,
) -> Tensor:
    mean, directions = project
    parts = []
    for first in range(0, len(rows), BLOCK):
        taken = np.asarray(features[rows[first : first + BLOCK]])
        centred = torch.as_tensor(taken, device=device).to(torch.float32) - mean
        parts.append(centred if directions is None else centred @ directions)
    return torch.cat(parts)


def _reference(
    labels: NDArray[np.int64], most: int, k: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    count = len(labels)
    if count <= most:
        return np.arange(count)
    chance = generator.random(count)
    order = np.lexsort((chance, labels))
    sizes = np.bincount(labels)
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    few = ranks <= k  # of every class as many as could all be a sample's neighbours
    rest = np.flatnonzero(~few)
    rest = rest[np.argsort(chance[rest])][: max(most - int(few.sum()), 0)]
    return np.sort(np.concatenate([np.flatnonzero(few), rest]))
