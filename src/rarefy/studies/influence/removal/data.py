"""A data set in two parts: what is left out of one, what is asked of the other.

Scores come from the training part alone; the tails of the test part from the training part's
statistics.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.data.images.catalog import SETS
from rarefy.data.images.ids import choose_by_content, digest_of
from rarefy.measure.influence.held_out import score_held_out
from rarefy.tools.image_data import split_options
from rarefy.tools.influence.neighbours import neighbour_labels
from rarefy.tools.influence.scoring import NEIGHBOURS, influence_of
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples

TEST_SHARE = 0.2
"""Of data that has no test part of its own."""


@dataclass(frozen=True)
class Source:
    """What to read: a text of ``open_samples``, and what a table or an array file needs besides."""

    text: str
    label: str = ""
    labels: str = ""
    columns: str = ""

    def options(self) -> dict[str, Any]:
        chosen = {
            "label": self.label or None,
            "labels": self.labels or None,
            "columns": self.columns.split(",") if self.columns else None,
            "standardize": False,  # committed results are of features as they are
        }
        return {name: value for name, value in chosen.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Parts:
    """A training and a test part. Numbers are computed when first asked for, and kept: the cells of
    a study share them."""

    train: Samples
    test: Samples
    is_images: bool
    _kept: dict[tuple[str, str], Any] = field(default_factory=dict)

    def _once(self, name: str, device: torch.device, compute: Callable[[], Any]) -> Any:
        place = name, str(device)
        if place not in self._kept:
            self._kept[place] = compute()
        return self._kept[place]

    def score(self, name: str, device: torch.device) -> NDArray[np.float64]:
        """One number per training sample: a column of the score table."""
        if name == "disagreement":
            near = self._once(
                name, device, lambda: neighbour_labels(self.train, NEIGHBOURS, device)
            )
            return np.asarray(near.disagreement)
        found = self._once("scores", device, lambda: influence_of(self.train, device))
        return np.asarray(getattr(found, name))

    def held_out(self, device: torch.device) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The influence that each test sample would have in the training part, and its own term,
        which grows with the distance from the class mean alone."""
        train, test = self.train, self.test
        found = self._once(
            "held out",
            device,
            lambda: score_held_out(
                train.features,
                train.labels,
                test.features,
                test.labels,
                len(train.classes),
                scale=train.scale,
                device=device,
                memory=2**62,  # one scatter matrix at a time, whatever its size
            ),
        )
        return found.influence, found.own


def parts_of(source: Source) -> Parts:
    """Training and test part; what has no test part gets one by content."""
    return _parts(source, os.environ.get("RAREFY_DATA"), _seen(source))


def _seen(source: Source) -> tuple[tuple[int, int], ...]:
    """Changes when a file does, which then has to be read again."""
    found = [Path(name).stat() for name in (source.text, source.labels) if Path(name).is_file()]
    return tuple((one.st_mtime_ns, one.st_size) for one in found)


@lru_cache(maxsize=2)
def _parts(source: Source, folder: str | None, seen: tuple[tuple[int, int], ...]) -> Parts:
    name, _ = split_options(source.text)
    is_images = name in SETS or Path(name).expanduser().is_dir()
    if is_images:
        train, test = (
            open_samples(source.text, split=split, **source.options())
            for split in ("train", "test")
        )
    else:
        whole = open_samples(source.text, **source.options())
        whole.check_finite()  # here rows still have the numbers they have in the file
        contents = [digest_of(one) for one in whole.ids]
        asked = np.array(choose_by_content(contents, whole.labels.tolist(), TEST_SHARE))
        if not asked.any() or asked.all():
            raise UsageError(f"{source.text}: too few different samples a class for a test part")
        train, test = whole.take(~asked), whole.take(asked)
    return Parts(train, test, is_images)
