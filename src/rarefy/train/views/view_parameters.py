"""Everything that was drawn for the views of some images."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from rarefy.train.views.rand_augment import Augment

VIEWS = 2
"""Of every image. Row ``VIEWS * i + v`` of what is drawn belongs to view v of image i: what belongs
to a range of images then lies together."""


class ViewParameters(NamedTuple):
    """One row per view. Strengths are drawn also for views that the gates leave alone, and for
    changes that never happen: crops do not depend on which colours were asked for."""

    boxes: Tensor
    """(m, 4): top, left, height and width of the crop."""
    mirrored: Tensor
    """(m,), boolean, as all gates."""
    factors: Tensor
    """(m, 4): brightness, contrast, saturation, hue."""
    order: Tensor
    """(m, 4): which of these comes first, second, ..."""
    jittered: Tensor
    greyed: Tensor
    sigmas: Tensor
    """(m,): of the blur, in pixels."""
    blurred: Tensor
    solarised: Tensor
    augment: Augment | None = None
    """What comes behind all of them, if anything."""

    def of_images(self, first: int, last: int) -> ViewParameters:
        """What belongs to images first, ..., last - 1."""
        return self.each(lambda rows: rows[VIEWS * first : VIEWS * last])

    def pad_to(self, images: int) -> ViewParameters:
        """As if the last view were there again and again, up to so many images."""
        missing = VIEWS * images - len(self.boxes)
        return self.each(lambda rows: pad_rows(rows, missing))

    def each(self, change: Callable[[Tensor], Tensor]) -> ViewParameters:
        """The same change of all that was drawn."""
        *views, augment = self
        more = None if augment is None else Augment(*map(change, augment))
        return ViewParameters(*map(change, views), more)  # type: ignore[arg-type, call-arg]


def pad_rows(rows: Tensor, missing: int) -> Tensor:
    """``rows`` and its last row ``missing`` times more."""
    if missing == 0:
        return rows
    return torch.cat([rows, rows[-1:].expand(missing, *rows.shape[1:])])
