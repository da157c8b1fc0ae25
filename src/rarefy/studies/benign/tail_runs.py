"""What the studies of tails share: training a batch, and what is stored about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies.benign.setting import ClassNoiseExperiment
from rarefy.studies.benign.trial import Trial


@dataclass(frozen=True)
class Trained:
    """Filters after training, and what every study of tails stores about it."""

    filters: Tensor
    train_loss: Tensor
    stopped_at: Tensor
    nonfinite_step: Tensor

    def outputs(self) -> dict[str, np.ndarray]:
        return {
            name: getattr(self, name).cpu().numpy()
            for name in ("train_loss", "stopped_at", "nonfinite_step")
        }


def train(
    study: ClassNoiseExperiment, experiment: Trial, schedule: str, context: Context
) -> Trained:
    """Train a batch; progress is counted as if every training took ``trained_steps``, since a
    study declares one cost for all its cells."""
    plan = study.training(schedule)
    share = study.trained_steps / plan.steps
    paced = dataclasses.replace(context, advance=lambda amount: context.advance(amount * share))
    fitted = experiment.fit(paced, plan)
    filters = fitted.filters
    scores = scores_of(filters, experiment.samples, experiment.scale, context.compiled)
    loss, _ = sample_losses(scores, experiment.samples.labels)
    one_hot = experiment.samples.one_hot()
    by_class = (loss[:, None, :] @ one_hot)[:, 0] / one_hot.sum(dim=1)
    return Trained(filters, by_class, fitted.stopped_at, fitted.nonfinite_step)


def eager(context: Context) -> Context:
    """Without compiled kernels: the time goes into matrix products, and a study that changes its
    shapes would compile for longer than it runs."""
    return dataclasses.replace(context, compiled=False)


def masked(values: Tensor, nonfinite_step: Tensor) -> np.ndarray:
    """As an array, NaN in runs that stopped being finite."""
    kept = values.detach().clone()
    kept[nonfinite_step >= 0] = float("nan")
    return kept.cpu().numpy()
