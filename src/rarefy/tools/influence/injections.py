"""Put samples that a search should find into a labelled set: wrong labels, rare modes, copies in
conflict. Pure: nothing given is changed, and the same draws give the same samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import Draws

NOISE = 0.1
"""Noise of near copies, in stds of all the features together."""
PIECE = 1 << 22
"""Features whose noise is drawn at a time."""


@dataclass(frozen=True, eq=False)
class InjectedSamples:
    """Samples with something in them to be found."""

    features: NDArray[Any]
    labels: NDArray[np.int64]
    classes: int
    positive: NDArray[np.bool_]
    """Which samples were put in."""
    asked: NDArray[np.bool_]
    """Which count when a search is judged: the original of a copy in conflict is neither right
    nor wrong to find."""
    rows: NDArray[np.int64]
    """Where each sample comes from among the given ones."""


@dataclass(frozen=True)
class Injection:
    """What is put in, and which share of the samples it is (rare modes: of each class)."""

    kind: str
    share: float

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of injection", self.kind, KINDS)
        if not 0 < self.share <= 0.5:
            raise bad_value("share", self.share, "must be above 0 and at most 0.5")

    @classmethod
    def parse(cls, text: str) -> Injection:
        """``flips-0.1``: a kind and a share."""
        kind, _, share = text.rpartition("-")
        try:
            number = float(share)
        except ValueError:
            raise bad_value("injection", text, "must be a kind and a share, as flips-0.1") from None
        return cls(kind, number)

    def into(
        self, features: NDArray[Any], labels: NDArray[np.int64], classes: int, draws: Draws
    ) -> InjectedSamples:
        """features: (n, d); labels: (n,), 0 .. classes - 1; draws: of one run."""
        if labels.shape != (len(features),):
            raise bad_value("labels", labels.shape, f"must be one for each of {len(features)} rows")
        if classes < 2:
            raise bad_value("classes", classes, "must be at least 2")
        if len(draws) != 1:
            raise bad_value("draws", len(draws), "must be those of one run")
        return KINDS[self.kind](features, labels, classes, self.share, draws)


# ------------------------------------------------------------------------------------- wrong labels


def flips(
    features: NDArray[Any], labels: NDArray[np.int64], classes: int, share: float, draws: Draws
) -> InjectedSamples:
    """A share of the samples, whatever their class, gets another label; all others alike."""
    chosen = _some(draws, "flips", np.arange(len(labels)), round(share * len(labels)))
    changed = labels.copy()
    changed[chosen] = _others(draws, "flipped to", labels[chosen], classes)
    return _relabelled(features, changed, classes, chosen)


def paired_flips(
    features: NDArray[Any], labels: NDArray[np.int64], classes: int, share: float, draws: Draws
) -> InjectedSamples:
    """Classes in drawn pairs: of the first, twice the share of the samples gets the label of the
    second; no other label is wrong. As people mix up two classes, in one direction."""
    changed = labels.copy()
    chosen = []
    for first, second in _pairs(draws, classes):
        mine = np.flatnonzero(labels == first)
        chosen.append(_some(draws, f"flips of {first}", mine, round(2 * share * len(mine))))
        changed[chosen[-1]] = second
    return _relabelled(features, changed, classes, np.concatenate(chosen))


def _relabelled(
    features: NDArray[Any], labels: NDArray[np.int64], classes: int, chosen: NDArray[np.int64]
) -> InjectedSamples:
    count = len(labels)
    positive = np.zeros(count, dtype=bool)
    positive[chosen] = True
    return InjectedSamples(
        features, labels, classes, positive, np.ones(count, dtype=bool), np.arange(count)
    )


# --------------------------------------------------------------------------------------- rare modes


def rare_modes(
    features: NDArray[Any], labels: NDArray[np.int64], classes: int, share: float, draws: Draws
) -> InjectedSamples:
    """Classes merged in drawn pairs: all of the first, and of the second so few that they are the
    share of the new class. Their label is right; they are its rare mode."""
    if classes < 4:
        raise bad_value("classes", classes, "must be at least 4 for rare modes, merged in pairs")
    rows, merged, positive = [], [], []
    for place, (first, second) in enumerate(_pairs(draws, classes)):
        common, other = (np.flatnonzero(labels == one) for one in (first, second))
        count = min(max(1, round(share / (1 - share) * len(common))), len(other))
        rare = _some(draws, f"mode of {first}", other, count)
        rows += [common, rare]
        merged.append(np.full(len(common) + len(rare), place))
        positive += [np.zeros(len(common), dtype=bool), np.ones(len(rare), dtype=bool)]
    where = np.concatenate(rows)
    order = np.argsort(where)  # as they came: no score may know the order they were put in
    where = where[order]
    return InjectedSamples(
        features[where],
        np.concatenate(merged)[order],
        classes // 2,
        np.concatenate(positive)[order],
        np.ones(len(where), dtype=bool),
        where,
    )


# ------------------------------------------------------------------------------ copies in conflict


def copies(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    classes: int,
    share: float,
    draws: Draws,
    noise: float = 0.0,
) -> InjectedSamples:
    """A share of the samples is there twice, the second time with another label. To be found are
    the copies, which have the wrong one."""
    count = len(labels)
    chosen = _some(draws, "copies", np.arange(count), round(share * count))
    added = features[chosen]
    if noise > 0:
        added = _noisy(added, noise * float(features.std(dtype=np.float64)), draws)
    wrong = _others(draws, "copied as", labels[chosen], classes)
    positive = np.arange(count + len(chosen)) >= count
    asked = np.ones(count + len(chosen), dtype=bool)
    asked[chosen] = False
    return InjectedSamples(
        np.concatenate([features, added]),
        np.concatenate([labels, wrong]),
        classes,
        positive,
        asked,
        np.concatenate([np.arange(count), chosen]),
    )


def _noisy(rows: NDArray[Any], std: float, draws: Draws) -> NDArray[Any]:
    """Whole numbers stay in their range, as pixels do."""
    found = np.empty_like(rows)
    step = max(1, PIECE // rows.shape[1])
    for first in range(0, len(rows), step):
        some = rows[first : first + step]
        noise = draws.normal("copies' noise", some.shape, step=first)[0].cpu().numpy()
        values = some.astype(np.float64) + std * noise
        if rows.dtype.kind in "iu":
            ends = np.iinfo(rows.dtype)
            values = np.clip(np.rint(values), ends.min, ends.max)
        found[first : first + step] = values.astype(rows.dtype)
    return found


# ------------------------------------------------------------------------------------------ drawing


def _some(draws: Draws, stream: str, rows: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """``count`` of the rows, at least one if there is any; in rising order."""
    chance = draws.uniform(stream, (len(rows),))[0].cpu().numpy() if len(rows) else np.zeros(0)
    return np.sort(rows[np.argsort(chance, kind="stable")[: max(1, count)]])


def _others(
    draws: Draws, stream: str, labels: NDArray[np.int64], classes: int
) -> NDArray[np.int64]:
    """For each label one of the others, all alike."""
    if not len(labels):
        return labels
    steps = draws.integers(stream, classes - 1, (len(labels),))[0].cpu().numpy()
    return (labels + 1 + steps) % classes


def _pairs(draws: Draws, classes: int) -> list[tuple[int, int]]:
    """Classes two by two in random order; an odd one is left over."""
    order = np.argsort(draws.uniform("pairs", (classes,))[0].cpu().numpy(), kind="stable")
    return [(int(order[at]), int(order[at + 1])) for at in range(0, classes - 1, 2)]


Inject = Callable[[NDArray[Any], NDArray[np.int64], int, float, Draws], InjectedSamples]
KINDS: dict[str, Inject] = {
    "flips": flips,
    "paired-flips": paired_flips,
    "rare-modes": rare_modes,
    "copies": copies,
    "near-copies": partial(copies, noise=NOISE),  # which no hash can find
}
