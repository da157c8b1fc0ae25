"""How good a network is on the target: its own answers, and a linear probe of its features."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.data.images import ImageSet
from rarefy.measure.representation.linear_probe import fit_chosen
from rarefy.tools.granularity.sets import TransferSets
from rarefy.tools.longtail.features import features_of
from rarefy.train.evaluation import ROWS
from rarefy.train.image_batches import Scaling, unit_pixels
from rarefy.train.precision import mixed_precision

ENOUGH_TO_TELL = 20
"""Test images from which on a subclass counts, where one has so many."""


def right_answers(
    model: nn.Module, images: ImageSet, sets: TransferSets, precision: str, context: Context
) -> Tensor:
    """Per image: whether the network names its target class."""
    answers = answers_of(model, images.images, sets.scaling, precision, context)
    return answers == sets.labels(images)


@torch.no_grad()
def answers_of(
    model: nn.Module, images: Tensor, scaling: Scaling, precision: str, context: Context
) -> Tensor:
    """Per image the target class that the network names."""
    was_training = model.training
    model.eval()
    layout = torch.channels_last if images.is_cuda else torch.contiguous_format
    found = []
    try:
        for first in range(0, len(images), ROWS):
            x = scaling(unit_pixels(images[first : first + ROWS], context.dtype), context.dtype)
            with mixed_precision(images.device, precision):
                found.append(model(x.contiguous(memory_format=layout)).argmax(dim=1))
    finally:
        model.train(was_training)
    return torch.cat(found)


def share(right: Tensor) -> float:
    return float(right.double().mean())


def probe_backbone(
    backbone: nn.Module, sets: TransferSets, precision: str
) -> tuple[float, float, Tensor]:
    """Shares of right answers on held-out and on test images, and which test images are right."""
    parts = [sets.tuned, sets.held_out, sets.test]
    features = [features_of(backbone, one.images, sets.scaling, precision) for one in parts]
    tuned, held, test = features
    labels = [sets.labels(one) for one in parts]
    out = torch.arange(len(tuned) + len(held), device=tuned.device) >= len(tuned)
    chosen = fit_chosen(torch.cat([tuned, held]), torch.cat(labels[:2]), len(sets.target), out)
    best = max(chosen.choice.table, key=lambda row: row.balanced_accuracy)
    right = chosen.probe.predict(test).to(labels[2].device) == labels[2]
    return best.accuracy, share(right), right


def worst_subclasses(right: Tensor, subclasses: Tensor) -> tuple[float, float]:
    """Accuracy on the worst subclass, and the mean over the worst tenth of them."""
    answered, labels = right.cpu().double().numpy(), subclasses.cpu().numpy()
    counts = np.bincount(labels)
    # one image is right or wrong: the worst of many such is always 0
    told = counts >= min(ENOUGH_TO_TELL, counts.max())
    shares = np.sort(np.bincount(labels, weights=answered)[told] / counts[told])
    return float(shares[0]), float(shares[: max(1, round(len(shares) / 10))].mean())
