"""A finite set of sparse-coding samples that is seen again and again, in place of fresh ones."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import Pairs, SparseCoding

AGAIN = ("sample", "pair")
"""What comes back when a sample is seen again. sample: its features and its own part of the noise,
each time under fresh noise, as an image under augmentations; pair: X_n and Y_n just as they were.
"""
FRESH = 0
"""The size of a set that is drawn anew at every step."""


class FiniteSets:
    """The training set of every run. ``size``: (run,), ``FRESH`` or the number of its samples;
    ``pairs``: (run,), true where pairs come back as they were."""

    def __init__(self, data: SparseCoding, draws: Draws, size: Tensor, pairs: Tensor) -> None:
        self.data, self.size = data, size
        self.most = int(size.max())
        self.least = int(size[size != FRESH].min()) if self.most else 0
        self.fresh = torch.nonzero(size == FRESH)[:, 0]
        self.noisy = ~pairs | (size == FRESH)  # whose tokens get fresh noise
        if self.most:
            own = draws.spawn("finite set")
            kept = data.seen(own, data.content(own, self.most, 0), 0, ~self.noisy)
            self.kept = Pairs(kept.tokens, kept.latents.contiguous())

    def sample(self, draws: Draws, samples: int, step: int) -> Pairs:
        """A batch without repeats, drawn anew for every step."""
        if self.most and samples > self.least:
            raise bad_value("samples", samples, f"must be at most {self.least}, a set's size")
        fresh = self.data.content(draws, samples, step)
        if not self.most:
            return self.data.seen(draws, fresh, step)
        chance = draws.uniform("chosen", (self.most,), step)
        inside = torch.arange(self.most, device=chance.device) < self.size[:, None]
        # (in a run whose samples are fresh nobody looks at what is chosen)
        chosen = torch.where(inside, chance, -1.0).topk(samples, dim=1).indices
        tokens = self._mixed(fresh.tokens, self.kept.tokens, chosen)
        latents = self._mixed(fresh.latents, self.kept.latents, chosen)
        return self.data.seen(draws, Pairs(tokens, latents), step, self.noisy)

    def _mixed(self, fresh: Tensor, kept: Tensor, chosen: Tensor) -> Tensor:
        """The fresh samples of a run or those of its set: (run, view, sample, token, ...)."""
        found = _rows(kept, chosen)
        renewed = fresh.index_select(0, self.fresh)
        return found.index_copy_(0, self.fresh, renewed.expand(-1, *found.shape[1:]))


def _rows(values: Tensor, chosen: Tensor) -> Tensor:
    """The chosen samples, (run, k), of (run, view, sample, ...)."""
    runs, views, samples, *rest = values.shape
    place = torch.arange(runs * views, device=chosen.device).reshape(runs, views, 1) * samples
    rows = (place + chosen[:, None, :]).flatten()
    # whole rows: many times faster than ``gather``
    flat = values.reshape(runs * views * samples, -1).index_select(0, rows)
    return flat.reshape(runs, views, -1, *rest)
