"""Loss and accuracy of a network on a set of images, plain or with noise."""

from __future__ import annotations

from collections.abc import Iterator
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
    loss = torch.zeros((), dtype=torch.float64, device=images.device)
    right = torch.zeros((), dtype=torch.int64, device=images.device)
    asked = outputs(model, images, scaling, noise, run_key, dtype, precision, memory_format)
    for answers, y in zip(asked, labels.split(ROWS), strict=False):
        loss += functional.cross_entropy(answers, y, reduction="sum").double()
        right += (answers.argmax(dim=1) == y).sum()
    if not len(images):
        return Score(float("nan"), float("nan"))
    return Score(float(loss) / len(images), float(right) / len(images))


def outputs(
    model: nn.Module,
    images: Tensor,
    scaling: Scaling,
    noise: float = 0.0,
    run_key: int = 0,
    dtype: torch.dtype = torch.float32,
    precision: str = "float32",
    memory_format: torch.memory_format = torch.contiguous_format,
) -> Iterator[Tensor]:
    """What it answers, (image, class), ``ROWS`` images at a time; arguments as in ``evaluate``."""
    was_training = model.training
    model.eval()
    try:
        # an empty set would still be one empty part
        for part, some in enumerate(images.split(ROWS) if len(images) else ()):
            x = unit_pixels(some, dtype)
            if noise:
                draws = generator_for(images.device, run_key, "test noise", noise, part)
                x = x + noise * torch.randn(x.shape, generator=draws, device=x.device, dtype=dtype)
            x = scaling(x, dtype).contiguous(memory_format=memory_format)
            with torch.no_grad(), mixed_precision(images.device, precision):
                answers = model(x)
            yield answers.to(torch.promote_types(dtype, torch.float32))
    finally:
        model.train(was_training)
