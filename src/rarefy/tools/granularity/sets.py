"""The images of a transfer (pre-trained on, tuned on, held out, tested) and their labels."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.hierarchy.levels import CLASS, agreement, label_levels, level_of, smallest
from rarefy.data.hierarchy.made import WITHIN, check_counts, kind_of, make_level, needs_features
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images import ImageData, ImageSet
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.tools.image_data import on_device, some_of
from rarefy.train.image_batches import Scaling

TARGET, ONCE = "target", "once"
"""Two baselines: re-training on the target labels, and one pass on them of the same length."""
GIVEN = "given"


@dataclass(frozen=True)
class Source:
    """Which images and labels: a set with its hierarchy, the level that is asked for in the end,
    the set that it is asked on (empty: the same), how many are used and held out."""

    data: str
    hierarchy: str = ""
    target: str = CLASS
    target_data: str = ""
    samples: int = 0
    test_samples: int = 0
    held_out: float = 0.1


@dataclass(frozen=True, eq=False)
class TransferSets:
    """On their device. ``source`` and ``tuned`` are the same images unless the target is another
    set (of which as many are used then); ``held_out`` images are in neither."""

    source: ImageSet
    tuned: ImageSet
    held_out: ImageSet
    test: ImageSet
    target: tuple[str, ...]
    """Names of the target classes."""
    target_level: str
    source_scaling: Scaling
    scaling: Scaling
    shape: tuple[int, int, int]

    @property
    def same(self) -> bool:
        return self.source is self.tuned

    def labels(self, images: ImageSet) -> Tensor:
        """Target labels of some of them."""
        return level_of(images, self.target_level)[0]

    def subclasses(self) -> str | None:
        """The coarsest given level that is finer than the target and lies within it."""
        target = self.labels(self.tuned)
        for name, (labels, names) in label_levels(self.tuned).items():
            if len(names) > len(self.target) and agreement(labels, target) == 1:
                return name
        return None

    def finest(self) -> str:
        """The given level with the most classes."""
        return list(label_levels(self.source))[-1]


def load_sets(source: Source, device: torch.device) -> TransferSets:
    """Cells of an experiment share them."""
    return _loaded(source, os.environ.get("RAREFY_DATA"), device, _stamp(source.hierarchy))


def _stamp(path: str) -> tuple[tuple[int, int], ...]:
    """Changes when a file of annotations does."""
    if not path or not Path(path).exists():
        return ()
    files = sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]
    return tuple((one.stat().st_mtime_ns, one.stat().st_size) for one in files)


def data_of(source: Source, device: torch.device) -> ImageData:
    return with_hierarchy(on_device(source.data, device), source.hierarchy)


@lru_cache(maxsize=2)
def _loaded(
    source: Source, folder: str | None, device: torch.device, stamp: object
) -> TransferSets:
    data = data_of(source, device)
    other = source.target_data
    asked = with_hierarchy(on_device(other, device)) if other else data
    if asked.shape != data.shape:
        shapes = " and ".join("x".join(map(str, one.shape)) for one in (data, asked))
        raise bad_value("target_data", other, f"both sets need images of one shape, not {shapes}")
    if data.shape[1] != data.shape[2]:
        raise bad_value("data", source.data, f"images must be square, not {data.shape}")
    for name in label_levels(asked.train):
        if name in (TARGET, ONCE) or kind_of(name) != GIVEN:
            raise UsageError(f"level {name!r} has a name that means something else here: rename it")
    train = some_of(asked.train, source.samples)
    labels, names = level_of(train, source.target)
    _check_target(labels, names)
    # copies of an image stay on one side
    contents = [digest_of(one) for one in train.ids]
    out = torch.tensor(choose_by_content(contents, labels.tolist(), source.held_out, "held out"))
    tuned, held_out = train.take(~out), train.take(out)
    test = some_of(asked.test, source.test_samples)
    return TransferSets(
        source=_others(data.train, (held_out, test), len(tuned)) if other else tuned,
        tuned=tuned,
        held_out=held_out,
        test=test,
        target=names,
        target_level=source.target,
        source_scaling=Scaling(data.mean, data.std),
        scaling=Scaling(asked.mean, asked.std),
        shape=data.shape,
    )


def _others(train: ImageSet, judging: tuple[ImageSet, ...], count: int) -> ImageSet:
    """As many images of another set as are tuned on, none that judges."""
    known = {digest_of(one) for images in judging for one in images.ids}
    free = torch.tensor([digest_of(one) not in known for one in train.ids])
    return some_of(train.take(free), count)


def _check_target(labels: Tensor, names: tuple[str, ...]) -> None:
    counts = torch.bincount(labels, minlength=len(names)).tolist()
    present = [name for name, count in zip(names, counts, strict=True) if count]
    if len(present) < 2:
        raise UsageError(f"the target has one class ({present[0]!r}): there is nothing to tell")
    for name, count in zip(names, counts, strict=True):
        if count < 2:
            raise UsageError(
                f"target class {name!r} has {count} training images: two are needed, "
                "one of them is held out"
            )


# ------------------------------------------------------------------------------ pre-training labels


@dataclass(frozen=True, eq=False)
class PretrainingLabels:
    """What is pre-trained on: labels 0 .. classes - 1 without gaps."""

    labels: Tensor
    classes: int
    smallest: int
    agreement: float
    """With the target; NaN where the target is of another set."""


def check_labels(labels: str, sets: TransferSets) -> None:
    """Raise ``UsageError`` for labels that this set cannot have."""
    if labels in (TARGET, ONCE):
        return
    if kind_of(labels) == GIVEN:
        level_of(sets.source, labels)
    elif not sets.same and kind_of(labels) in WITHIN:
        raise bad_value("labels", labels, "is made inside target classes, which this set lacks")
    else:
        check_counts(labels, _within(sets), sets.target)


def _within(sets: TransferSets) -> NDArray[np.int64]:
    """What clusters are made inside of."""
    count = len(sets.source)
    return sets.labels(sets.source).cpu().numpy() if sets.same else np.zeros(count, dtype=np.int64)


def wants_features(labels: str) -> bool:
    return labels not in (TARGET, ONCE) and kind_of(labels) != GIVEN and needs_features(labels)


def pretraining_labels(
    labels: str, sets: TransferSets, features: np.ndarray | None, seed: int
) -> PretrainingLabels:
    """Of ``sets.source`` (of ``sets.tuned`` for re-training)."""
    if labels in (TARGET, ONCE):
        return _described(sets.labels(sets.tuned), sets.labels(sets.tuned))  # none is empty
    target = sets.labels(sets.source) if sets.same else None
    if kind_of(labels) == GIVEN:
        return _described(level_of(sets.source, labels)[0], target)
    made, _ = make_level(labels, _within(sets), features, seed)
    return _described(torch.from_numpy(made).to(sets.source.labels.device), target)


def _described(labels: Tensor, target: Tensor | None) -> PretrainingLabels:
    # a class that no image is left of would be an output that nothing trains
    _, dense = labels.unique(return_inverse=True)
    classes = int(dense.max()) + 1
    agreed = float("nan") if target is None else agreement(dense, target)
    return PretrainingLabels(dense, classes, smallest(dense, classes), agreed)
