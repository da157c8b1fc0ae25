"""Long-tailed pre-training with a closer look at the features on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rarefy.core.contracts import Output
from rarefy.tools.longtail.dissection import DIRECTIONS, DRAWN, KNOWN, dissected_features
from rarefy.tools.longtail.experiment import LongTailPretraining, by_look
from rarefy.tools.longtail.pretraining import PretrainResult
from rarefy.tools.longtail.watching import Look

LOOKS = (
    Output("unseen_knn", ("watched_epoch", "rank"), "accuracy of neighbours among unseen images"),
    Output("class_share", ("watched_epoch",), "share of the variance between classes, unseen"),
    Output("retrieval", ("watched_epoch", "known"), "views whose nearest view is of their image"),
    Output("augmentation", ("watched_epoch", "drawn"), "R^2 of what was drawn for a view, unseen"),
    Output("effective_rank", ("watched_epoch",), "exp of the entropy of singular values, unseen"),
    Output("spectrum", ("watched_epoch", "direction"), "share of the variance along a direction"),
    Output("unseen_alignment", ("watched_epoch",), "squared distance of two views of an image"),
    Output("unseen_uniformity", ("watched_epoch",), "log mean exp(-2 |a - b|^2) of two images"),
)
"""Of the backbone's features, brought to length 1; unseen: test images, as many of each class."""


@dataclass(frozen=True, kw_only=True)
class OvertrainingExperiment(LongTailPretraining):
    """As ``LongTailPretraining``; at every look more is seen."""

    look: ClassVar[Look | None] = staticmethod(dissected_features)

    def order_seed(self, seed: int) -> int:
        """No two orders are mirror images, so that each counts for itself."""
        return 2 * seed

    @property
    def setting(self) -> str:
        return f"{super().setting}, head {self.head}, weight decay {self.weight_decay:g}"

    def outputs(self) -> tuple[Output, ...]:
        return (*super().outputs(), *LOOKS)

    def coordinates(self) -> dict[str, np.ndarray]:
        own = {"known": KNOWN, "drawn": DRAWN, "direction": range(1, DIRECTIONS + 1)}
        return {**super().coordinates(), **{name: np.array(of) for name, of in own.items()}}

    def _measured(self, found: PretrainResult) -> dict[str, np.ndarray]:
        there = {name: len(values) for name, values in self.coordinates().items()}
        more = {}
        for output in LOOKS:
            written = found.history.watched.get(output.name, ())
            inner = output.dims[-1] if len(output.dims) > 1 else ""
            # (a split may lack classes)
            each = len(found.parts.order) if inner == "rank" else there.get(inner, 1)
            shape = (there["watched_epoch"], there.get(inner, 1))
            values = by_look(written, each, shape)
            more[output.name] = values if inner else values[:, 0]
        return {**super()._measured(found), **more}
