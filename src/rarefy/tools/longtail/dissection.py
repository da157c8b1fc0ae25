"""A closer look at features while they are learnt: what of them is class, what is the image itself,
what is the view, and along how many directions they vary. On test images, which no training saw and
by which nothing is chosen, beside as many of each class that were trained on."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.measure.representation.class_means import class_share
from rarefy.measure.representation.instance import FOLDS, instance_retrieval, readable
from rarefy.measure.representation.knn import knn_predict, unit_rows
from rarefy.measure.representation.labelled import accuracy_by_class
from rarefy.measure.representation.spectrum import effective_rank, spectrum
from rarefy.nets.backbones import Encoder
from rarefy.tools.longtail.evaluation import FEW_NEIGHBOURS
from rarefy.tools.longtail.features import features_of
from rarefy.tools.longtail.sets import Parts, balanced_places
from rarefy.tools.longtail.watching import MOST, watched_features
from rarefy.train.image_batches import Scaling, generator_for
from rarefy.train.simclr.objective import contrast
from rarefy.train.simclr.pretraining import Pretraining
from rarefy.train.views.view_parameters import VIEWS, ViewParameters

KNOWN = ("trained", "unseen")
"""Images whose views are looked for."""
DRAWN = ("crop", "colour")
"""What is drawn for a view, in two parts."""
DIRECTIONS = 64
"""Of the spectrum, the largest."""
UNCHANGED = (1.0, 1.0, 1.0, 0.0)
"""Brightness, contrast, saturation and hue of a view whose colours were left alone."""


@torch.no_grad()
def dissected_features(
    encoder: Encoder, training: Pretraining, parts: Parts
) -> dict[str, list[float]]:
    """``watched_features``, and of the features brought to length 1: ``unseen_knn`` by rank (half
    of the test images by their neighbours in the other half), ``class_share``, ``effective_rank``
    and ``spectrum`` of unseen images; ``unseen_alignment``, ``unseen_uniformity`` and
    ``augmentation`` (how much of what was drawn can be read) of two views of them; ``retrieval``
    of trained and of unseen images. The views are the same at every look."""
    places = balanced_places(parts.test.labels, parts.classes, max(2, MOST // parts.classes))
    images, labels = parts.test.images[places], parts.test.labels[places]
    scaling = training.batches.scaling

    def features(shown: Tensor) -> Tensor:
        return unit_rows(features_of(encoder.backbone, shown, scaling, training.precision))

    def views_of(shown: Tensor, name: str) -> tuple[Tensor, Tensor, ViewParameters]:
        batches = training.batches
        draws = generator_for(batches.device, batches.run_key, "look", name)
        count, _, height, width = shown.shape
        drawn = batches.views.draw(count, height, width, draws)
        channels = len(scaling.mean)
        unscaled = Scaling((0.0,) * channels, (1.0,) * channels)  # (``features_of`` scales)
        found = features(batches.views.show(shown, drawn, unscaled))
        return found[0::VIEWS], found[1::VIEWS], drawn

    plain = features(images)
    first, second, drawn = views_of(images, "unseen")
    near = contrast(first, second, torch.ones((), device=first.device))
    trained, unseen = _matched(parts.seen.labels, labels, parts.classes)
    learnt = views_of(parts.seen.images[trained], "trained")
    return {
        **watched_features(encoder, training, parts),
        "unseen_knn": _neighbours(plain, labels, parts.classes)[list(parts.order)].tolist(),
        "class_share": [class_share(plain, labels, parts.classes)],
        "effective_rank": [effective_rank(plain)],
        "spectrum": _filled(spectrum(plain).tolist()),
        "unseen_alignment": [float(near.alignment)],
        "unseen_uniformity": [float(near.uniformity)],
        "retrieval": [
            instance_retrieval(*learnt[:2]),
            instance_retrieval(first[unseen], second[unseen]),
        ],
        "augmentation": _read(torch.stack([first, second], dim=1), drawn, images.shape[2:]),
    }


def _neighbours(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Accuracy by class, each half of the images asked with the other one known."""
    even = torch.arange(len(labels), device=labels.device) % 2 == 0
    predicted = torch.empty_like(labels)
    for asked in (even, ~even):
        k = min(FEW_NEIGHBOURS, int((~asked).sum()))
        vote = knn_predict(features[~asked], labels[~asked], features[asked], classes, k)
        predicted[asked] = vote.predicted
    return accuracy_by_class(predicted, labels, classes)


def _matched(trained: Tensor, unseen: Tensor, classes: int) -> tuple[Tensor, Tensor]:
    """Places of as many trained as unseen images of each class: to find an image is harder among
    more, and among its like."""
    found: tuple[list[Tensor], list[Tensor]] = ([], [])
    for label in range(classes):
        places = [(labels == label).nonzero().flatten() for labels in (trained, unseen)]
        for kept, there in zip(found, places, strict=True):
            kept.append(there[: min(map(len, places))])
    return torch.cat(found[0]), torch.cat(found[1])


def _read(features: Tensor, drawn: ViewParameters, size: torch.Size) -> list[float]:
    """R^2 of crop and of colour, each the mean over its numbers; ``features``: (image, view, d)."""
    groups = torch.arange(len(features), device=features.device).repeat_interleave(VIEWS)
    told = []
    for targets in view_targets(drawn, int(size[0]), int(size[1])):
        found = readable(features.flatten(0, 1), targets, groups, min(FOLDS, len(features)))
        told.append(float(torch.nanmean(found)))
    return told


def view_targets(drawn: ViewParameters, height: int, width: int) -> tuple[Tensor, Tensor]:
    """What of a view its features could tell: (view, 3), where its middle lies in the image as it
    is shown (down, across) and the logarithm of its area; (view, 4), by how much brightness,
    contrast, saturation and hue were changed (the last two cannot be seen in a grey view)."""
    top, left, tall, wide = drawn.boxes.double().unbind(1)
    across = (left + wide / 2) / width
    across = torch.where(drawn.mirrored, 1 - across, across)
    area = (tall * wide / (height * width)).log()
    crop = torch.stack([(top + tall / 2) / height, across, area], dim=1)
    unchanged = torch.tensor(UNCHANGED, dtype=torch.float64, device=crop.device)
    seen = drawn.jittered[:, None].repeat(1, len(UNCHANGED))
    seen[:, 2:] &= ~drawn.greyed[:, None]
    return crop, torch.where(seen, drawn.factors.double(), unchanged)


def _filled(values: list[float]) -> list[float]:
    return (values + [math.nan] * DIRECTIONS)[:DIRECTIONS]
