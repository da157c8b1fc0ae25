"""Training batches of multi-view samples: fresh ones at every step, or from a stored set."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView, MultiViewSamples


@dataclass(frozen=True)
class Batch:
    """Samples and their labels, (run, n)."""

    views: MultiViewSamples
    label: Tensor


@dataclass(frozen=True)
class FreshSamples:
    """``size`` new samples at every step, balanced over the subclasses (004 App. B.1, 9)."""

    data: MultiView
    labels: Labels
    draws: Draws
    size: int

    def __post_init__(self) -> None:
        if self.labels.per_side > max(self.data.plus, self.data.minus):
            raise bad_value(
                "per_side", self.labels.per_side, "finer than subclasses needs a stored set"
            )

    def __call__(self, step: int) -> Batch:
        subclass = self.data.balanced(self.size).to(self.draws.keys.device)[None]
        views = self.data.grouped(self.data.sample(self.draws, subclass, step=step))
        number = torch.zeros_like(views.subclass)
        return Batch(views, self.labels.of(views.subclass, number, self.draws, step=step))


class StoredSamples:
    """A set of ``each`` samples per subclass, drawn once. Batches of ``size``, equally many per
    subclass, each drawn with replacement; the whole set where it is no larger than that."""

    def __init__(self, data: MultiView, labels: Labels, draws: Draws, each: int, size: int) -> None:
        if each < 1:
            raise bad_value("samples", each, "every subclass needs at least 1 sample")
        if data.plus != data.minus:
            raise bad_value("minus", data.minus, f"a stored set needs k_- = k_+ = {data.plus}")
        if labels.per_side > each * data.plus:
            most = f"at most {each * data.plus}, one label per sample"
            raise bad_value("per_side", labels.per_side, most)
        self.draws, self.each, self.size = draws, each, size
        subclass = torch.arange(data.subclasses).repeat_interleave(each)
        number = torch.arange(each).repeat(data.subclasses)
        device = draws.keys.device
        views = data.grouped(data.sample(draws, subclass.to(device)[None], stream="stored"))
        rest = views.noise()
        self.views = replace(views, noise=lambda: rest)
        self.label = labels.of(views.subclass, number.to(device).expand(len(draws), -1), draws)
        self.whole = each * data.subclasses <= size
        if not self.whole:
            data.balanced(size)  # refuses what does not divide
        self.subclasses = data.subclasses

    def __call__(self, step: int) -> Batch:
        if self.whole:
            return Batch(self.views, self.label)
        share = self.size // self.subclasses
        which = self.draws.integers("batch", self.each, (self.subclasses, share), step)
        first = torch.arange(self.subclasses, device=which.device) * self.each
        index = (which + first[:, None]).flatten(1)
        runs = torch.arange(len(index), device=which.device)[:, None]
        views, stored = self.views, self.views.noise
        return Batch(
            replace(
                views,
                subclass=views.subclass[runs, index],
                patches=views.patches[runs, index],
                feature=views.feature[runs, index],
                noise=lambda: stored()[runs, index],
            ),
            self.label[runs, index],
        )
