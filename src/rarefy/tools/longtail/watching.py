"""A look at features while they are learnt: nearest neighbours and class means, on held-out images.
Only to be seen: nothing is chosen by it."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from rarefy.core.contracts import Context
from rarefy.measure.representation.class_means import nearest_mean_accuracy
from rarefy.measure.representation.knn import knn_predict
from rarefy.measure.representation.labelled import accuracy_by_class, class_counts
from rarefy.nets.backbones import Encoder
from rarefy.tools.longtail.evaluation import FEW_NEIGHBOURS
from rarefy.tools.longtail.features import features_of, final_encoder
from rarefy.tools.longtail.sets import Parts
from rarefy.train.simclr.pretraining import Pretraining

MOST = 2000
"""Held-out images that are looked at."""
Look = Callable[[Encoder, Pretraining, Parts], dict[str, list[float]]]
"""What is seen of an encoder on its way, by name; ``knn``, a number, among it."""


def watched_features(
    encoder: Encoder, training: Pretraining, parts: Parts
) -> dict[str, list[float]]:
    """``knn``: share of held-out images whose nearest neighbours among the other images of the
    pre-training have their class, mean over classes, and ``knn_error``, its standard error over
    held-out images; ``separability``: share of each class's
    held-out images that are nearer to the mean of their own class than to any other, by rank."""
    scaling = training.batches.scaling
    places = parts.held_out.nonzero().flatten()
    places = places[:: -(-len(places) // MOST)]  # (files may be sorted by class)
    labels = parts.labelled.labels[places]

    def features(images: torch.Tensor) -> torch.Tensor:
        return features_of(encoder.backbone, images, scaling, training.precision)

    asked = features(parts.labelled.images[places])
    knn = error = float("nan")
    others = _not_held_out(parts)
    if len(others):
        known = features(parts.seen.images[others])
        k = min(FEW_NEIGHBOURS, len(known))
        vote = knn_predict(known, parts.seen.labels[others], asked, parts.classes, k)
        by_class = accuracy_by_class(vote.predicted, labels, parts.classes)
        knn, error = float(torch.nanmean(by_class)), _error(by_class, labels)
    apart = nearest_mean_accuracy(asked, labels, parts.classes)
    return {
        "knn": [knn],
        "knn_error": [error],
        "separability": apart[list(parts.order)].tolist(),
    }


def _error(by_class: torch.Tensor, labels: torch.Tensor) -> float:
    """Standard error of the mean over classes. Two made-up images per class, one right and one
    wrong, because none is sure for having been right a few times."""
    counts = class_counts(labels, len(by_class)).to("cpu", torch.float64)
    there = counts > 0
    counts, right = counts[there], (by_class[there] * counts[there] + 1) / (counts[there] + 2)
    return float((right * (1 - right) / counts).sum().sqrt() / there.sum())


def _not_held_out(parts: Parts) -> torch.Tensor:
    """Places among the images of the pre-training. A whole head class is trained on, its held-out
    images too: each would find itself as its nearest neighbour."""
    marks = zip(parts.labelled.ids, parts.held_out.tolist(), strict=True)
    held_out = {identity for identity, marked in marks if marked}
    places = [place for place, one in enumerate(parts.seen.ids) if one not in held_out]
    return torch.tensor(places, dtype=torch.int64, device=parts.seen.images.device)


class Watcher:
    """After every epoch a few words; after some, a look at the features."""

    def __init__(
        self,
        watched: Collection[int],
        parts: Parts,
        context: Context,
        name: str,
        look: Look | None = None,
    ) -> None:
        self.watched, self.parts, self.context, self.name = watched, parts, context, name
        self._look = look or watched_features
        self._known = ""

    def __call__(self, now: Pretraining) -> None:
        seen = now.history
        if now.epoch in self.watched and self.parts.has_labels:
            found = self._look(final_encoder(now), now, self.parts)
            for name, values in found.items():
                seen.watched.setdefault(name, []).extend(values)
            self._known = f", kNN {100 * found['knn'][0]:.1f} %"
        words = f"{self.name}: epoch {now.epoch}/{now.epochs}, loss {seen.loss[-1]:.3f}, "
        words += f"alignment {seen.alignment[-1]:.2f}, uniformity {seen.uniformity[-1]:.2f}"
        if now.method.masked:
            words += f", churn {100 * seen.churn[-1]:.2f} %"
        self.context.say(words + self._known)
