"""Test accuracy over noise correlation ratio and class size, without a feature (003 Fig. 4b)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count, Positive
from rarefy.studies.benign.featureless import FeaturelessExperiment
from rarefy.studies.benign.setting import TINY, Ratio
from rarefy.studies.benign.trial import Training, outputs_of
from rarefy.sweep.batches import split_by_axes

SIZE_OF_RATE = 100
"""Class size for which ``trained_lr`` is meant."""


@dataclass(frozen=True, kw_only=True)
class SizesExperiment(FeaturelessExperiment):
    """The map of Fig. 4b, for both trainings.

    ``trained`` takes a rate in proportion to |S|: the loss is a mean over samples, so that each
    sample pulls equally hard then.
    """

    axes: ClassVar[tuple[str, ...]] = ("schedule", "size", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY | {"size": (4, 12), "gamma": (1.0, 10.0, 800.0), "trained_lr": 200.0},
        "quick": {"seeds": 6, "size": (5, 10, 20, 40)}
        | {"gamma": (1.0, 2.0, 5.0, 20.0, 50.0, 200.0, 800.0)}
        | {"d": 200, "filters": 20, "trained_lr": 100.0, "trained_steps": 800}
        | {"test_samples": 2000},
        "paper": {"seeds": 6, "size": (10, 20, 50, 100, 200)}
        | {"gamma": (1.0, 2.0, 10.0, 50.0, 200.0, 800.0)},
    }

    size: tuple[Count, ...] = (10, 20, 35, 50, 75, 100, 150, 200)
    """training samples per class (|S|)"""
    gamma: tuple[Ratio, ...] = (1.0, 1.2, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    trained_lr: Positive = 50.0
    """learning rate of ``trained`` at 100 samples per class, in proportion at other sizes; above
    d = 1000 in proportion to 1000/d"""
    trained_steps: Count = 1500
    seeds: Count = 10

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("train_loss", (), "training loss at the end"),
            Output("stopped_at", (), "updates until the stopping loss was seen; -1: it was not"),
        )

    def cost(self) -> Cost:
        steps = max(self.steps, self.trained_steps)
        return self.cost_of(self.classes * max(self.size), steps)

    def training_at(self, name: str, size: int) -> Training:
        """The training of a cell, its rate included."""
        found = self.training(name)
        if name == "printed":
            return found
        return dataclasses.replace(found, lr=found.lr * size / SIZE_OF_RATE)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, size: int, schedule: str, part: Cells) -> dict[str, np.ndarray]:
            noise = self.spectrum(part.column("gamma", context))
            # without vectors only sets drawn out of one have the same axes
            room = self.classes * max(self.size) if self.without_vectors() else None
            trial = self.without_features(part, context, noise, [size] * self.classes, room)
            training = self.training_at(schedule, size)
            fitted = trial.fit(context, training)
            context.advance(len(part) * (self.cost().steps_per_cell - training.steps))
            train_loss, _ = trial.on_training_samples(fitted.filters)
            error = trial.test(fitted.filters, context, self.test_samples).error
            return outputs_of(fitted, test_error=error, train_loss=train_loss)

        # cells of one seed share test samples and initial filters
        return split_by_axes(cells, ("seed", "size", "schedule"), run)
