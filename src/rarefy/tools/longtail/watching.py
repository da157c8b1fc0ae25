"""A look at features while they are learnt: nearest neighbours and class means of held-out images,
and how many directions features use. By the neighbours the best network is kept and a training is
stopped where somebody asked for it; test images are never looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

from rarefy.core.contracts import Context
from rarefy.measure.representation.class_means import nearest_mean_accuracy
from rarefy.measure.representation.knn import knn_predict
from rarefy.measure.representation.labelled import accuracy_by_class, balanced_accuracy
from rarefy.measure.representation.spectrum import effective_rank
from rarefy.nets.backbones import Encoder
from rarefy.tools.longtail.evaluation import FEW_NEIGHBOURS
from rarefy.tools.longtail.features import features_of, final_encoder
from rarefy.tools.longtail.overtraining import certainly_fallen
from rarefy.tools.longtail.sets import Parts
from rarefy.train.simclr.pretraining import Pretraining

MOST = 2000
"""Held-out images that are looked at."""
Look = Callable[[Encoder, Pretraining, Parts], dict[str, list[float]]]
"""What is seen of an encoder on its way, by name; ``knn``, a number, among it."""
IN_A_ROW = 2
"""Looks at which features are certainly worse than at the best one before a training is stopped."""


def asked_places(parts: Parts) -> torch.Tensor:
    """Where the held-out images that are looked at stand among the labelled ones."""
    places = parts.held_out.nonzero().flatten()
    return places[:: max(-(-len(places) // MOST), 1)]  # (files may be sorted by class)


def watched_features(
    encoder: Encoder, training: Pretraining, parts: Parts
) -> dict[str, list[float]]:
    """``effective_rank`` of the features of held-out images, of those that are trained on where
    nothing has labels. With labels also ``right``: of each held-out image, whether its nearest
    neighbours among the other images of the pre-training have its class; ``knn``: the share of
    those, mean over classes; ``separability``: share of each class's held-out images that are
    nearer to the mean of their own class than to any other, by rank."""
    scaling = training.batches.scaling

    def features(images: torch.Tensor) -> torch.Tensor:
        return features_of(encoder.backbone, images, scaling, training.precision)

    if not parts.has_labels:
        shown = parts.seen.images[:: -(-len(parts.seen) // MOST)]
        return {"effective_rank": [effective_rank(features(shown))]}
    places = asked_places(parts)
    labels = parts.labelled.labels[places]
    asked = features(parts.labelled.images[places])
    knn, right = float("nan"), labels.new_zeros(0)
    others = _not_held_out(parts)
    if len(others):
        known = features(parts.seen.images[others])
        k = min(FEW_NEIGHBOURS, len(known))
        vote = knn_predict(known, parts.seen.labels[others], asked, parts.classes, k)
        # (of several processes each has statistics of its own: all go by the first one's)
        training.world.broadcast([vote.predicted])
        knn = balanced_accuracy(accuracy_by_class(vote.predicted, labels, parts.classes))
        right = vote.predicted == labels
    apart = nearest_mean_accuracy(asked, labels, parts.classes)
    return {
        "knn": [knn],
        "right": right.double().tolist(),
        "separability": apart[list(parts.order)].tolist(),
        "effective_rank": [effective_rank(asked)],
    }


def _not_held_out(parts: Parts) -> torch.Tensor:
    """Places among the images of the pre-training. A whole head class is trained on, its held-out
    images too: each would find itself as its nearest neighbour."""
    marks = zip(parts.labelled.ids, parts.held_out.tolist(), strict=True)
    held_out = {identity for identity, marked in marks if marked}
    places = [place for place, one in enumerate(parts.seen.ids) if one not in held_out]
    return torch.tensor(places, dtype=torch.int64, device=parts.seen.images.device)


class Watcher:
    """After every epoch a few words; after some, a look at the features. ``best``: the training
    keeps the network of the best look; ``stop``: it ends where over-training is certain."""

    def __init__(
        self,
        watched: Collection[int],
        parts: Parts,
        context: Context,
        name: str,
        look: Look | None = None,
        best: bool = False,
        stop: bool = False,
    ) -> None:
        self.watched, self.parts, self.context, self.name = watched, parts, context, name
        self.look, self.best, self.stop = look or watched_features, best, stop
        self._known = ""

    def __call__(self, now: Pretraining) -> None:
        seen = now.history
        if now.epoch in self.watched:
            self._look(now)
        words = f"{self.name}: epoch {now.epoch}/{now.epochs}, loss {seen.loss[-1]:.3f}, "
        words += f"alignment {seen.alignment[-1]:.2f}, uniformity {seen.uniformity[-1]:.2f}"
        if now.method.masked:
            words += f", churn {100 * seen.churn[-1]:.2f} %"
        self.context.say(words + self._known)

    def _look(self, now: Pretraining) -> None:
        found = self.look(final_encoder(now), now, self.parts)
        right = found.pop("right", [])
        watched = now.history.watched
        for name, values in found.items():
            watched.setdefault(name, []).extend(values)
        self._known = f", effective rank {found['effective_rank'][0]:.1f}"
        if not right:
            return
        knn = watched["knn"]
        self._known = f", kNN {100 * knn[-1]:.1f} %{self._known}"
        fallen = False
        if knn[-1] >= max(knn):  # (of equals the later: it had more of the schedule)
            watched["best_right"] = right
            if self.best:
                now.keep()
        else:
            labels = self.parts.labelled.labels[asked_places(self.parts)].tolist()
            fallen = certainly_fallen(watched["best_right"], right, labels, len(self.watched))
        falls = watched.setdefault("fallen", [])
        falls.append(float(fallen))
        if self.stop and now.epoch < now.epochs and sum(falls[-IN_A_ROW:]) == IN_A_ROW:
            now.history.stopped_epoch = now.epoch
