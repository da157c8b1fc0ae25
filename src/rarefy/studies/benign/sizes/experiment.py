"""Test accuracy over noise correlation ratio and class size, without a feature (003 Fig. 4b)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.studies.benign.setting import TRAININGS, ClassNoiseExperiment, equal_spectrum
from rarefy.studies.benign.trial import Training
from rarefy.sweep.batches import split_by_axis

SIZE_OF_RATE = 100
"""Class size for which ``trained_lr`` is meant."""


@dataclass(frozen=True, kw_only=True)
class SizesExperiment(ClassNoiseExperiment):
    """The map of Fig. 4b, for both trainings.

    ``trained`` takes a rate in proportion to |S|: the loss is a mean over samples, so that each
    sample pulls equally hard then.
    """

    axes: ClassVar[tuple[str, ...]] = ("schedule", "size", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "size": (4, 12),
            "gamma": (1.0, 10.0, 800.0),
            "classes": 3,
            "d": 40,
            "filters": 6,
            "trained_lr": 200.0,
            "trained_steps": 100,
            "test_samples": 300,
        },
        "quick": {
            "seeds": 6,
            "size": (5, 10, 20, 40),
            "gamma": (1.0, 2.0, 5.0, 20.0, 50.0, 200.0, 800.0),
            "d": 200,
            "filters": 20,
            "trained_lr": 100.0,
            "trained_steps": 800,
            "test_samples": 2000,
        },
        "paper": {
            "seeds": 6,
            "size": (10, 20, 50, 100, 200),
            "gamma": (1.0, 2.0, 10.0, 50.0, 200.0, 800.0),
        },
    }

    schedule: tuple[str, ...] = TRAININGS
    """how it is trained, printed: as 003 says; trained: until the training loss is ``stop_loss``"""
    size: tuple[int, ...] = (10, 20, 35, 50, 75, 100, 150, 200)
    """training samples a class (|S|)"""
    gamma: tuple[float, ...] = (1.0, 1.2, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    strength: float = 1e-6
    """feature strength |u|"""
    trained_lr: float = 50.0
    """learning rate of ``trained`` at 100 samples a class, in proportion at other sizes; above d =
    1000 in proportion to 1000/d"""
    trained_steps: int = 1500
    """most steps of ``trained``; runs that have stopped cost nothing"""
    seeds: int = 10

    def check(self) -> None:
        super().check()
        for name in self.schedule:
            if name not in TRAININGS:
                raise bad_value("schedule", name, f"must be one of {', '.join(TRAININGS)}")
        for size in self.size:
            if size < 1:
                raise bad_value("size", size, "every class needs at least 1 sample")
        for gamma in self.gamma:
            if not 1 <= gamma < float("inf"):
                raise bad_value("gamma", gamma, "must be finite and at least 1 (equal classes)")
        if not 0 <= self.strength < float("inf"):
            raise bad_value("strength", self.strength, "must be finite and at least 0")

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("train_loss", (), "training loss at the end"),
            Output("stopped_at", (), "updates until the stopping loss was seen; -1: it was not"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

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
        def of_seed(_: int, those: Cells) -> dict[str, np.ndarray]:
            return split_by_axis(those, "size", of_size)

        def of_size(size: int, those: Cells) -> dict[str, np.ndarray]:
            return split_by_axis(
                those, "schedule", lambda name, part: self._run(size, name, part, context)
            )

        # cells of one seed share test samples and initial filters
        return split_by_axis(cells, "seed", of_seed)

    def _run(self, size: int, name: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        gamma = cells.column("gamma", context)
        experiment = self.setup(
            cells,
            context,
            spectrum=equal_spectrum(gamma, self.d, self.classes, self.base),
            strength=torch.full_like(gamma, self.strength),
            sizes=torch.full((1, self.classes), size, device=context.device),
            zeta_axes="rotated",
            # without vectors only sets drawn out of one have the same axes
            room=self.classes * max(self.size) if self.without_vectors() else None,
        )
        training = self.training_at(name, size)
        fitted = experiment.fit(context, training)
        context.advance(len(cells) * (self.cost().steps_per_cell - training.steps))
        train_loss, _ = experiment.on_training_samples(fitted.filters)
        seen = experiment.test(fitted.filters, context, self.test_samples)
        found = {
            "test_error": fitted.known(seen.error),
            "train_loss": fitted.known(train_loss),
            "stopped_at": fitted.stopped_at,
            "nonfinite_step": fitted.nonfinite_step,
        }
        return {name: value.cpu().numpy() for name, value in found.items()}
