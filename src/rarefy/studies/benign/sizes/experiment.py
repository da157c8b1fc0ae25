"""Test accuracy over noise correlation ratio and class size, without a feature (003 Fig. 4b)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count
from rarefy.studies.benign.featureless import FeaturelessExperiment
from rarefy.studies.benign.setting import TINY, TRAININGS, Ratio, Schedule
from rarefy.studies.benign.trial import eager, outputs_of
from rarefy.sweep.batches import split_by_axes


@dataclass(frozen=True, kw_only=True)
class SizesExperiment(FeaturelessExperiment):
    """The map of Fig. 4b."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "size", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY | {"size": (4, 12), "gamma": (1.0, 10.0, 800.0), "schedule": TRAININGS},
        "quick": {"seeds": 6, "size": (5, 10, 20, 40), "gamma": (1.0, 5.0, 50.0, 800.0)}
        | {"d": 200, "filters": 20, "test_samples": 2000},
        "paper": {},
    }

    schedule: tuple[Schedule, ...] = ("printed", "trained")
    size: tuple[Count, ...] = (10, 20, 50, 100, 200)
    """training samples per class (|S|)"""
    gamma: tuple[Ratio, ...] = (1.0, 2.0, 10.0, 50.0, 200.0, 800.0)
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    test_samples: Count = 5000
    seeds: Count = 20

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("train_loss", (), "training loss at the end"),
            Output("stopped_at", (), "updates until the stopping loss was seen; -1: it was not"),
        )

    def cost(self) -> Cost:
        steps = max(self.steps, self.trained_steps)
        return self.cost_of(self.classes * max(self.size), steps)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        context = eager(context)

        def run(seed: int, size: int, schedule: str, part: Cells) -> dict[str, np.ndarray]:
            noise = self.spectrum(part.column("gamma", context))
            # without vectors only sets drawn out of one have the same axes
            room = self.classes * max(self.size) if self.without_vectors() else None
            sizes = [size] * self.classes
            trial = self.without_features(part, context, noise, sizes, schedule, room)
            training = self.training(schedule)
            fitted = trial.fit(context, training)
            context.advance(len(part) * (self.cost().steps_per_cell - training.steps))
            train_loss, _ = trial.on_training_samples(fitted.filters)
            error = trial.test(fitted.filters, context, self.test_samples).error
            return outputs_of(fitted, test_error=error, train_loss=train_loss)

        # cells of one seed share test samples and initial filters
        return split_by_axes(cells, ("seed", "size", "schedule"), run)
