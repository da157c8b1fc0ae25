"""What the studies of tails share: training a batch, Condition 1, the premise of Theorem 1."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Context, Verdict
from rarefy.core.picture import Table
from rarefy.data.noise_ratio import eigenvalues_for
from rarefy.measure.generalisation import sample_losses, scores_of
from rarefy.studies.benign._correlation_training import fit
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import COLUMNS, Condition, table_rows

if TYPE_CHECKING:
    from rarefy.studies.benign._benign import ClassNoiseStudy, Experiment

SCHEDULE_IN_WORDS = {
    "printed": "as printed (20 steps, hardly begun)",
    "trained": "trained until the loss is small",
}
NOT_SMALL = 0.1
"""A training loss above this is not the "training loss below epsilon" of Theorem 1: ten times the
loss at which trained runs stop, and a tenth of what a network that knows nothing has."""


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
    study: ClassNoiseStudy, experiment: Experiment, schedule: str, context: Context
) -> Trained:
    """Train a batch; progress is counted as if every training took ``trained_steps``, since a
    study declares one cost for all its cells."""
    plan = study.training(schedule)
    share = study.trained_steps / plan.steps
    paced = dataclasses.replace(context, advance=lambda amount: context.advance(amount * share))
    fitted = fit(experiment, paced, plan)
    filters = fitted.filters
    scores = scores_of(filters, experiment.samples, experiment.scale, context.compiled)
    loss, _ = sample_losses(scores, experiment.samples.labels)
    one_hot = experiment.samples.one_hot()
    by_class = (loss[:, None, :] @ one_hot)[:, 0] / one_hot.sum(dim=1)
    return Trained(filters, by_class, fitted.stopped_at, fitted.nonfinite_step)


@cache
def _equal_noise(gamma: float, d: int, classes: int, base: float, rank: int | None) -> Tensor:
    return eigenvalues_for(gamma, 1, d, classes, base, rank)[0]


def equal_noise(gamma: float, d: int, classes: int, base: float, rank: int | None = None) -> Tensor:
    """Eigenvalues, (classes, d), with ratio ``gamma`` between classes of one size. Remembered: the
    cells of a grid ask for the same few a thousand times."""
    return _equal_noise(gamma, d, classes, base, rank).clone()


def eager(context: Context) -> Context:
    """Without compiled kernels: the time goes into matrix products, and a study that changes its
    shapes would compile for longer than it runs."""
    return dataclasses.replace(context, compiled=False)


def masked(values: Tensor, nonfinite_step: Tensor) -> np.ndarray:
    """As an array, NaN in runs that stopped being finite."""
    kept = values.detach().clone()
    kept[nonfinite_step >= 0] = float("nan")
    return kept.cpu().numpy()


def with_premise(verdict: Verdict, loss: np.ndarray) -> Verdict:
    """Theorem 1 speaks of networks whose training loss is small. Where it is not, a verdict about
    the theorem decides nothing; what was measured is still shown."""
    mean = float(np.nanmean(loss))
    if mean <= NOT_SMALL:
        return verdict
    why = f"premise not met: training loss {mean:.2g}, Theorem 1 asks for a small one"
    note = f"{verdict.note}; {why}" if verdict.note else why
    return dataclasses.replace(verdict, outcome="inconclusive", note=note)


def seeds_in_words(results: xr.Dataset) -> str:
    n = results.sizes["seed"]
    return f"{n} seed{'s' if n > 1 else ''}"


# -------------------------------------------------------------------------------------- Condition 1


def diagonal_geometry(eigenvalues: np.ndarray) -> NoiseGeometry:
    """``NoiseGeometry.of`` for A_k that are diagonal in one basis, (classes, d)."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    there = values > 0
    smallest = np.where(there, values, np.inf).min(axis=1)
    return NoiseGeometry(
        gram=(values**2) @ (values**2).T,
        operator=(values[:, None, :] * values[None, :, :]).max(axis=2),
        trace=(values**2).sum(axis=1),
        rank=there.sum(axis=1).astype(np.float64),
        spread=values.max(axis=1) / smallest,
    )


def conditions(
    study: ClassNoiseStudy, eigenvalues: np.ndarray, strength: float, samples: int, schedule: str
) -> list[Condition]:
    """Condition 1 of 003 for one setting of a study."""
    plan = study.training(schedule)
    sigma_0 = study.sigma_0 if study.initialisation == "gaussian" else (3 * study.d) ** -0.5
    return condition_1(
        geometry=diagonal_geometry(eigenvalues),
        norms=np.full(study.classes, strength),
        samples=samples,
        filters=study.filters,
        d=study.d,
        sigma_0=sigma_0,
        lr=plan.lr,
        output_scale=study.scale,
        horizon=max(plan.steps, 2),
    )


def condition_table(found: list[Condition], where: str) -> Table:
    return Table(
        "condition-1",
        "How far the setting is from what Theorem 1 assumes",
        f"003 Condition 1 with C = 1 and delta = 0.1, {where}. The theorem speaks of settings in "
        "which every line holds.",
        COLUMNS,
        table_rows(found),
    )
