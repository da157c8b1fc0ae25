"""A look at features while they are learnt: nearest neighbours and class means, on held-out images.
Only to be seen: nothing is chosen by it."""

from __future__ import annotations

import torch

from rarefy.measure.representation.labelled import accuracy_by_class
from rarefy.measure.representation.nearest import knn_predict
from rarefy.measure.representation.structure import nearest_mean_accuracy
from rarefy.nets.backbones import Encoder
from rarefy.tools.longtail.evaluation import FEW_NEIGHBOURS
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.sets import Parts
from rarefy.train.contrast.pretraining import Pretraining

MOST = 2000
"""Held-out images that are looked at."""


def watched_features(
    encoder: Encoder, training: Pretraining, parts: Parts
) -> dict[str, list[float]]:
    """``knn``: share of held-out images whose nearest neighbours among the images of the
    pre-training have their class; ``separability``: share of each class's held-out
    images that are nearer to the mean of their own class than to any other, by rank."""
    scaling = training.batches.scaling
    places = parts.held_out.nonzero().flatten()
    places = places[:: -(-len(places) // MOST)]  # (files may be sorted by class)
    labels = parts.labelled.labels[places]

    def features(images: torch.Tensor) -> torch.Tensor:
        return features_of(encoder.backbone, images, scaling, training.precision)

    asked = features(parts.labelled.images[places])
    known = features(parts.seen.images)
    k = min(FEW_NEIGHBOURS, len(known))
    vote = knn_predict(known, parts.seen.labels, asked, parts.classes, k)
    by_class = accuracy_by_class(vote.predicted, labels, parts.classes)
    apart = nearest_mean_accuracy(asked, labels, parts.classes)
    return {
        "knn": [float(torch.nanmean(by_class))],
        "separability": apart[list(parts.order)].tolist(),
    }
