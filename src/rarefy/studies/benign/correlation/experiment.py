"""Test accuracy over feature strength and noise correlation ratio (003 Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.studies.benign.setting import TINY, TRAININGS, ClassNoiseExperiment, Ratio, Schedule
from rarefy.studies.benign.trial import eager, outputs_of
from rarefy.sweep.batches import split_by_axes

LAWS = {
    "gaussian": ("gaussian", "rotated"),
    "uniform": ("uniform", "original"),
    "uniform-own": ("uniform", "rotated"),
}
"""Law of zeta's coordinates, and the axes along which they are independent: for a uniform law A_k =
U Lambda_k U^T (original) and A_k = U Lambda_k (rotated) differ. 003 does not say which it has."""


@dataclass(frozen=True, kw_only=True)
class CorrelationExperiment(ClassNoiseExperiment):
    """The maps of Fig. 3, for several laws of the noise and trainings."""

    axes: ClassVar[tuple[str, ...]] = ("law", "schedule", "strength", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY
        | {"strength": (0.001, 1.0, 3.8), "gamma": (1.0, 10.0, 1400.0), "size": 10}
        | {"schedule": TRAININGS},
        "quick": {"seeds": 5, "d": 200, "filters": 20, "size": 20, "test_samples": 2000}
        | {"strength": (0.001, 1.0, 2.0, 3.8), "gamma": (1.0, 4.0, 30.0, 200.0, 1400.0)},
        # the published ranges; how finely they were cut is not published
        "paper": {},
    }

    law: tuple[Annotated[str, OneOf(LAWS)], ...] = ("gaussian", "uniform")
    """zeta: gaussian, uniform along the axes of the space, or uniform-own, along the noise's own
    axes"""
    schedule: tuple[Schedule, ...] = ("printed", "trained")
    """how it is trained: printed, trained, carried on"""
    strength: tuple[NotNegative, ...] = (0.001, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.8)
    """feature strength |u|, the same for all classes"""
    gamma: tuple[Ratio, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 800.0, 1400.0)
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    size: Count = 100
    """training samples per class (|S|)"""
    test_samples: Count = 5000
    seeds: Count = 20

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.size}"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("train_loss", (), "training loss at the end"),
            Output("stopped_at", (), "updates until the stopping loss was seen; -1: it was not"),
        )

    def cost(self) -> Cost:
        return self.cost_of(self.classes * self.size, max(self.steps, self.trained_steps))

    @property
    def laws(self) -> tuple[str, ...]:
        return self.law

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, law: str, schedule: str, part: Cells) -> dict[str, np.ndarray]:
            return self._run(law, schedule, part, eager(context))

        # cells of one seed share zeta, rotation and initial filters
        return split_by_axes(cells, ("seed", "law", "schedule"), run)

    def _run(self, law: str, name: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        coordinates, axes = LAWS[law]
        trial = self.setup(
            cells,
            context,
            spectrum=self.spectrum(cells.column("gamma", context)),
            strength=cells.column("strength", context),
            sizes=torch.full((1, self.classes), self.size, device=context.device),
            schedule=name,
            law=coordinates,
            zeta_axes=axes,
        )
        training = self.training(name)
        fitted = trial.fit(context, training)
        context.advance(len(cells) * (self.cost().steps_per_cell - training.steps))
        train_loss, _ = trial.on_training_samples(fitted.filters)
        error = trial.test(fitted.filters, context, self.test_samples).error
        return outputs_of(fitted, test_error=error, train_loss=train_loss)
