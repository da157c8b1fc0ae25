"""The arrays that a scoring fills, where it is, and how it goes on after a stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.measure.influence.mahalanobis import ClassMetric, class_metric
from rarefy.measure.influence.plan import CovarianceStep, GramStep, Plan
from rarefy.measure.influence.rows import Rows
from rarefy.measure.influence.state import Arrays, State

_OF_SAMPLES = ("q", "r", "norm", "mahalanobis")
_OF_CLASSES = ("square_norms", "weights")


class Work:
    """One scoring. The two routes take rows from it and put results into it."""

    def __init__(
        self,
        rows: Rows,
        plan: Plan,
        device: torch.device,
        state: State,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.rows, self.plan, self.device = rows, plan, device
        self._state, self._progress = state, progress
        self.of_samples = {name: np.full(len(rows), np.nan) for name in _OF_SAMPLES}
        self.of_classes = {name: np.full(rows.classes, np.nan) for name in _OF_CLASSES}
        self.means = np.full((rows.classes, rows.width), np.nan)
        self.directions: Tensor | None = None
        self.step, self.reading, self.row = 0, 0, 0
        """Where it is: step of the plan, reading of the data in it, row to go on with."""
        self.in_hand: Arrays = {}
        """What the step that was stopped had computed."""
        self._flops = [plan.flops(step, rows.counts, rows.width) for step in plan.steps]
        self._all_flops = sum(self._flops)

    # ------------------------------------------------------------------------------- what routes do

    def segments(
        self, label: int, first: int, last: int
    ) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        """Row numbers and rows (float64, to be overwritten) of a class, of those in [first, last),
        a few at a time, until the next are asked for."""
        indices = self.rows.of_class(label, first, last)
        for start in range(0, len(indices), self.plan.segment):
            part = indices[start : start + self.plan.segment]
            yield part, self.rows.borrow(part, self.device)

    def class_known(
        self, label: int, mean: Tensor, trace: float, norm: float, spread: Tensor
    ) -> ClassMetric | None:
        """A class's trace and squared norm of the scatter matrix, and that matrix in the leading
        directions (its upper triangle; it is overwritten)."""
        if not np.isfinite(norm):
            self.rows.complain_of_nonfinite()
        count = int(self.rows.counts[label])
        metric = class_metric(spread, count, trace, norm, self.rows.width, self.directions)
        self.means[label] = mean.cpu().numpy()
        self.of_classes["square_norms"][label] = norm
        self.of_classes["weights"][label] = np.nan if metric is None else metric.weight
        return metric

    def keep(
        self, indices: NDArray[np.int64], r: Tensor, norm: Tensor, distances: Tensor | None
    ) -> None:
        """Of some rows: |x|^2 from the class mean, the norm, the Mahalanobis distance."""
        self.of_samples["r"][indices] = r.cpu().numpy()
        self.of_samples["norm"][indices] = norm.cpu().numpy()
        if distances is not None:
            self.of_samples["mahalanobis"][indices] = distances.cpu().numpy()

    def keep_q(self, indices: NDArray[np.int64], q: Tensor) -> None:
        self.of_samples["q"][indices] = q.cpu().numpy()

    # ------------------------------------------------------------------------ where it is, and when

    def present(self) -> GramStep | CovarianceStep | None:
        """The step it is at; None at the end."""
        return self.plan.steps[self.step] if self.step < len(self.plan.steps) else None

    def advance(self, share: float) -> None:
        """This share of the present step was just done."""
        self._tell(share * self._flops[self.step])

    def unit_done(self, reading: int, row: int, in_hand: Callable[[], Arrays]) -> None:
        """A good place to stop: the step can go on from here with what ``in_hand`` returns."""
        self.reading, self.row = reading, row
        self._state.unit_done(lambda: self._arrays() | in_hand())

    def step_done(self) -> None:
        self.step += 1
        self.in_hand = {}
        if self.present() is not None:
            self.unit_done(0, 0, dict)
        else:  # nothing to stop any more, but what follows may be stopped: scores stay
            self.reading = self.row = 0
            self._state.keep(self._arrays())

    def resume(self) -> None:
        """Go to where an earlier call stopped, if there was one."""
        stored = self._state.load()
        if stored is None:
            return
        try:
            self.step, self.reading, self.row = map(int, stored.pop("position"))
            for name, mine in self._arrays().items():
                if name != "position":
                    mine[...] = stored.pop(name)
            if not (0 <= self.step <= len(self._flops) and 0 <= self.row <= len(self.rows)):
                raise ValueError(f"position {self.step}, {self.row}")
        except (KeyError, ValueError, TypeError) as error:
            raise self._state.damaged(f"state.npz: {str(error)[:120]}") from None
        self.in_hand = stored
        found = sum(self._flops[: self.step])
        if (step := self.present()) is not None:
            found += self._flops[self.step] * self._share_found(step)
        if found:
            self._tell(found)

    @property
    def where(self) -> Path:
        return self._state.folder or Path()

    def _share_found(self, step: GramStep | CovarianceStep) -> float:
        if isinstance(step, GramStep):
            return strips_share(self.row, int(self.rows.counts[step.label]))
        return (self.reading + self.row / len(self.rows)) / 2

    def _tell(self, flops: float) -> None:
        if self._progress is not None:
            self._progress(flops / self._all_flops)

    def _arrays(self) -> Arrays:
        position = np.array([self.step, self.reading, self.row])
        return {
            **self.of_samples,
            **self.of_classes,
            "means": self.means,
            "position": position,
        }


def strips_share(row: int, count: int) -> float:
    """Part of a triangle of tiles that lies above row ``row`` of ``count``."""
    left = (count - row) / count
    return 1 - left * left
