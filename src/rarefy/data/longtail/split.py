"""A long-tailed part of an image set, by the content of its images: portable between copies of it.

Libraries hand out the same set in different orders, so an index names nothing; a content id does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.ids import short_hash
from rarefy.data.images.image_set import ImageSet
from rarefy.data.images.listing import counted, listed
from rarefy.data.longtail.counts import balanced, given, whole

EXAMPLES = 3
"""So many are named where some are missing."""


@dataclass(frozen=True, repr=False)
class LongTailSplit:
    """Which images, by content id: all of the head class first, all of the last tail class last."""

    ids: tuple[str, ...]
    counts: tuple[int, ...]
    """By rank: how many images of the head, of the next, ..."""
    order: tuple[int, ...]
    """By rank: which class."""
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """For people, and for files: the seed, the classes' names by rank, where it came from."""

    def __post_init__(self) -> None:
        given(self.counts)
        if len(self.order) != len(self.counts) or len(set(self.order)) != len(self.order):
            allowed = f"must be {len(self.counts)} different classes, one a count"
            raise bad_value("order", self.order, allowed)
        if any(label < 0 for label in self.order):
            raise bad_value("order", self.order, "classes are whole numbers from 0 on")
        if len(self.ids) != sum(self.counts):
            allowed = f"must be {sum(self.counts)}, the sum of the counts"
            raise bad_value("ids", f"{len(self.ids)} ids", allowed)
        twice = len(self.ids) - len(set(self.ids))
        if twice:
            raise bad_value("ids", f"{len(self.ids)} ids", f"must differ, {twice} stand twice")

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        ends = f"{self.counts[0]} to {self.counts[-1]} a class"
        return f"LongTailSplit({len(self)} images, {len(self.counts)} classes, {ends})"

    @cached_property
    def labels(self) -> tuple[int, ...]:
        """The class of each id."""
        blocks = zip(self.order, self.counts, strict=True)
        return tuple(label for label, count in blocks for _ in range(count))

    @cached_property
    def fingerprint(self) -> str:
        """Stands for order and images; splits with the same one are the same."""
        lines, start = [], 0
        for label, count in zip(self.order, self.counts, strict=True):
            lines += [f"class {label}", *sorted(self.ids[start : start + count])]
            start += count
        return short_hash(lines)

    def take(self, images: ImageSet) -> ImageSet:
        """These images, head first, of a set that has them all, in whatever order."""
        places = {identity: place for place, identity in enumerate(images.ids)}
        missing = [identity for identity in self.ids if identity not in places]
        if missing:
            raise UsageError(
                f"images of the split that are not in this set of {len(images)}: {len(missing)} of "
                f"{len(self)}: {listed(missing, EXAMPLES)} (named by their pixels: it is another "
                "set, or the same one at another size)"
            )
        chosen = [places[identity] for identity in self.ids]
        found = images.labels[chosen].tolist()
        wrong = [
            f"{identity} is of class {here}, of {label} in the split"
            for identity, here, label in zip(self.ids, found, self.labels, strict=True)
            if here != label
        ]
        if wrong:
            raise UsageError(
                f"images of the split with another label in this set: {len(wrong)} of "
                f"{len(self)}: {listed(wrong, EXAMPLES)}"
            )
        return images.take(chosen)


def make_split(
    images: ImageSet, counts: Sequence[int], order: Sequence[int], seed: int
) -> LongTailSplit:
    """counts[r] images of class order[r], for every rank r.

    Which images of a class is decided by a hash of seed and content: the first ones in the order of
    the hash. So neither the order of the set matters nor that of the classes, and of two splits
    with one seed the smaller is part of the larger, class by class.
    """
    sizes, ranks = given(counts), tuple(order)
    whole("seed", seed, 0)
    known = range(len(images.classes))
    if len(ranks) != len(sizes) or len(set(ranks)) != len(ranks) or not set(ranks) <= set(known):
        allowed = f"must be {len(sizes)} different classes from 0 to {len(images.classes) - 1}"
        raise bad_value("order", ranks, allowed)
    members: dict[int, list[str]] = {label: [] for label in ranks}
    for identity, label in zip(images.ids, images.labels.tolist(), strict=True):
        if label in members:
            members[label].append(identity)
    few = [
        f"class {images.classes[label]!r} has {counted(len(members[label]), 'image')}, "
        f"wanted are {wanted}"
        for label, wanted in zip(ranks, sizes, strict=True)
        if len(members[label]) < wanted
    ]
    if few:
        raise UsageError(f"too few images: {listed(few)}")
    purpose = f"long tail {int(seed)}"
    ids: list[str] = []
    for label, wanted in zip(ranks, sizes, strict=True):
        hashed = sorted((short_hash((purpose, identity)), identity) for identity in members[label])
        ids += [identity for _, identity in hashed[:wanted]]
    names = [images.classes[label] for label in ranks]
    return LongTailSplit(
        tuple(ids), sizes, tuple(map(int, ranks)), {"seed": int(seed), "classes": names}
    )


def control(split: LongTailSplit, images: ImageSet) -> LongTailSplit:
    """The balanced set of equal size (rounded down), of the same classes, ranks and seed.

    What a long tail does is seen against it: a class has a rank here too, but as many images as
    any other. A split that was not drawn (a list) is given seed 0.
    """
    seed = split.about.get("seed", 0)
    even = make_split(images, balanced(len(split), len(split.counts)), split.order, seed)
    about = {**even.about, "control_of": split.fingerprint}
    return LongTailSplit(even.ids, even.counts, even.order, about)
