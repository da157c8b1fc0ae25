"""Which images a pre-training sees, and which ones say how good its features are."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.data.images import ImageSet
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.data.images.unlabelled import UNLABELLED
from rarefy.data.longtail import counts as by_rank
from rarefy.data.longtail.order import class_order, rank_classes
from rarefy.data.longtail.split import LongTailSplit, control, make_split
from rarefy.data.longtail.split_file import load_split, read_list, split_from_list
from rarefy.tools.image_data import on_device

SHAPES: dict[str, Callable[[int, float, int], tuple[int, ...]]] = {
    "exponential": by_rank.exponential,
    "step": by_rank.step,
    "pareto": by_rank.pareto,
}
AS_IS = "as-is"
VALIDATION_SHARE = 0.1
"""Of every class of the training images: regularisation is chosen on them, never on test images."""


def is_split_file(text: str) -> bool:
    """A split that somebody saved (.json), or a list in the format of ImageNet-LT (.txt)."""
    return text.endswith((".json", ".txt")) or os.sep in text


def read_split(text: str, images: ImageSet) -> LongTailSplit:
    """Of such a file; a list names images by their files."""
    path = Path(text)
    return split_from_list(read_list(path), images) if path.suffix == ".txt" else load_split(path)


@dataclass(frozen=True)
class Tail:
    """A long-tailed part of a set.

    shape: exponential, step, pareto, as-is (all images, be they balanced or not), or a split file
        (.json, or a .txt list).
    head: how many images the largest class has: ``full`` all that the smallest class of the set
        has, ``sdclr`` without the tenth for validation, or a number.
    balanced: its control instead, as many images, the same number of each class.
    """

    shape: str = "exponential"
    rho: float = 100.0
    head: str = "full"
    balanced: bool = False

    def __post_init__(self) -> None:
        if self.shape not in (*SHAPES, AS_IS) and not self.from_file:
            raise unknown("split", self.shape, (*SHAPES, AS_IS))
        if not 1 <= self.rho < float("inf"):
            raise bad_value("rho", self.rho, "must be a number, at least 1 (head over tail)")
        if self.head not in by_rank.HEADS and self.head_count < 1:
            raise bad_value("head", self.head, "must be full, sdclr or a number of images")

    @property
    def from_file(self) -> bool:
        return is_split_file(self.shape)

    @property
    def head_count(self) -> int:
        """Where ``head`` is a number of images, that; else 0."""
        return int(self.head) if self.head.isascii() and self.head.isdigit() else 0


@dataclass(frozen=True)
class Parts:
    """What a pre-training and its evaluation use."""

    seen: ImageSet
    """Images of the pre-training; labels are for evaluation alone."""
    labelled: ImageSet
    """All training images, for probes with labels of every class."""
    held_out: Tensor
    """(labelled,), true for those on which a probe's regularisation is chosen."""
    test: ImageSet
    order: tuple[int, ...]
    """The class at each rank, the head first."""
    counts: tuple[int, ...]
    """Images of the class at each rank."""
    split: LongTailSplit | None
    mean: tuple[float, ...]
    std: tuple[float, ...]

    @property
    def classes(self) -> int:
        return len(self.labelled.classes)

    @property
    def has_labels(self) -> bool:
        return self.labelled.classes != UNLABELLED


def parts_of(data: str, tail: Tail, seed: int, device: torch.device) -> Parts:
    """The parts of a set for one order of its classes (``rarefy.data.longtail.order``: mirrored
    pairs of seeds; -1 is the order of the labels)."""
    return _parts(data, os.environ.get("RAREFY_DATA"), tail, seed, device)


@lru_cache(maxsize=2)
def _parts(data: str, folder: str | None, tail: Tail, seed: int, device: torch.device) -> Parts:
    whole = on_device(data, device)
    pool = whole.train
    contents = [digest_of(one) for one in pool.ids]
    labels = pool.labels.tolist()
    held_out = torch.tensor(choose_by_content(contents, labels, VALIDATION_SHARE, "validation"))
    split = _split(pool, held_out, tail, seed)
    if split is None:
        seen = pool
        found, order = rank_classes(
            torch.bincount(pool.labels, minlength=len(pool.classes)).tolist()
        )
    else:
        seen, order, found = split.take(pool), split.order, split.counts
    return Parts(
        seen,
        pool,
        held_out.to(device),
        whole.test,
        tuple(order),
        tuple(found),
        split,
        whole.mean,
        whole.std,
    )


def balanced_places(labels: Tensor, classes: int, most: int) -> Tensor:
    """Places of the same number of images of each class that has some, at most ``most``, class by
    class: (image,)."""
    # (a class may have training images alone)
    smallest = min(count for count in torch.bincount(labels).tolist() if count)
    wanted = min(most, smallest)
    return torch.cat([(labels == label).nonzero().flatten()[:wanted] for label in range(classes)])


FAR = 1.5
"""Times that a set may differ from what was asked for without a word."""


def tail_notes(tail: Tail, parts: Parts) -> list[str]:
    """What somebody should know who made a set long-tailed."""
    if tail.shape not in SHAPES or not parts.has_labels:
        return []
    notes = []
    whole = torch.bincount(parts.labelled.labels, minlength=parts.classes)
    if not tail.head_count and int(whole.max()) > FAR * parts.counts[0]:
        notes.append(
            f"the largest class gets {parts.counts[0]} images, as the smallest class of the set "
            f"has no more (the largest: {int(whole.max())}); without --rho all images are used"
        )
    ratio = parts.counts[0] / max(parts.counts[-1], 1)
    if tail.rho > FAR * ratio:
        notes.append(f"rho {tail.rho:g} is out of reach with so few images: it is {ratio:.0f}")
    return notes


def _split(pool: ImageSet, held_out: Tensor, tail: Tail, seed: int) -> LongTailSplit | None:
    if tail.shape == AS_IS and not tail.balanced:
        return None
    # the one definition leaves validation images to nobody else
    source = pool.take(~held_out) if tail.head == "sdclr" else pool
    here = torch.bincount(source.labels, minlength=len(pool.classes)).tolist()
    if tail.shape == AS_IS:
        found = make_split(source, *rank_classes(here), max(seed, 0))
    elif tail.from_file:
        found = read_split(tail.shape, pool)
    else:
        n_max = tail.head_count or min(here)
        if n_max < 1:
            empty = pool.classes[here.index(min(here))]
            raise UsageError(f"class {empty!r} has no images to make a long tail of")
        sizes = SHAPES[tail.shape](n_max, tail.rho, len(pool.classes))
        order = class_order(len(pool.classes), seed)
        found = make_split(source, sizes, order, max(seed, 0))
    if not tail.balanced:
        return found
    try:
        return control(found, source)
    except UsageError as error:
        raise UsageError(f"of the balanced control {error}; --no-control does without it") from None
