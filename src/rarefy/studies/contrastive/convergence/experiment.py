"""What Theorem 3.1 says of converged networks, over temperature and number of features (000)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, NotNegative, Positive
from rarefy.measure.alignment import projections
from rarefy.measure.contrastive_data import loss_floor
from rarefy.measure.neurons import ordinary
from rarefy.studies.contrastive import setting as lab
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.sweep.batches import split_by_axis
from rarefy.theory.contrastive import coefficient_range, t3
from rarefy.train.descent import State, Tracker

TAKEN = ("energy", "energy_all", "weight", "inside", "above")
PUBLISHED_D = 9
"""Features of the paper's own experiments, where activation 0.3 and sigma 0.03 are set."""


@dataclass(frozen=True, kw_only=True)
class ConvergenceExperiment(Experiment):
    """Loss and weights in the window [T3, T4], everything scaled with d as the theorem assumes:
    tau = log^p d, m = d^C_m, presence of a feature like log log d/d (Def. 3.1), sigma^2 like
    sqrt(log d)/d (Assumption 3.3), lambda = d^-1.49 (the proof's range ends there), loss (159)."""

    axes: ClassVar[tuple[str, ...]] = ("d", "tau_power", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("d", "tau_power", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "d": (6, 9),
            "eps_min": (0.5, 1.0),
            "tau_power": (0.0, 1.0),
            "d1": 30,
            "batch": 16,
            "reads": (0.0, 1.25),
        },
        "quick": {
            "seeds": 5,
            "d": (9, 16, 32),
            "eps_min": (0.5, 1.0),
            "tau_power": (0.0, 1.0),
            "d1": 100,
            "reads": (0.0, 1.25),
        },
        "paper": {},
        "late": {"d": (9, 16, 32, 64), "tau_power": (1.0,), "reads": (0.0, 1.99)},
        "wide": {
            "d": (9, 16, 32, 64),
            "tau_power": (1.0,),
            "reads": (0.0, 1.5),
            "width_exponent": 2.0,
            "eps_min": (0.8, 0.9, 1.0),
        },
    }

    seeds: Count = 20
    """repeats of each grid point"""
    d: tuple[Annotated[int, AtLeast(4)], ...] = (9, 16, 32, 64, 128)
    """number of features, half of them (at 9: four) rare"""
    tau_power: tuple[NotNegative, ...] = (0.0, 1.0, 2.0)
    """p of tau = log^p d; the theorem has tau = polylog(d)"""
    eps_min: tuple[lab.Frequency, ...] = (0.25, 0.5, 0.75, 1.0)
    """frequency of the minority features"""
    width_exponent: Positive = 1.4464
    """C_m of m = d^C_m; 1.4464 makes the 24 neurons that 000 publishes at d = 9"""
    reads: tuple[float, ...] = (0.0, 1.25, 1.5)
    """the network is read at step d^e/eta; 0: before training. T3 has e = 1.01, T4 e = 1.99"""
    bias_scale: NotNegative = 1.0
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|"""
    d1: Count = 500
    """dimension of a token"""
    batch: Annotated[int, AtLeast(2)] = 64
    """pairs per batch"""
    lr: Positive = 0.5
    """learning rate, eta"""

    def neurons(self, d: int) -> int:
        return max(1, round(d**self.width_exponent))

    def steps(self, d: int) -> list[int]:
        """Steps of the reads."""
        return [round(d**power / self.lr) if power else 0 for power in self.reads]

    def at_d(self, d: int) -> AlignmentExperiment:
        """The setting with d features; tau, eps_min, sigma and the bias come with the cells."""
        rare = d // 2
        steps = self.steps(d)
        return AlignmentExperiment.at(
            "paper",
            majority=d - rare,
            minority=rare,
            neurons=self.neurons(d),
            d1=self.d1,
            batch=self.batch,
            activation=0.3 * _presence(d) / _presence(PUBLISHED_D),
            lr=self.lr,
            loss_form="times-tau",
            weight_decay=d**-1.49,
            steps=steps[-1],
            reads=tuple(steps),
            figure_read=steps[-1],
        )

    def sigma(self, d: int) -> float:
        return 0.03 * math.sqrt(_variance(d) / _variance(PUBLISHED_D))

    @property
    def setting(self) -> str:
        return f"m=d^{self.width_exponent:.3g}"

    def check(self) -> None:
        rising = all(a < b for a, b in zip(self.reads, self.reads[1:], strict=False))
        if len(self.reads) < 2 or self.reads[0] != 0 or not rising or self.reads[1] < 1.02:
            raise bad_value("reads", self.reads, "0, then rising exponents above 1.02, T3's")
        for d in self.d:
            self.at_d(d)

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("loss", ("read",), "mean of loss (1) over steps since T3; NaN before", "nats"),
            Output("full_loss", ("read",), "the same with the regulariser, (3)"),
            Output("floor", (), "loss of a perfect encoder: twins in a batch are alike", "nats"),
            Output("energy", by_group, "sum over i in M_j of <w_i,M_j>^2, mean over features"),
            Output("energy_all", by_group, "the same sum over all neurons"),
            Output("weight", by_group, "|<w_i,M_j>|, mean over i in M_j; NaN: all are empty"),
            Output("inside", by_group, "share of i in M_j whose weight is in the range (13)"),
            Output("above", by_group, "share of i in M_j whose weight is above it"),
            Output("members", ("group",), "size of M_j (26), mean over features"),
            Output("t1", (), "step T1 of (34); -1: not reached", "steps"),
            Output("t2", (), "step T2 of (61); -1: not reached", "steps"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads), "group": np.array(lab.GROUPS)}

    def cost(self) -> Cost:
        largest = self.at_d(max(self.d))
        return Cost(largest.bytes_per_cell(), self.steps(max(self.d))[-1])

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "d", lambda d, part: self._converged(int(d), part, context))

    def _converged(self, d: int, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        tau = math.log(d) ** np.asarray(cells.values["tau_power"])
        fixed = {"sigma": self.sigma(d), "bias_scale": self.bias_scale}
        same = {name: np.full(len(cells), value) for name, value in fixed.items()}
        cells = Cells({**cells.values, **same, "tau": tau}, cells.keys)
        experiment = self.at_d(d)
        trial = experiment.setup(cells, context)
        eps_min, majority = cells.column("eps_min", context), experiment.majority
        seen = Converged(trial, eps_min, majority, t3(d, self.lr))
        trackers: dict[str, Tracker] = {name: partial(seen.take, name) for name in TAKEN}
        trackers["loss"] = lambda state: seen.mean(seen.loss)
        trackers["full_loss"] = lambda state: seen.mean(seen.loss + seen.regulariser)
        trajectory = trial.train(context, trackers, experiment.reads, seen)
        # the cost of a cell is that of the largest d
        context.advance(len(cells) * (self.steps(max(self.d))[-1] - experiment.steps))
        found = {
            "floor": loss_floor(trial.data, trial.draws.spawn("floor"), self.batch),
            "members": seen.means(seen.member.sum(dim=1)),
            "t1": trial.bias.t1,
            "t2": trial.bias.t2,
        }
        return lab.as_arrays(found, trajectory)


def _presence(d: int) -> float:
    return math.log(math.log(d)) / d


def _variance(d: int) -> float:
    return math.sqrt(math.log(d)) / d


class Converged:
    """Sums the loss since T3, and takes the quantities of (13) and (89) over the paper's sets."""

    def __init__(self, trial: lab.Trial, eps_min: Tensor, majority: int, start: float) -> None:
        self.trial, self.majority, self.start = trial, majority, start
        self.member = ordinary(projections(trial.weights, trial.data.dictionary), eps_min)
        eps, tau = trial.data.eps[:, None, :], trial.problem.tau[:, None, None]
        _, m, d = self.member.shape
        # eps_max = 1
        self.low, self.high = coefficient_range(eps, tau, m, d, eps_min[:, None, None])
        self.loss, self.regulariser = torch.zeros_like(eps_min), torch.zeros_like(eps_min)
        self.count = 0

    def __call__(self, state: State) -> None:
        if state.step > self.start:
            squared = state.parameters["weights"].square().sum(dim=(1, 2))
            decay = self.trial.experiment.weight_decay
            self.regulariser = self.regulariser + decay / 2 * squared
            self.loss = self.loss + state.loss / self.trial.problem.factor
            self.count += 1

    def mean(self, total: Tensor) -> Tensor:
        return total / self.count if self.count else total * torch.nan

    def means(self, by_feature: Tensor) -> Tensor:
        return lab.group_means(by_feature.to(self.loss.dtype), self.majority)

    def take(self, name: str, state: State) -> Tensor:
        along = projections(state.parameters["weights"], self.trial.data.dictionary).abs()
        if name == "energy_all":
            return self.means(along.square().sum(dim=1))
        if name == "energy":
            return self.means((along.square() * self.member).sum(dim=1))
        above = along > self.high
        value = {"weight": along, "inside": (along >= self.low) & ~above, "above": above}[name]
        # over all pairs of a group together: a feature without a neuron has no mean of its own
        number = self.means(self.member.sum(dim=1))
        return self.means((value * self.member).sum(dim=1)) / number
