"""Training a batch whose runs stop by themselves at different times, and how its runs end.

At a small noise correlation ratio a run needs ten times the steps of one at a large ratio. The
batch is trained in blocks, and after each block the runs that have stopped are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.data.patches import PatchSamples
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies.benign._benign import Experiment, Training

BLOCK = 50
"""Steps of a block: a run goes on idly for half of them on average once it has stopped."""


@dataclass(frozen=True)
class Fitted:
    """filters: (run, classes, m, d); of each run: ``stopped_at``, updates until its stopping loss
    was seen (-1: it was not), and ``nonfinite_step`` (-1: it stayed finite)."""

    filters: Tensor
    stopped_at: Tensor
    nonfinite_step: Tensor

    def known(self, values: Tensor) -> Tensor:
        """``values``, (run, ...), NaN for runs that did not stay finite."""
        lost = (self.nonfinite_step >= 0).reshape(-1, *(1,) * (values.dim() - 1))
        return values.masked_fill(lost, torch.nan)


def fit(experiment: Experiment, context: Context, training: Training) -> Fitted:
    """``Experiment.train`` for its filters alone, without steps for runs that stand still."""
    runs = len(experiment.initial)
    filters = experiment.initial.clone()
    stopped = torch.full((runs,), -1, dtype=torch.int64, device=filters.device)
    lost = stopped.clone()
    moving = torch.arange(runs, device=filters.device)
    done = 0
    while done < training.steps and len(moving):
        left = training.steps - done
        steps = min(BLOCK, left) if training.stop_loss > 0 else left
        part = replace(
            experiment, initial=filters[moving], samples=_rows(experiment.samples, moving)
        )
        trajectory, at = part.train(context, replace(training, steps=steps), {})
        gone = trajectory.nonfinite_step
        filters[moving] = trajectory.parameters["filters"]
        stopped[moving] = torch.where(at >= 0, at + done, at)
        lost[moving] = torch.where(gone >= 0, gone + done, gone)
        context.advance(steps * (runs - len(moving)))
        moving = moving[(at < 0) & (gone < 0)]
        done += steps
    context.advance(runs * (training.steps - done))
    return Fitted(filters, stopped, lost)


def _rows(samples: PatchSamples, rows: Tensor) -> PatchSamples:
    """The samples of some runs; what all runs share stays shared."""

    def some(values: Tensor) -> Tensor:
        return values if len(values) == 1 else values[rows]

    return PatchSamples(
        labels=some(samples.labels),
        noise=some(samples.noise),
        features=some(samples.features),
        noise_scale=samples.noise_scale[rows],
        strength=samples.strength[rows],
    )


def on_training_samples(experiment: Experiment, filters: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and error on the training samples, (run,) each."""
    scores = scores_of(filters, experiment.samples, experiment.scale)
    loss, error = sample_losses(scores, experiment.samples.labels)
    return loss.mean(dim=1), error.mean(dim=1)
