"""What samples can be sorted by without training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.rng import Draws
from rarefy.measure.influence.neighbours import Neighbours, disagreement
from rarefy.measure.influence.passes import score_classes
from rarefy.tools.influence.injections import InjectedSamples
from rarefy.tools.influence.percentiles import percentiles
from rarefy.tools.samples.row_ids import copies_of, row_ids

WORDS = {
    "percentile": "influence, percentile in class",
    "influence": "influence, raw",
    "own": "influence, own part",
    "shared": "influence, shared part",
    "distance": "distance to class mean",
    "mahalanobis": "Mahalanobis distance in class",
    "norm": "norm",
    "disagreement": "neighbours of other labels",
    "isolation": "distance to nearest neighbour",
    "conflict": "same content, other label",
    "random": "at random",
}
SIGNALS = tuple(WORDS)
SCORES = ("influence", "own", "shared", "distance", "mahalanobis", "norm")


def signals_of(
    injected: InjectedSamples, scale: float, near: Neighbours, draws: Draws, device: torch.device
) -> NDArray[np.float64]:
    """(signal, sample); high is what should be looked at first."""
    labels = injected.labels
    scores = score_classes(injected.features, labels, injected.classes, scale=scale, device=device)
    ids = row_ids(injected.features, labels)
    values: dict[str, NDArray[Any]] = {name: getattr(scores, name) for name in SCORES}
    values["percentile"] = percentiles(scores.influence, labels)
    values["disagreement"] = disagreement(near, labels, labels)[0]
    values["isolation"] = near.distances[:, 0]
    values["conflict"] = copies_of(ids, labels).conflict
    values["random"] = draws.uniform("random", (len(labels),))[0].cpu().numpy()
    return np.stack([values[name].astype(np.float64) for name in SIGNALS])
