"""TopK pruning of filters' coordinates while training (002 Sec. 3), many runs at once.

Of every filter only the ``keep`` coordinates of largest magnitude stay. 002 does not say what
becomes of the others, and the readings give different pictures (``revive`` two of them, since what
comes back depends on ReLU'(0): see ``PatchClassifier.open_at_zero``):

    revive   they are set to zero every ``every`` updates and go on being updated: they may return
    fixed    the support chosen after ``first`` updates is final (what the proof of 002 Theorem 4.5
             argues about); other coordinates stay zero for good
    random   a fixed support that looks at nothing, the control
    dense    nothing is pruned
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.pruning.masks import (
    apply_mask,
    keep_largest,
    mask_factor,
    project_largest,
    search_levels,
)

READINGS = ("revive", "fixed", "random", "dense")


def check_keep(keep: int, d: int) -> None:
    """Refuse a number of kept coordinates that a filter of ``d`` cannot have."""
    if not 1 <= keep <= d:
        raise bad_value("keep", keep, f"coordinates kept of a filter must be in 1..d={d}")


def check_schedule(first: int, every: int) -> None:
    if first < 1:
        raise bad_value("first", first, "pruning begins after at least 1 update")
    if every < 1:
        raise bad_value("every", every, "must be at least 1 update")


class TopKPruning:
    """Of every filter the largest coordinates are kept while training (the TopK paper, Sec. 3).

    Arguments:
        keep: (run,), coordinates kept.
        reading: what becomes of the others, one word for all runs or one per run: revive (set to
            zero and trained on), fixed (the first support is final), random (a fixed support that
            looks at nothing) or dense (nothing is pruned).
        shape: (classes, filters, d).
        first, every: update after which masks are first chosen, and updates between two choices.
        draws: for random supports.
        compile_kernels: whether the projection is compiled.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> data = rarefy.lab.SignalNoise(2, 50, mu=draws.per_run(1.0), sigma=draws.per_run(0.5))
        >>> learner = rarefy.lab.PatchClassifier.of(data.sample(draws, 20), output_scale=1.0)
        >>> filters = 0.01 * rarefy.lab.initial_filters(draws, classes=2, filters=10, d=50)
        >>> pruning = rarefy.lab.TopKPruning(draws.per_run(5), "revive", (2, 10, 50))
        >>> trained = rarefy.lab.descend(learner, {"filters": filters}, lambda step: None,
        ...                              rarefy.lab.Sgd(lr=0.1), steps=20, pruning=pruning)
        >>> int(trained.parameters["filters"].count_nonzero(dim=3).max())
        5
    """

    def __init__(
        self,
        keep: Tensor,
        reading: str | Sequence[str],
        shape: tuple[int, int, int],
        first: int = 1,
        every: int = 1,
        draws: Draws | None = None,
        compile_kernels: bool = False,
    ) -> None:
        """``shape``: (classes, filters, d); ``draws``, one key per run, for random supports."""
        check_schedule(first, every)
        for value in keep.unique().tolist():
            check_keep(int(value), shape[2])
        readings = np.array([reading] * len(keep) if isinstance(reading, str) else reading)
        for word in dict.fromkeys(readings.tolist()):
            if word not in READINGS:
                raise bad_value("reading", word, f"must be one of {', '.join(READINGS)}")
        if len(readings) != len(keep):
            raise bad_value("reading", reading, f"must be one word, or one for each of {len(keep)}")
        self.first, self.every, self._compile = first, every, compile_kernels
        self._keep = keep.to(torch.int64)
        self._rows = {
            word: torch.as_tensor(np.flatnonzero(readings == word), device=keep.device)
            for word in READINGS
        }
        self._everyone = {word: len(rows) == len(keep) for word, rows in self._rows.items()}
        self._mask: dict[str, Tensor] = {}
        self._factor: dict[str, Tensor] = {}
        self._levels: Tensor | None = None
        self._updates = 0
        self.idle = self._everyone["dense"]
        """Whether no run is pruned."""
        if len(self._rows["random"]):
            if draws is None:
                raise bad_value("draws", None, "random supports need random numbers")
            scores = draws.uniform("random support", shape)
            if len(scores) == 1 < len(keep):  # nested supports: runs differ in keep alone
                scores = scores.expand(len(keep), -1, -1, -1)
            rows = self._rows["random"]
            self._mask["random"] = keep_largest(scores[rows], self._keep[rows][:, None, None])

    def before(self, step: int, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """A step begins with what the last one left."""
        self._updates = step + 1
        return parameters

    def after(self, before: dict[str, Tensor], moved: dict[str, Tensor]) -> dict[str, Tensor]:
        """Prune what the optimiser has moved."""
        filters = moved["filters"]
        for word, rows in self._rows.items():
            if word == "dense" or len(rows) == 0 or self._updates < self.first:
                continue
            part = filters if self._everyone[word] else filters[rows]
            keep = self._keep if self._everyone[word] else self._keep[rows]
            pruned = self._pruned(word, part, keep)
            if pruned is part:
                continue
            filters = pruned if self._everyone[word] else filters.index_copy(0, rows, pruned)
        return {**moved, "filters": filters}

    def _pruned(self, word: str, filters: Tensor, keep: Tensor) -> Tensor:
        if word == "revive":
            due = (self._updates - self.first) % self.every == 0
            if not due:
                return filters
            if self._levels is None:
                self._levels = search_levels(filters)
            return project_largest(filters, keep[:, None, None], self._levels, self._compile)
        if word not in self._mask:
            self._mask[word] = keep_largest(filters.abs(), keep[:, None, None])
        if word not in self._factor:
            self._factor[word] = mask_factor(self._mask[word], filters)
        return apply_mask(filters, self._factor[word])

    def support(self) -> Tensor | None:
        """The final support of fixed runs once it is chosen: (run, classes, filters, d)."""
        return self._mask.get("fixed")
