"""What a backbone makes of images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rarefy.train.image_batches import Scaling, unit_pixels
from rarefy.train.precision import mixed_precision

ROWS = 2048
"""Images at a time: no gradient is kept, so that many fit anywhere."""


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
