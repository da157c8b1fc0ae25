"""Training images that live on their device as uint8, and the batches cut from them there.

Every draw is keyed by (run, what for, epoch, part of the epoch), never by what was drawn before: a
training that was stopped anywhere goes on with the very batches it would have had.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import key
from rarefy.train.augment import crop_windows, draw_shifts, random_flip, reflect_pad

PART_BYTES = 128 * 1024**2
"""Images are changed so many at a time: on a GPU an epoch costs a few large operations, where batch
by batch it would cost thousands of small ones."""


@dataclass(frozen=True)
class Scaling:
    """From stored values to what a network sees: [0, 1], then mean 0 and std 1 per channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, images: Tensor, dtype: torch.dtype) -> Tensor:
        shape = (1, len(self.mean), 1, 1)
        mean = torch.tensor(self.mean, dtype=dtype, device=images.device).reshape(shape)
        # a channel that never changes carries nothing; dividing by 0 would spoil the others
        std = torch.tensor([value or 1.0 for value in self.std], dtype=dtype, device=images.device)
        return (images - mean) / std.reshape(shape)


def unit_pixels(images: Tensor, dtype: torch.dtype) -> Tensor:
    """Pixels in [0, 1]; what is a float already has that scale."""
    if images.dtype == torch.uint8:
        return images.to(dtype) / 255
    return images.to(dtype)


def generator_for(device: torch.device, *parts: object) -> torch.Generator:
    """A generator that is in the same state whenever it is asked for with the same parts."""
    return torch.Generator(device).manual_seed(key(*parts) & (2**63 - 1))


@dataclass(frozen=True)
class Augmentation:
    """What happens to a training image: moved by up to ``shift`` pixels, mirrored left to right
    half the time, Gaussian noise of std ``noise`` (pixels in [0, 1]) added, drawn ``fresh`` each
    time it is shown or once for all."""

    shift: int = 0
    flip: bool = False
    noise: float = 0.0
    fresh: bool = True

    def __post_init__(self) -> None:
        if self.shift < 0:
            raise bad_value("shift", self.shift, "must be at least 0 pixels")
        if not 0 <= self.noise < float("inf"):
            raise bad_value("noise", self.noise, "must be finite and at least 0")


class ImageBatches:
    """``for x, y in batches.epoch(3): ...``: x (batch, c, h, w) as the network sees it."""

    def __init__(
        self,
        images: Tensor,
        labels: Tensor,
        scaling: Scaling,
        batch: int,
        run_key: int,
        changes: Augmentation | None = None,
        dtype: torch.dtype = torch.float32,
        memory_format: torch.memory_format = torch.contiguous_format,
    ) -> None:
        if batch < 1:
            raise bad_value("batch", batch, "must be at least 1")
        self.changes = changes or Augmentation()
        self._source = images
        self.labels, self.scaling, self.dtype = labels, scaling, dtype
        self.run_key, self.memory_format = run_key, memory_format
        self.device = images.device
        self.size = (images.shape[2], images.shape[3])
        # a last batch of a few images would upset the statistics of BatchNorm: every epoch leaves
        # out others
        self.batch = min(batch, len(images))
        self.steps = len(images) // self.batch
        if self.changes.noise and not self.changes.fresh:
            images = self._with_noise_for_good(images)
        self.images = reflect_pad(images, self.changes.shift)
        image_bytes = images[0].numel() * 4
        self._part = max(1, PART_BYTES // (image_bytes * self.batch))

    def epoch(self, number: int, begin: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """The batches of an epoch, from batch ``begin`` on."""
        order = torch.randperm(
            len(self.images), generator=self._draws("order", number), device=self.device
        )
        for part in range(begin // self._part, -(-self.steps // self._part)):
            first = part * self._part
            last = min(first + self._part, self.steps)
            chosen = order[first * self.batch : last * self.batch]
            x, y = self._shown(chosen, number, part), self.labels[chosen]
            for step in range(max(begin, first), last):
                here = slice((step - first) * self.batch, (step - first + 1) * self.batch)
                yield x[here], y[here]

    def without_noise(self) -> ImageBatches:
        """The same images, moved and mirrored as here, without noise."""
        kept = (self._source, self.labels, self.scaling, self.batch, self.run_key)
        quiet = replace(self.changes, noise=0.0)
        return ImageBatches(*kept, quiet, self.dtype, self.memory_format)

    def again(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches without end, epoch after epoch."""
        number = 0
        while True:
            yield from self.epoch(number)
            number += 1

    def _draws(self, stream: str, *parts: object) -> torch.Generator:
        return generator_for(self.device, self.run_key, stream, *parts)

    def _shown(self, chosen: Tensor, number: int, part: int) -> Tensor:
        changes, draws = self.changes, self._draws("changes", number, part)
        corners = draw_shifts(len(chosen), changes.shift, draws) if changes.shift else None
        images = crop_windows(self.images, chosen, corners, self.size)
        if changes.flip:
            images = random_flip(images, draws)
        compute = torch.promote_types(self.dtype, torch.float32)
        x = unit_pixels(images, compute)
        if changes.noise and changes.fresh:
            x += changes.noise * torch.randn(
                x.shape,
                generator=self._draws("noise", number, part),
                device=x.device,
                dtype=compute,
            )
        return self.scaling(x, compute).to(self.dtype, memory_format=self.memory_format)

    def _with_noise_for_good(self, images: Tensor) -> Tensor:
        """The set with its noise, which then moves and turns with the image it belongs to. Half
        precision: an error of one part in a thousand of the noise, at half the memory."""
        noisy = torch.empty(images.shape, dtype=torch.float16, device=self.device)
        rows = max(1, PART_BYTES // (images[0].numel() * 4))
        for part, first in enumerate(range(0, len(images), rows)):
            some = unit_pixels(images[first : first + rows], torch.float32)
            noise = torch.randn(
                some.shape, generator=self._draws("noise for good", part), device=self.device
            )
            noisy[first : first + rows] = (some + self.changes.noise * noise).half()
        return noisy
