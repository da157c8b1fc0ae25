"""The encoder that a pre-training leaves, and the features that a backbone makes of images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rarefy.nets.backbones import Encoder
from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.train.image_batches import Scaling, unit_pixels
from rarefy.train.precision import mixed_precision
from rarefy.train.simclr.pretraining import Pretraining

ROWS = 2048
"""Images at a time: no gradient is kept, so that many fit anywhere."""
STATISTICS_BATCHES = 50
"""Batches from which BatchNorm's statistics are estimated for weights that never saw an image."""


@torch.no_grad()
def features_of(
    backbone: nn.Module, images: Tensor, scaling: Scaling, precision: str = "float32"
) -> Tensor:
    """(n, d), float32, of uint8 images where they lie; the backbone in ``eval`` mode, and then as
    it was."""
    was_training = backbone.training
    backbone.eval()
    layout = torch.channels_last if images.is_cuda else torch.contiguous_format
    dtype = next((one.dtype for one in backbone.parameters()), torch.float32)
    found = []
    try:
        for first in range(0, len(images), ROWS):
            x = scaling(unit_pixels(images[first : first + ROWS], dtype), dtype)
            with mixed_precision(images.device, precision):
                found.append(backbone(x.contiguous(memory_format=layout)).float())
    finally:
        backbone.train(was_training)
    return torch.cat(found)


def final_encoder(training: Pretraining) -> Encoder:
    """The encoder as a user takes it home: all its weights, with statistics that belong to them."""
    encoder = training.export_encoder("dense")
    if training.has_foreign_statistics:
        views = (
            batch.flatten(0, 1).to(training.model_dtype) for batch in training.batches.epoch(0)
        )
        reestimate(encoder, views, STATISTICS_BATCHES)
    return encoder
