"""Weighted vote of the nearest neighbours (Wu et al. 2018): a probe without any training.

Similarities are float32 and compared as they come out; which of several references of one
similarity is the k-th is left to chance. ``measure.influence.neighbours`` measures again until that
is certain, which pays for ten neighbours, not for two hundred whose votes differ little.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.precision import matrix_products
from rarefy.measure.representation.labelled import check_features, check_labelled

_SIMILARITIES = {"cpu": 1 << 22, "cuda": 1 << 28}
"""Similarities held at a time."""


@dataclass(frozen=True)
class NeighbourVote:
    """predicted: (query,); k: how many neighbours voted, fewer than asked where there are fewer."""

    predicted: Tensor
    k: int
    asked: int

    @property
    def limited(self) -> bool:
        """Whether there were fewer references than neighbours asked for, so that all voted."""
        return self.k < self.asked


def knn_predict(
    reference: Tensor,
    labels: Tensor,
    queries: Tensor,
    classes: int,
    k: int = 200,
    temperature: float = 0.1,
) -> NeighbourVote:
    """Each of the k references of largest cosine votes for its label with exp(cosine / T).

    reference: (n, d) with labels (n,); queries: (m, d). A row of zeros has cosine 0 to all. A class
    without references gets no vote and is never predicted; of equal votes the lower label wins.
    """
    if k < 1:
        raise bad_value("k", k, "must be at least 1")
    if not 0 < temperature < float("inf"):
        raise bad_value("temperature", temperature, "must be positive and finite")
    known, labels = check_labelled((reference, labels), classes, "reference")
    asked = check_features(queries, "queries", least=0).to(known.device)
    if asked.shape[1] != known.shape[1]:
        raise bad_value("queries", tuple(asked.shape), f"must have {known.shape[1]} columns")
    among = unit_rows(known).float()
    used = min(k, len(among))
    predicted = torch.empty(len(asked), dtype=torch.int64, device=known.device)
    step = max(1, _SIMILARITIES[known.device.type] // max(len(among), classes))
    with matrix_products("float32", known.device):
        for first in range(0, len(asked), step):
            part = unit_rows(asked[first : first + step]).float()
            near, who = (part @ among.T).topk(used, dim=1, sorted=False)
            # only ratios of votes matter: relative to the nearest none of them all vanishes
            weight = ((near - near.amax(dim=1, keepdim=True)).double() / temperature).exp()
            votes = weight.new_zeros(len(part), classes).scatter_add_(1, labels[who], weight)
            predicted[first : first + step] = votes.argmax(dim=1)
    return NeighbourVote(predicted, used, k)


def unit_rows(features: Tensor) -> Tensor:
    """Each row divided by its length; a row of zeros stays."""
    # by the largest entry first: squares of very large or small values leave float32
    largest = features.abs().amax(dim=1, keepdim=True)
    scaled = features / torch.where(largest > 0, largest, 1.0)
    length = scaled.norm(dim=1, keepdim=True)
    return scaled / torch.where(length > 0, length, 1.0)
