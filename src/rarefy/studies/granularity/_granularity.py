"""What the studies of 004 share: the setting, and how a batch of it is trained and tested."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.contracts import Cells, Context, Study
from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView, MultiViewSamples
from rarefy.data.multi_view_sets import Batch, FreshSamples, StoredSamples
from rarefy.measure.granularity import Answers, answers
from rarefy.train.descent import Tracker, Trajectory, descend
from rarefy.train.multi_view_classifier import (
    BIASES,
    MultiViewBatch,
    MultiViewClassifier,
    initial_neurons,
)
from rarefy.train.optimisers import Sgd


@dataclass(frozen=True)
class Experiment:
    """A batch of runs ready to train."""

    data: MultiView
    labels: Labels
    draws: Draws
    problem: MultiViewClassifier
    initial: dict[str, Tensor]
    batches: Callable[[int], Batch]
    lr: float

    def train(
        self,
        context: Context,
        steps: int,
        trackers: Mapping[str, Tracker] | None = None,
        record: Sequence[int] | None = None,
    ) -> Trajectory:
        """(16) and (18) on batch after batch."""
        return self._descend(
            self.problem, self.initial, self._labelled, context, steps, trackers, record
        )

    def fine_tune(
        self,
        parameters: dict[str, Tensor],
        context: Context,
        steps: int,
        trackers: Mapping[str, Tracker] | None = None,
        record: Sequence[int] | None = None,
        size: int | None = None,
    ) -> Trajectory:
        """Train further on the coarse question, answered by the maxima over each side's outputs
        (004 App. G.4), with samples that training has not seen; ``size`` of them at every update,
        by default as many as in training."""
        side = self.labels.side().to(self.draws.keys.device)
        problem = replace(self.problem, coarse=side)
        coarse = Labels(self.data, 1)
        size = size or self._batch_size()
        fresh = FreshSamples(self.data, coarse, self.draws.spawn("fine-tuning"), size)

        def batch(step: int) -> MultiViewBatch:
            return _with_target(fresh(step), 2)

        return self._descend(problem, parameters, batch, context, steps, trackers, record)

    def _batch_size(self) -> int:
        return int(self.batches(0).label.shape[1])

    def _labelled(self, step: int) -> MultiViewBatch:
        return _with_target(self.batches(step), self.labels.outputs)

    def _descend(
        self,
        problem: MultiViewClassifier,
        parameters: dict[str, Tensor],
        batches: Callable[[int], MultiViewBatch],
        context: Context,
        steps: int,
        trackers: Mapping[str, Tracker] | None,
        record: Sequence[int] | None,
    ) -> Trajectory:
        return descend(
            problem,
            parameters,
            batches,
            Sgd(self.lr),
            steps,
            trackers=trackers,
            record=record,
            context=context,
            guard="loss",
        )

    def test(self, parameters: dict[str, Tensor], each: int, hard: bool) -> Answers:
        """Answers to ``each`` fresh samples of every subclass."""

        def scores(views: MultiViewSamples) -> Tensor:
            return self.problem.scores(parameters, views)

        def label_of(subclass: Tensor) -> Tensor:
            clean = replace(self.labels, noise=0.0, misaligned=0.0)
            return clean.of(subclass, torch.zeros_like(subclass), self.draws)

        side = self.labels.side()
        return answers(scores, self.data, self.draws, label_of, side, each, hard)


def _with_target(batch: Batch, outputs: int) -> MultiViewBatch:
    one_hot = functional.one_hot(batch.label, outputs).transpose(1, 2)
    return MultiViewBatch(batch.views, one_hot.to(batch.views.patches.dtype))


@dataclass(frozen=True, kw_only=True)
class GranularityStudy(Study):
    """The finite setting. The paper's own (c_b = 2 and d^2 neurons an output for coarse labels) has
    one detector of a given feature among 144,000 neurons at d = 100: c_b is free here."""

    lab: ClassVar[str] = "granularity"

    d: int = 100
    """coordinates of a patch, and features of the dictionary"""
    patches: int = 24
    """patches of a sample (P)"""
    feature_patches: int = 3
    """patches with the common feature, and as many with the subclass's (s*)"""
    spread: float = 0.1
    """feature strengths lie in [sqrt(1 - spread), sqrt(1 + spread)] (iota)"""
    sigma: float = 0.02
    """std of the noise in every patch (sigma_zeta)"""
    distractors: int = 2
    """patches of a hard sample with the other side's common feature (s^dagger)"""
    distraction: float = 0.3
    """their strength (iota^dagger)"""
    strong: float = 0.3
    """std of the one strong noise patch of a hard sample (sigma_zeta*)"""
    counts: str = "fixed"
    """patches with features: fixed numbers, or drawn as in App. B.1"""
    neurons: int = 100
    """neurons an output (m)"""
    sigma_0: float = 0.01
    """std of the initial weights"""
    threshold: float = 1.0
    """c_b: the bias begins at -sigma_0 c_b sqrt(log d)"""
    bias: str = "following"
    """how biases move: following their neuron (18), scheduled alike for all, or still"""
    lr: float = 1.0
    """learning rate (eta)"""
    batch: int = 64
    """samples of a batch (N)"""
    steps: int = 400
    """updates"""
    test_each: int = 32
    """fresh easy and hard samples of every subclass"""

    def check(self) -> None:
        super().check()
        for name in ("neurons", "batch", "steps", "test_each"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        for name in ("sigma_0", "threshold", "lr"):
            if not 0 < getattr(self, name) < float("inf"):
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        if self.bias not in BIASES:
            raise bad_value("bias", self.bias, f"must be one of {', '.join(BIASES)}")

    @property
    def setting(self) -> str:
        return f"d={self.d} P={self.patches} m={self.neurons} c_b={self.threshold:g}"

    def model(self, subclasses: int) -> MultiView:
        """The data model with so many subclasses a side; refuses what has no room."""
        return MultiView(
            d=self.d,
            patches=self.patches,
            plus=subclasses,
            minus=subclasses,
            feature_patches=self.feature_patches,
            spread=self.spread,
            sigma=self.sigma,
            distractors=self.distractors,
            distraction=(self.distraction, self.distraction),
            strong=self.strong,
            counts=self.counts,
        )

    def check_model(self, subclasses: int) -> None:
        """Refuse a number of subclasses that the setting has no room for."""
        if subclasses < 1:
            raise bad_value("subclasses", subclasses, "must be at least 1 a side")
        self.model(subclasses).balanced(self.batch)

    def problem(self, linear: bool = False) -> MultiViewClassifier:
        rate = 1 / math.log(self.d) ** 5
        # a common feature's detectors move at this rate in phase 1 (004 Theorem D.1)
        scheduled = self.feature_patches / (4 * self.patches)
        return MultiViewClassifier(self.patches, self.bias, rate, scheduled, linear)

    def setup(
        self,
        cells: Cells,
        context: Context,
        labels: Labels,
        samples: int = 0,
        linear: bool = False,
    ) -> Experiment:
        """Cells of one shape, ready to train; samples: stored ones a subclass, 0: fresh ones."""
        draws = cells.draws(context)
        data = labels.data
        batches: Callable[[int], Batch]
        if samples:
            batches = StoredSamples(data, labels, draws, samples, self.batch)
        else:
            batches = FreshSamples(data, labels, draws, self.batch)
        initial = initial_neurons(
            draws, labels.outputs, self.neurons, self.d, self.sigma_0, self.threshold
        )
        return Experiment(data, labels, draws, self.problem(linear), initial, batches, self.lr)
