"""What ``benign-features`` and ``benign-homogeneous`` share: a map over feature strength and class
size, every network of a seed tested on the same fresh samples."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count, Positive
from rarefy.data.noise_spectrum import Spectrum
from rarefy.studies.benign.setting import TRAININGS, ClassNoiseExperiment, Schedule
from rarefy.studies.benign.trial import Training, eager


@dataclass(frozen=True, kw_only=True)
class StrengthExperiment(ClassNoiseExperiment):
    """All classes have one size |S| and one feature strength |u|."""

    schedule: tuple[Schedule, ...] = TRAININGS
    """how it is trained: printed (20 steps), trained or carried on (to a small loss)"""
    size: tuple[Count, ...] = (10, 20, 50, 100)
    """training samples per class |S|"""
    strength: tuple[Positive, ...] = (0.01, 1.0, 2.0, 4.0)
    """feature strength |u|"""
    seeds: Count = 20

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_error", (), "share of fresh samples not classified right"),
            Output("train_loss", (), "training loss at the end"),
            Output("stopped_at", (), "updates until the training loss was small; -1: not reached"),
        )

    def cost(self) -> Cost:
        return self.cost_of(self.classes * max(self.size), self.trained_steps)

    def train_and_test(
        self, cells: Cells, spectrum: Spectrum, context: Context
    ) -> dict[str, np.ndarray]:
        """Cells of one seed and one kind of noise, the same for all.

        Sets of different sizes are trained one after the other and tested all together: drawing a
        hundred thousand test samples costs as much as training a few networks.
        """
        context = eager(context)
        kinds, sizes = (np.asarray(cells.values[axis]) for axis in ("schedule", "size"))
        strength = cells.column("strength", context)
        runs = len(cells)
        loss, stopped = strength.new_empty(runs), torch.empty(runs, dtype=torch.int64)
        nonfinite = torch.empty_like(stopped)
        whole, filters = None, None
        # without vectors only sets drawn out of one have the same axes, and so one test
        room = self.classes * max(self.size) if self.without_vectors() else None
        for kind in dict.fromkeys(kinds.tolist()):
            for size in dict.fromkeys(sizes[kinds == kind].tolist()):
                place = np.flatnonzero((kinds == kind) & (sizes == size))
                rows = torch.as_tensor(place)
                whole = self.setup(
                    cells.take(place),
                    context,
                    spectrum=spectrum,
                    strength=strength[rows.to(strength.device)],
                    sizes=torch.full((1, self.classes), int(size)),
                    schedule=kind,
                    room=room,
                )
                if filters is None:
                    filters = whole.initial.new_empty(runs, *whole.initial.shape[1:])
                training = self.training(kind)
                fitted = whole.fit(self._counting(context, training), training)
                filters[rows.to(filters.device)] = fitted.filters
                loss[rows.to(loss.device)] = whole.on_training_samples(fitted.filters)[0]
                stopped[rows] = fitted.stopped_at.cpu()
                nonfinite[rows] = fitted.nonfinite_step.cpu()
        assert whole is not None and filters is not None  # a batch has at least one cell
        norms = strength[:, None].expand(-1, self.classes)
        whole = dataclasses.replace(whole, data=dataclasses.replace(whole.data, strength=norms))
        error = whole.test(filters, context, self.test_samples).error.cpu()
        # scores that are not numbers would count as right
        error = torch.where(nonfinite >= 0, torch.nan, error)
        return {
            "test_error": error.numpy(),
            "train_loss": loss.cpu().numpy(),
            "stopped_at": stopped.numpy(),
            "nonfinite_step": nonfinite.numpy(),
        }

    def _counting(self, context: Context, training: Training) -> Context:
        """Progress is counted as if every cell took as many steps as the cost says."""
        weight = self.cost().steps_per_cell / training.steps
        return dataclasses.replace(context, advance=lambda done: context.advance(weight * done))
