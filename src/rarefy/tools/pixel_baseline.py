"""What a logistic regression on pixels answers: the least that a network should be better than."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rarefy.data.images import ImageSet
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.measure.class_report import confusion_of
from rarefy.measure.representation.linear_probe import fit_chosen, fit_linear
from rarefy.tools.image_data import some_of

MOST_IMAGES, SIDE = 4000, 16
"""Training images and pixels per side it is shown: seconds on one core."""
HELD_OUT, STRENGTH = 0.2, 0.01
"""Share of the training images that chooses how strongly it is held back; what it is where no class
has two images."""


def pixel_confusion(train: ImageSet, test: ImageSet) -> NDArray[np.int64]:
    """Test images by (true class, answered class). Pixels are standardised; how strongly the
    regression is held back is chosen on held-out training images."""
    some, classes = some_of(train, MOST_IMAGES), len(train.classes)
    features, labels = _pixels(some.images), some.labels.cpu()
    contents = [digest_of(one) for one in some.ids]
    held_out = torch.tensor(choose_by_content(contents, labels.tolist(), HELD_OUT, "pixels"))
    if held_out.any():
        probe = fit_chosen(features, labels, classes, held_out).probe
    else:
        probe = fit_linear(features, labels, classes, STRENGTH)
    return confusion_of(test.labels.cpu(), probe.predict(_pixels(test.images)), classes)


def _pixels(images: Tensor) -> Tensor:
    """(image, number), large images made smaller by means over squares."""
    values = images.cpu().float() / 255
    side = min(SIDE, *values.shape[2:])
    return functional.adaptive_avg_pool2d(values, side).flatten(1)
