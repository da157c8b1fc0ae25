"""Labelled images, whole in memory as uint8: one split, and a data set of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.images.ids import content_ids, short_hash

Level = tuple[Tensor, tuple[str, ...]]
"""Labels, int64 (n,), and the names they count."""
Indices = Tensor | Sequence[int] | Sequence[bool] | NDArray[np.int64] | NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """One split. ``levels`` has other labels of the same images, coarser or finer, by name."""

    images: Tensor
    """uint8 (n, channels, height, width)"""
    labels: Tensor
    """int64 (n,)"""
    classes: tuple[str, ...]
    files: tuple[str, ...] | None = None
    """File names, where the layout has them."""
    levels: Mapping[str, Level] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            found = f"{self.images.dtype} {tuple(self.images.shape)}"
            raise bad_value("images", found, "must be uint8 (n, channels, height, width)")
        if self.files is not None and len(self.files) != len(self):
            raise bad_value(
                "files", f"{len(self.files)} names", f"must be {len(self)}, one per sample"
            )
        _check_labels("labels", self.labels, self.classes, len(self))
        for name, (labels, names) in self.levels.items():
            _check_labels(f"levels[{name!r}]", labels, names, len(self))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Content hashes; see ``rarefy.data.images.ids``."""
        return content_ids(self.images, self.labels)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.images.shape[1:]))
        return f"ImageSet({len(self)} images of {shape}, {len(self.classes)} classes)"

    def take(self, indices: Indices) -> ImageSet:
        """These samples (positions, or a mask), in this order. They keep the ids they have here."""
        chosen = torch.as_tensor(indices)
        if chosen.dtype == torch.bool:
            if chosen.shape != (len(self),):
                raise bad_value("indices", tuple(chosen.shape), f"a mask must be ({len(self)},)")
            chosen = chosen.nonzero().flatten()
        if chosen.numel() == 0:
            chosen = chosen.long()
        if chosen.ndim != 1 or chosen.is_floating_point():
            raise bad_value("indices", tuple(chosen.shape), "must be whole numbers, (k,)")
        if len(chosen) and not (0 <= int(chosen.min()) and int(chosen.max()) < len(self)):
            extremes = [int(chosen.min()), int(chosen.max())]
            raise bad_value("indices", extremes, f"must be from 0 to {len(self) - 1}")
        places = chosen.tolist()
        chosen = chosen.to(self.images.device)
        part = ImageSet(
            self.images[chosen],
            self.labels[chosen],
            self.classes,
            None if self.files is None else tuple(self.files[place] for place in places),
            {name: (labels[chosen], names) for name, (labels, names) in self.levels.items()},
        )
        # where cached_property keeps its value; hashed anew, a copy would be its own first
        part.__dict__["ids"] = tuple(self.ids[place] for place in places)
        return part

    def to(self, device: torch.device | str) -> ImageSet:
        """The same set with images, labels and levels on a device."""
        moved = ImageSet(
            self.images.to(device),
            self.labels.to(device),
            self.classes,
            self.files,
            {name: (labels.to(device), names) for name, (labels, names) in self.levels.items()},
        )
        if "ids" in self.__dict__:
            moved.__dict__["ids"] = self.ids
        return moved


def _check_labels(what: str, labels: Tensor, names: tuple[str, ...], count: int) -> None:
    if labels.dtype != torch.int64 or labels.shape != (count,):
        found = f"{labels.dtype} {tuple(labels.shape)}"
        raise bad_value(what, found, f"must be int64 ({count},), one per sample")
    if count and not (0 <= int(labels.min()) and int(labels.max()) < len(names)):
        extremes = [int(labels.min()), int(labels.max())]
        raise bad_value(what, extremes, f"must be from 0 to {len(names) - 1}")


@dataclass(frozen=True, eq=False, repr=False)
class ImageData:
    """A data set: what is trained on and what is tested on, of one shape and the same classes."""

    name: str
    train: ImageSet
    test: ImageSet
    source: str
    """Where it was read from, for people."""
    notes: tuple[str, ...] = ()
    """What a reader of this data should know: files that were ignored, how it was split."""
    left_out: tuple[str, ...] = ()
    """Files that could not be read, each with the reason (only where that was asked for)."""

    def __post_init__(self) -> None:
        for split, images in (("train", self.train), ("test", self.test)):
            if not len(images):
                raise bad_value(split, "0 images", f"{self.name} needs at least one")
        if self.train.images.shape[1:] != self.test.images.shape[1:]:
            shapes = tuple(self.train.images.shape[1:]), tuple(self.test.images.shape[1:])
            raise bad_value("test", shapes[1], f"images must have the shape of train, {shapes[0]}")
        if self.train.classes != self.test.classes:
            raise bad_value("test", self.test.classes, f"must have train's: {self.train.classes}")

    def __repr__(self) -> str:
        return f"ImageData({self.name!r}, train={self.train!r}, test={self.test!r})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """(channels, height, width)"""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def classes(self) -> tuple[str, ...]:
        return self.train.classes

    @cached_property
    def mean(self) -> tuple[float, ...]:
        """Of the train pixels scaled to [0, 1], one per channel."""
        return self._moments[0]

    @cached_property
    def std(self) -> tuple[float, ...]:
        """Of the train pixels scaled to [0, 1], one per channel; 0 for one that never changes."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Exact, by counting how often each of the 256 values occurs: the same on any device."""
        values = np.arange(256, dtype=np.float64) / 255
        means, stds = [], []
        for channel in range(self.shape[0]):
            pixels = self.train.images[:, channel].flatten()
            shares = torch.bincount(pixels, minlength=256).cpu().numpy() / pixels.numel()
            means.append(float(shares @ values))
            stds.append(float(np.sqrt(shares @ (values - means[-1]) ** 2)))
        return tuple(means), tuple(stds)

    @cached_property
    def fingerprint(self) -> str:
        """Stands for images, labels and split; the same set in another order has the same one."""
        lines = []
        for split in (self.train, self.test):
            names = [split.classes[label] for label in split.labels.tolist()]
            lines += sorted(f"{one} {name}" for one, name in zip(split.ids, names, strict=True))
            lines.append("")
        return short_hash([repr(self.classes), *lines])

    def to(self, device: torch.device | str) -> ImageData:
        """The same data with both splits on a device."""
        moved = ImageData(
            self.name,
            self.train.to(device),
            self.test.to(device),
            self.source,
            self.notes,
            self.left_out,
        )
        moved.__dict__.update(
            {key: value for key, value in self.__dict__.items() if key not in moved.__dict__}
        )
        return moved
