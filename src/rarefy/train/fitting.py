"""Training a batch of unpruned networks until each one's training loss is small.

Runs need very different numbers of steps. The batch is trained in blocks, and after each block the
runs that have stopped are left out; a run's numbers do not depend on who trains beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.data.patches import PatchSamples
from rarefy.train.descent import State, descend
from rarefy.train.forms import by_responses, products
from rarefy.train.gram_classifier import GramClassifier, Unfolded, start_of
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

BLOCK = 50
"""Steps of a block: a run goes on idly for half of them on average once it has stopped."""


@dataclass
class StopAtLoss:
    """Sets a run's rate to zero once its loss was at or below ``level``: the run stands still.

    ``stopped_at``: (run,), updates made by then, -1 while a run is moving.
    """

    lr: Tensor
    level: float
    stopped_at: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.stopped_at = torch.full_like(self.lr, -1, dtype=torch.int64)

    def __call__(self, state: State) -> None:
        done = state.loss <= self.level
        self.stopped_at = torch.where(done & (self.stopped_at < 0), state.step, self.stopped_at)
        self.lr.masked_fill_(done, 0.0)


@dataclass(frozen=True)
class FitResult:
    """parameters: at least ``filters``, (run, classes, m, d), computed when asked for; of each run:
    ``stopped_at``, updates until its stopping loss was seen (-1: it was not), and
    ``nonfinite_step`` (-1: it stayed finite)."""

    parameters: dict[str, Tensor]
    stopped_at: Tensor
    nonfinite_step: Tensor

    @property
    def filters(self) -> Tensor:
        return self.parameters["filters"]

    def known(self, values: Tensor) -> Tensor:
        """``values``, (run, ...), NaN for runs that did not stay finite."""
        lost = (self.nonfinite_step >= 0).reshape(-1, *(1,) * (values.dim() - 1))
        return values.masked_fill(lost, torch.nan)


def fit(
    samples: PatchSamples,
    initial: Tensor,
    output_scale: float,
    lr: Tensor,
    steps: int,
    stop_loss: float,
    context: Context,
    form: str = "auto",
    precision: str | None = None,
) -> FitResult:
    """At most ``steps`` updates at rates ``lr``, (run,), of each run until its training loss is at
    most ``stop_loss`` (0: never). ``form`` and ``precision`` as in ``train_unpruned``."""
    runs = len(initial)
    dual = by_responses(form, samples)
    kind = GramClassifier if dual else PatchClassifier
    problem = kind.of(samples, output_scale, context.compiled)
    state = start_of(initial, samples) if dual else {"filters": initial.clone()}
    stopped = torch.full((runs,), -1, dtype=torch.int64, device=initial.device)
    lost = stopped.clone()
    moving = torch.arange(runs, device=initial.device)
    done = 0
    while done < steps and len(moving):
        block = min(BLOCK, steps - done) if stop_loss > 0 else steps - done
        whole = len(moving) == runs
        here = state if whole else {name: value[moving] for name, value in state.items()}
        stopping = StopAtLoss(lr[moving], stop_loss)
        with products(precision, context):
            trajectory = descend(
                problem if whole else _rows(problem, moving),
                here,
                lambda step: None,
                Sgd(stopping.lr),
                block,
                trackers={},
                after_update=stopping if stop_loss > 0 else None,
                context=context,
                guard="loss",
            )
        at, gone = stopping.stopped_at, trajectory.nonfinite_step
        if whole:
            state = dict(trajectory.parameters)
        else:
            for name, value in trajectory.parameters.items():
                state[name][moving] = value
        stopped[moving] = torch.where(at >= 0, at + done, at)
        lost[moving] = torch.where(gone >= 0, gone + done, gone)
        context.advance(block * (runs - len(moving)))
        moving = moving[(at < 0) & (gone < 0)]
        done += block
    context.advance(runs * (steps - done))
    return FitResult(Unfolded(state, initial, samples) if dual else state, stopped, lost)


def _rows(
    problem: GramClassifier | PatchClassifier, rows: Tensor
) -> GramClassifier | PatchClassifier:
    """The problem of some runs; what all runs share stays shared."""

    def some(values: Tensor) -> Tensor:
        return values if len(values) == 1 else values[rows]

    scales, one_hot = some(problem.scales), some(problem.one_hot)
    if isinstance(problem, GramClassifier):
        return replace(problem, gram=some(problem.gram), scales=scales, one_hot=one_hot)
    return replace(problem, patches=some(problem.patches), scales=scales, one_hot=one_hot)
