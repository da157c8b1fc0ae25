"""Parts of real data sets that a seed draws."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import Draws
from rarefy.data.images.catalog import SETS
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples

DIGITS = tuple("0123456789")
CLASSES = {
    "digits": DIGITS,
    "mnist": DIGITS,
    "cifar10": (
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
}
"""Names for pictures, which are drawn where the data need not be."""


def check_sets(names: Sequence[str]) -> None:
    for name in names:
        if name not in SETS:
            raise unknown("data set", name, SETS)


def class_names(name: str) -> tuple[str, ...]:
    return CLASSES.get(name, tuple(str(place) for place in range(SETS[name].classes)))


def most_classes(names: Sequence[str]) -> int:
    return max(SETS[name].classes for name in names)


@lru_cache(maxsize=1)
def _loaded(name: str, folder: str | None) -> Samples:
    return open_samples(name, split="train")


def training_part(name: str) -> Samples:
    """The training samples of a set; the cells of an experiment share them."""
    return _loaded(name, os.environ.get("RAREFY_DATA"))


def identities(names: Sequence[str]) -> dict[str, str]:
    """What a store remembers of the sets that it was made from."""
    return {name: training_part(name).fingerprint for name in names}


# --------------------------------------------------------------------------------- drawing samples


def drawn_order(draws: Draws, stream: str, count: int) -> NDArray[np.int64]:
    """All places in random order, by the draws of one run."""
    chance = draws.uniform(stream, (count,))[0].cpu().numpy()
    return np.argsort(chance, kind="stable").astype(np.int64)


def stratified(
    draws: Draws, stream: str, labels: NDArray[np.int64], share: float
) -> NDArray[np.bool_]:
    """Which samples are drawn: the same share of every class, rounded."""
    if not 0 < share <= 1:
        raise bad_value("share", share, "must be above 0 and at most 1")
    order = drawn_order(draws, stream, len(labels))
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        chosen[mine[: round(share * len(mine))]] = True
    return chosen


def some_of(samples: Samples, draws: Draws, count: int, most: float) -> Samples:
    """About ``count`` samples, the same share of every class; at most the share ``most``."""
    share = min(count / len(samples), most)
    if share >= 1:
        return samples
    return samples.take(stratified(draws, "subsample", samples.labels, share))
