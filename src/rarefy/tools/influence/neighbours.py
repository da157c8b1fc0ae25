"""What a sample's nearest neighbours say about its label, at a cost that stays bounded.

Exact for small sets. Above ``WIDTH`` features distances are taken in the leading principal
directions, where those between images mostly are; above ``REFERENCE`` samples neighbours are looked
for among a seeded part of them in which every class is present. With more classes than that none
are looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.measure.influence.neighbours import disagreement, make_space, nearest, reference_rows
from rarefy.tools.samples.samples import Samples

WIDTH, REFERENCE = 64, 20_000


@dataclass(frozen=True, eq=False)
class NeighbourLabels:
    """Of each sample: the share of its neighbours with another label, and the label that most of
    them have (its own one without any)."""

    disagreement: NDArray[np.float64]
    label: NDArray[np.int64]
    among: int
    """Samples among which they were looked for."""
    width: int
    """Directions in which distances were taken."""


def references_of(samples: Samples) -> int:
    """How many samples neighbours are looked for among; 0 where each would stand for more than one
    class, and every sample's neighbours had other labels than its own."""
    present = int((samples.counts > 0).sum())
    return min(len(samples), REFERENCE) if present <= REFERENCE else 0


def neighbour_labels(
    samples: Samples,
    k: int,
    device: torch.device,
    *,
    progress: Callable[[float], None] | None = None,
    deadline: Callable[[], bool] | None = None,
) -> NeighbourLabels:
    """Of every sample's k nearest others (fewer where there are not so many)."""
    labels, most = samples.labels, references_of(samples)
    among = None
    if most < len(samples):
        among = reference_rows(labels, len(samples.classes), most)
    found = nearest(
        samples.features,
        max(1, min(k, len(samples) - 1)),
        references=among,
        space=make_space(samples.features, WIDTH, device=device),
        scale=samples.scale,
        device=device,
        memory=2**62,  # bounded by the numbers above
        progress=progress,
        deadline=deadline,
    )
    share, common = disagreement(found, labels, labels)
    return NeighbourLabels(
        share,
        np.where(common < 0, labels, common),
        found.references,
        found.width,
    )
