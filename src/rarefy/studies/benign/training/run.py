"""One training of ``benign-training``, watched in every step."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.measure.noise_neurons import ResidualMemory, log_imbalance
from rarefy.measure.statistics import OMEGA
from rarefy.measure.training_stages import losses
from rarefy.studies.benign.trial import Trial
from rarefy.theory.benign import target_length
from rarefy.train.descent import State
from rarefy.train.fitting import StopAtLoss
from rarefy.train.forms import train_unpruned


@dataclass
class Watch:
    """A tracker of odds, (run, n), that also notes T_0, the first step whose training loss is at
    most a quarter of log K, and the distance |W(T_0) - W*|_F of Lemma 2."""

    memory: ResidualMemory
    target: Tensor
    """w*_j, (run, classes, d), the same for all filters of a class"""
    level: float
    start: Tensor = field(init=False)
    distance: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.start = torch.full_like(self.memory.rate, -1, dtype=torch.int64)
        self.distance = torch.full_like(self.memory.rate, torch.nan)

    def __call__(self, state: State) -> Tensor:
        odds = self.memory(state)
        arrived = (losses(odds).mean(dim=1) <= self.level) & (self.start < 0)
        if bool(arrived.any()):
            away = state.parameters["filters"] - self.target[:, :, None]
            norm = torch.linalg.vector_norm(away.flatten(1), dim=1)
            self.distance = torch.where(arrived, norm, self.distance)
            self.start = torch.where(arrived, state.step, self.start)
        return odds


@dataclass(frozen=True)
class Watched:
    """odds: (run, step, n); filters after the last update; updates: how many a
    run made, (run,); stored: eta b(S_k) of (8), (run, classes); start, distance: of Lemma 2."""

    odds: Tensor
    filters: Tensor
    updates: Tensor
    stored: Tensor
    start: Tensor
    distance: Tensor
    nonfinite_step: Tensor

    def loss(self) -> Tensor:
        """Training loss: (run, step)."""
        return losses(self.odds).mean(dim=2)

    def log_kappa(self) -> Tensor:
        """log10 of the largest over the smallest residual (Lemma 7): (run, step)."""
        return log_imbalance(self.odds) / math.log(10)


def watched(
    experiment: Trial,
    context: Context,
    lr: Tensor,
    steps: int,
    *,
    stop_loss: float = 0.0,
    epsilon: float,
    work: float = 1.0,
) -> Watched:
    """Train with one rate per run, (run,). ``work``: what a step counts for in the progress."""
    samples, initial = experiment.samples, experiment.initial
    classes, m = initial.shape[1:3]
    # W* of (70) has no meaning without features: their length is then infinite
    norm = samples.strength.detach().cpu().double().numpy()
    length = torch.as_tensor(target_length(classes, epsilon, norm, m, experiment.scale))
    target = samples.features * length.to(initial)[:, :, None]
    rate = lr.clone()
    memory = ResidualMemory(samples, experiment.scale, rate, steps, context.compiled)
    watch = Watch(memory, target, OMEGA * math.log(classes))
    stopping = StopAtLoss(rate, stop_loss)
    counted = dataclasses.replace(context, advance=lambda done: context.advance(work * done))
    trajectory = train_unpruned(
        samples,
        initial,
        experiment.scale,
        rate,
        steps,
        counted,
        form=experiment.form,
        trackers={"odds": watch},
        record=range(steps + 1),
        after_update=stopping if stop_loss > 0 else None,
        precision=experiment.precision,
    )
    made = torch.where(stopping.stopped_at < 0, steps, stopping.stopped_at)
    # what is measured of a lost run is thrown away, but singular values must exist
    alive = (trajectory.nonfinite_step < 0)[:, None, None, None]
    return Watched(
        trajectory.records["odds"],
        torch.where(alive, trajectory.parameters["filters"], initial),
        made,
        memory.stored(),
        watch.start,
        watch.distance,
        trajectory.nonfinite_step,
    )
