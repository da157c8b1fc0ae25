"""Loss and accuracy of a network on a set of images, plain or with noise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy.train.image_batches import Scaling, generator_for, unit_pixels
from rarefy.train.precision import mixed_precision

ROWS = 2048
"""Images at a time; no gradient is kept, so that many fit anywhere."""


class Score(NamedTuple):
    """Mean cross-entropy and share of right answers; NaN loss when an output is not finite."""

    loss: float
    accuracy: float


@torch.no_grad()
def evaluate(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    scaling: Scaling,
    noise: float = 0.0,
    run_key: int = 0,
    dtype: torch.dtype = torch.float32,
    precision: str = "float32",
    memory_format: torch.memory_format = torch.contiguous_format,
) -> Score:
    """The network as it answers (``eval`` mode); NaN where there are no images. Two networks
    asked with one ``run_key`` see the same noise."""
    was_training = model.training
    model.eval()
    loss = torch.zeros((), dtype=torch.float64, device=images.device)
    right = torch.zeros((), dtype=torch.int64, device=images.device)
    try:
        for part, first in enumerate(range(0, len(images), ROWS)):
            x = unit_pixels(images[first : first + ROWS], dtype)
            y = labels[first : first + ROWS]
            if noise:
                draws = generator_for(images.device, run_key, "test noise", noise, part)
                x = x + noise * torch.randn(x.shape, generator=draws, device=x.device, dtype=dtype)
            x = scaling(x, dtype).contiguous(memory_format=memory_format)
            with mixed_precision(images.device, precision):
                answers = model(x)
            answers = answers.to(torch.promote_types(dtype, torch.float32))
            loss += functional.cross_entropy(answers, y, reduction="sum").double()
            right += (answers.argmax(dim=1) == y).sum()
    finally:
        model.train(was_training)
    if not len(images):
        return Score(float("nan"), float("nan"))
    return Score(float(loss) / len(images), float(right) / len(images))
