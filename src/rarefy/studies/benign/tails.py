"""Experiments that ask how far out in a tail of the noise a network is still right."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from rarefy.core.contracts import Cells, Context
from rarefy.core.errors import bad_value
from rarefy.data.tail_noise import TailSamples
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.measure.tail_draws import strata_draw
from rarefy.measure.tails import CHUNK, Tails, tail_errors
from rarefy.studies.benign.featureless import FeaturelessExperiment
from rarefy.studies.benign.setting import TINY
from rarefy.studies.benign.trial import Trial, eager
from rarefy.sweep.batches import split_by_axes
from rarefy.train.fitting import FitResult

FEW = TINY | {"d": 24, "trained_steps": 40, "test_samples": 600}
"""``TINY`` for these."""


@dataclass(frozen=True, kw_only=True)
class TailsExperiment(FeaturelessExperiment):
    """Trainings on noise alone, tested by how far out in a tail a sample lies."""

    def check_strata(self, strata: int) -> None:
        """Every chunk of test samples has one per class and stratum."""
        least = self.classes * strata
        if 0 < self.test_samples % CHUNK < least:
            allowed = f"must be a multiple of {CHUNK}, or at least {least} more than one"
            raise bad_value("test_samples", self.test_samples, allowed)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, schedule: str, part: Cells) -> dict[str, np.ndarray]:
            return self.run(schedule, part, eager(context))

        return split_by_axes(cells, ("seed", "schedule"), run)

    @abstractmethod
    def run(self, schedule: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        """Cells of one seed and one training."""

    def fit(self, trial: Trial, schedule: str, context: Context) -> tuple[FitResult, np.ndarray]:
        """The trained batch, and its training loss by class. Progress is counted as if every
        training took ``trained_steps``, since a study declares one cost for all its cells."""
        plan = self.training(schedule)
        share = self.trained_steps / plan.steps
        paced = dataclasses.replace(context, advance=lambda amount: context.advance(amount * share))
        fitted = trial.fit(paced, plan)
        scores = scores_of(fitted.filters, trial.samples, trial.scale, context.compiled)
        loss, _ = sample_losses(scores, trial.samples.labels)
        one_hot = trial.samples.one_hot()
        by_class = (loss[:, None, :] @ one_hot)[:, 0] / one_hot.sum(dim=1)
        return fitted, fitted.known(by_class).cpu().numpy()

    def tails(
        self,
        trial: Trial,
        fitted: FitResult,
        lengths: tuple[float, ...],
        draw: Callable[[int, int], TailSamples] | None = None,
    ) -> Tails:
        """Errors beyond each of ``lengths``, the first of them 0; unless ``draw`` gives others, of
        samples that fill the strata between them."""
        by_strata = partial(strata_draw, trial.data, trial.draws, lengths[1:])
        drawn, table = draw or by_strata, trial.data.eigenvalues
        return tail_errors(fitted.filters, drawn, self.test_samples, lengths, table, trial.scale)
