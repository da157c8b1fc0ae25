"""Test accuracy over feature strength and noise correlation ratio (003 Fig. 3, Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.data.tail_noise import stratified
from rarefy.measure.generalisation import CHUNK, sample_losses, scores_of
from rarefy.studies.benign.setting import TINY, TRAININGS, ClassNoiseExperiment, Ratio, Schedule
from rarefy.studies.benign.trial import Trial, outputs_of
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
    """The maps of Fig. 3, for three laws of the noise and two trainings."""

    axes: ClassVar[tuple[str, ...]] = ("law", "schedule", "strength", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY
        | {"strength": (0.001, 1.0, 3.8), "gamma": (1.0, 10.0, 1400.0), "size": 10}
        | {"trained_lr": 20.0, "tail_samples": 500},
        "quick": {"seeds": 3, "strength": (0.001, 0.5, 1.0, 1.5, 2.0, 2.5, 3.8)}
        | {"gamma": (1.0, 1.2, 2.0, 4.0, 10.0, 30.0, 100.0, 400.0, 1400.0)}
        | {"d": 200, "filters": 20, "size": 20, "trained_lr": 20.0, "trained_steps": 800}
        | {"test_samples": 2000, "tail_samples": 2000},
        # the published ranges; how finely they were cut is not published
        "paper": {"seeds": 2, "strength": (0.001, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.8)}
        | {"gamma": (1.0, 1.5, 3.0, 10.0, 30.0, 100.0, 300.0, 800.0, 1400.0)}
        | {"trained_lr": 100.0},
    }

    law: tuple[Annotated[str, OneOf(LAWS)], ...] = tuple(LAWS)
    """zeta: gaussian, uniform along the axes of the space, or uniform along the noise's own axes"""
    schedule: tuple[Schedule, ...] = TRAININGS
    """how it is trained, printed: as 003 says; trained: until the training loss is ``stop_loss``"""
    strength: tuple[NotNegative, ...] = (
        *(0.001, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.4, 3.8),
    )
    """feature strength |u|, the same for all classes"""
    gamma: tuple[Ratio, ...] = (
        *(1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 40.0, 75.0, 150.0),
        *(300.0, 600.0, 1000.0, 1400.0),
    )
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    size: Count = 100
    """training samples per class (|S|)"""
    edges: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    """sizes of |zeta| along the special direction between which the error is taken (gaussian)"""
    tail_samples: Count = 10_000
    """test samples spread evenly over these strata"""
    trained_steps: Count = 1200
    seeds: Count = 6

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.size}"

    def check(self) -> None:
        super().check()
        rising = all(a < b for a, b in zip((0.0, *self.edges), self.edges, strict=False))
        if not self.edges or not rising or not self.edges[-1] < 8:
            raise bad_value("edges", self.edges, "must rise from above 0 and stay below 8")
        most = CHUNK // self.classes - 1
        if len(self.edges) > most:
            raise bad_value("edges", self.edges, f"there may be {most} with {self.classes} classes")

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("test_loss", (), "mean cross-entropy on fresh samples"),
            Output("train_loss", (), "training loss at the end"),
            Output("train_error", (), "share of training samples not classified right"),
            Output("stopped_at", (), "updates until the stopping loss was seen; -1: it was not"),
            Output(
                "stratum_error",
                ("edge",),
                "error given |zeta| along the special direction in a stratum; gaussian only",
            ),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"edge": np.array([0.0, *self.edges])}

    def cost(self) -> Cost:
        return self.cost_of(self.classes * self.size, max(self.steps, self.trained_steps))

    @property
    def laws(self) -> tuple[str, ...]:
        return self.law

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, law: str, schedule: str, part: Cells) -> dict[str, np.ndarray]:
            return self._run(law, schedule, part, context)

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
            law=coordinates,
            zeta_axes=axes,
        )
        training = self.training(name)
        fitted = trial.fit(context, training)
        context.advance(len(cells) * (self.cost().steps_per_cell - training.steps))
        train_loss, train_error = trial.on_training_samples(fitted.filters)
        seen = trial.test(fitted.filters, context, self.test_samples)
        strata = torch.full_like(seen.error[:, None].expand(-1, len(self.edges) + 1), torch.nan)
        if law == "gaussian":
            strata = stratum_errors(trial, fitted.filters, context, self.edges, self.tail_samples)
        return outputs_of(
            fitted,
            test_error=seen.error,
            test_loss=seen.loss,
            train_loss=train_loss,
            train_error=train_error,
            stratum_error=strata,
        )


def stratum_errors(
    experiment: Trial, filters: Tensor, context: Context, edges: tuple[float, ...], samples: int
) -> Tensor:
    """Test error given that |zeta| along the class's special direction lies between two ``edges``
    (0 before the first, infinity after the last): (run, stratum), equally many samples in each."""
    wrong = torch.zeros(len(filters), len(edges) + 1, dtype=torch.float64, device=filters.device)
    count = torch.zeros_like(wrong[:1])
    labels = experiment.test_labels(CHUNK)
    for chunk in range(-(-samples // CHUNK)):
        tail = stratified(experiment.data, experiment.draws, labels, edges, "tail", chunk)
        scores = scores_of(filters, tail.samples, experiment.scale, context.compiled)
        _, error = sample_losses(scores, tail.samples.labels)
        inside = tail.stratum[0, :, None] == torch.arange(len(edges) + 1, device=filters.device)
        wrong += error.double() @ inside.double()
        count += inside.double().sum(dim=0)
    return (wrong / count).to(filters.dtype)
