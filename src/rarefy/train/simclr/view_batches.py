"""Pairs of views cut from images that live on their device, every draw keyed by (run, epoch, part):
a training that was stopped anywhere goes on with the very views it would have had."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.train.image_batches import Scaling, generator_for
from rarefy.train.simclr.boosted_memory import BoostedMemory
from rarefy.train.simclr.data_parallel import World
from rarefy.train.views.views import Views

PART_BYTES = 512 * 1024**2
"""Views are made so many at a time (float32, both views): on a GPU an epoch of a small set costs a
few large operations. Fixed, so that the draws are the same on every machine."""


class ViewBatches:
    """``for x in batches.epoch(3): ...``: x (2, b, c, s, s), both views of b images. In a world of
    several processes every one draws the whole batch and takes its share."""

    def __init__(
        self,
        images: Tensor,
        views: Views,
        scaling: Scaling,
        batch: int,
        run_key: int,
        dtype: torch.dtype = torch.float32,
        world: World | None = None,
    ) -> None:
        if batch < 2:
            raise bad_value("batch", batch, "must be at least 2: the others are what is told apart")
        if batch > len(images):
            raise bad_value("batch", batch, f"must be at most the number of images, {len(images)}")
        self.images, self.views, self.scaling, self.batch = images, views, scaling, batch
        self.run_key, self.dtype, self.world = run_key, dtype, world or World()
        self.device = images.device
        self.memory: BoostedMemory | None = None
        """By which images are changed more or less, if anybody puts one here."""
        self._share = self.world.share(batch)
        # all batches have one size: every epoch leaves out others
        self.steps = len(images) // batch
        view_bytes = images.shape[1] * views.size**2 * 4
        self._part = max(1, PART_BYTES // (2 * batch * view_bytes))

    def epoch(self, number: int, begin: int = 0) -> Iterator[Tensor]:
        """The batches of an epoch, from batch ``begin`` on."""
        order = self.order(number)
        for part in range(begin // self._part, -(-self.steps // self._part)):
            first = part * self._part
            last = min(first + self._part, self.steps)
            chosen = order[first * self.batch : last * self.batch]
            augment = None
            if self.memory is not None:
                augment = self.memory.augment(chosen, self._draws("boost", number, part))
            made = self.views.make(
                self.images[chosen],
                self._draws("views", number, part),
                self.scaling,
                self.dtype,
                augment=augment,
            )
            for step in range(max(begin, first), last):
                whole = made[:, (step - first) * self.batch : (step - first + 1) * self.batch]
                yield whole[:, self._share]

    def order(self, number: int) -> Tensor:
        """Images of an epoch: batch s has rows s * batch, ..., (s + 1) * batch - 1 of it."""
        draws = self._draws("order", number)
        return torch.randperm(len(self.images), generator=draws, device=self.device)

    def _draws(self, stream: str, *parts: object) -> torch.Generator:
        return generator_for(self.device, self.run_key, stream, *parts)
