"""A batch of runs of one shape, trained on and tested: what the experiments of 004 have in common.

A network is tested on fresh easy and hard samples while it trains; the two networks of a cell, one
with coarse and one with fine labels, are put side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.contracts import NONFINITE_STEP, Context
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView, MultiViewSamples
from rarefy.data.multi_view_sets import Batch, FreshSamples
from rarefy.measure.granularity import Answers, answers
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.multi_view_classifier import MultiViewBatch, MultiViewClassifier
from rarefy.train.optimisers import Sgd

LABELS = ("coarse", "fine")
MEASURES = {
    "loss": "training loss of the batch before the last update",
    "easy_error": "share of fresh easy samples on the wrong side",
    "hard_error": "share of fresh hard samples on the wrong side",
    "easy_label_error": "share of fresh easy samples with the wrong label",
    "hard_label_error": "share of fresh hard samples with the wrong label",
    "easy_margin": "score of the right side minus that of the wrong one, easy samples, mean",
}
MAIN_MEASURES = ("loss", "easy_error", "hard_error")
"""Those that every study keeps."""


@dataclass(frozen=True)
class Learnt:
    """A training with tests on the way: ``reads[name]``, (run, read), of ``MEASURES``."""

    reads: dict[str, Tensor]
    trajectory: Trajectory

    def outputs(self, names: Iterable[str]) -> dict[str, Tensor]:
        """Some of ``MEASURES``, (run, read) each, and where a run was lost, (run,)."""
        lost = {NONFINITE_STEP.name: self.trajectory.nonfinite_step}
        return {name: self.reads[name] for name in names} | lost


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train."""

    data: MultiView
    labels: Labels
    draws: Draws
    problem: MultiViewClassifier
    initial: dict[str, Tensor]
    batches: Callable[[int], Batch]
    lr: float

    def train(self, steps: int, **how: Any) -> Trajectory:
        """(16) and (18) on batch after batch; ``how``: context, trackers and record of
        ``descend``."""
        return self._descend(
            self.problem, self.initial, self.batches, self.labels.outputs, steps, **how
        )

    def learn(self, context: Context, steps: int, each: int, reads: Sequence[int]) -> Learnt:
        """Train, tested with ``each`` samples per subclass after each number of updates in
        ``reads``."""
        trackers = {"tests": self.tests(each)}
        trajectory = self.train(steps, context=context, trackers=trackers, record=reads)
        return Learnt(by_measure(trajectory.records["tests"]), trajectory)

    def fine_tune(
        self, parameters: dict[str, Tensor], steps: int, size: int, **how: Any
    ) -> Trajectory:
        """Train further on the coarse question, answered by the maxima over each side's outputs
        (004 App. G.4), with ``size`` samples per update that training has not seen."""
        problem = replace(self.problem, coarse=self.labels.side().to(self.draws.keys.device))
        fresh = FreshSamples(self.data, Labels(self.data, 1), self.draws.spawn("fine-tuning"), size)
        return self._descend(problem, parameters, fresh, 2, steps, **how)

    def _descend(
        self,
        problem: MultiViewClassifier,
        parameters: dict[str, Tensor],
        batches: Callable[[int], Batch],
        outputs: int,
        steps: int,
        **how: Any,
    ) -> Trajectory:
        def with_target(step: int) -> MultiViewBatch:
            batch = batches(step)
            one_hot = functional.one_hot(batch.label, outputs).transpose(1, 2)
            return MultiViewBatch(batch.views, one_hot.to(batch.views.patches.dtype))

        return descend(problem, parameters, with_target, Sgd(self.lr), steps, guard="loss", **how)

    def test(self, parameters: dict[str, Tensor], each: int, hard: bool) -> Answers:
        """Answers to ``each`` fresh samples of every subclass."""

        def scores(views: MultiViewSamples) -> Tensor:
            return self.problem.scores(parameters, views)

        def label_of(subclass: Tensor) -> Tensor:
            clean = replace(self.labels, noise=0.0, misaligned=0.0)
            return clean.of(subclass, torch.zeros_like(subclass), self.draws)

        side = self.labels.side()
        return answers(scores, self.data, self.draws, label_of, side, each, hard)

    def tests(self, each: int) -> Tracker:
        """A tracker of ``MEASURES``, (run, measure)."""

        def look(state: State) -> Tensor:
            easy, hard = (self.test(state.parameters, each, kind) for kind in (False, True))
            found = [
                state.loss.to(easy.margin),
                *(each.error for each in (easy, hard)),
                *(each.label_error for each in (easy, hard)),
                easy.margin.mean(dim=1),
            ]
            return torch.stack(found, dim=1)

        return look


def by_measure(records: Tensor) -> dict[str, Tensor]:
    """Records of ``Trial.tests``, (run, read, measure), by name."""
    return dict(zip(MEASURES, records.unbind(dim=2), strict=True))


def both_labels(coarse: dict[str, Tensor], fine: dict[str, Tensor]) -> dict[str, Tensor]:
    """Outputs of the two networks of a cell, with the axis ``labels`` after ``run``. A cell is lost
    where the first of them is, or else the second."""
    found = {name: torch.stack([coarse[name], fine[name]], dim=1) for name in coarse}
    first, second = found[NONFINITE_STEP.name].unbind(dim=1)
    return found | {NONFINITE_STEP.name: torch.where(first >= 0, first, second)}
