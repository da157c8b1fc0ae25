"""Which class is the head, which the tail: an order of the classes that can be drawn anew.

With one fixed order a gap between head and tail is also a gap between easy and hard classes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rarefy.core.rng import Draws, key
from rarefy.data.longtail.counts import given, whole

BY_LABEL = -1
"""The seed of the order of the labels: class 0 is the head, as in the usual CIFAR-LT."""


def class_order(classes: int, seed: int | None) -> tuple[int, ...]:
    """The class at each rank, the head's first. None or -1: the order of the labels.

    Seeds 2k and 2k + 1 are mirror images: what is head in one is tail in the other. In an average
    over both every class stands on both sides, so it does not tell which classes are easy.
    """
    whole("classes", classes, 1)
    if seed is None or whole("seed", seed, BY_LABEL) == BY_LABEL:
        return tuple(range(classes))
    draws = Draws([key("class order", pair_of(int(seed)))])
    heights = draws.uniform("class order", (classes,))[0]
    # stable: draws have 24 bits, of a thousand two may be equal
    order: list[int] = torch.argsort(heights, stable=True).tolist()
    return tuple(reversed(order)) if int(seed) % 2 else tuple(order)


def pair_of(seed: int) -> int:
    """The same for the two orders that are mirror images of each other."""
    return seed // 2


def rank_classes(count_by_class: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Counts head first and the order that belongs to them, of counts by label; equal ones stay in
    the order of the labels, classes with none are left out."""
    here = [label for label, count in enumerate(count_by_class) if count]
    order = tuple(sorted(here, key=lambda label: -count_by_class[label]))
    return given(count_by_class[label] for label in order), order
