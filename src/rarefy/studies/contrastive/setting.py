"""What the studies of 000 and 001 share: the setting, and how a batch of it is trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.parameters import (
    AtLeast,
    Count,
    InRange,
    NotNegative,
    OneOf,
    Positive,
    PositiveShare,
    Rule,
)
from rarefy.core.rng import Draws
from rarefy.data.finite_set import FiniteSets
from rarefy.data.sparse_coding import (
    SPREADS,
    Companions,
    Pairs,
    SparseCoding,
    dictionary,
    frequencies,
)
from rarefy.nets.brelu_transformer import Attention
from rarefy.theory.contrastive import uniform_attention_moment
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.contrastive import (
    TRAINED_ATTENTION,
    Contrastive,
    identity_attention,
    initial_weights,
)
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.neuron_pruning import NeuronPruning, check_alpha
from rarefy.train.optimisers import Sgd

GROUPS = ("majority", "minority")

TINY: dict[str, Any] = {"seeds": 3, "d1": 60, "batch": 32, "steps": 40}
TINY_FIGURE: dict[str, Any] = {**TINY, "reads": (0, 20, 40), "figure_read": 40}
LARGE: dict[str, Any] = {
    "majority": 32,
    "minority": 32,
    "d1": 1024,
    "neurons": 2048,
    "batch": 256,
    "activation": 0.04,
}
"""What the scales of several studies share."""

Frequency = Annotated[float, Rule("a feature frequency must be in (0, 1]", lambda v: 0 < v <= 1)]
LeftOut = Annotated[
    float, Rule("the share of neurons left out must be in [0, 1)", lambda v: 0 <= v < 1)
]


@dataclass(frozen=True, kw_only=True)
class ContrastiveExperiment(Experiment):
    """The setting but for the features; 000 publishes d1 = 500 and 24 neurons, the rest is our
    choice, examined by the study ``contrast-sensitivity``. An experiment adds ``sigma``, the noise
    std, and ``bias_scale``, each an axis or one number."""

    batch_on_cpu: ClassVar[int | None] = 64

    d1: Count = 500
    """dimension of a token"""
    neurons: Count = 24
    """m, the width of the network"""
    tokens: Annotated[int, InRange(1, 30)] = 2
    """tokens per view"""
    spread: Annotated[str, OneOf(SPREADS)] = "all"
    """tokens that show a present feature: all, one, or a random subset"""
    activation: PositiveShare = 0.3
    """probability that a feature with eps = 1 is present in a sample"""
    batch: Annotated[int, AtLeast(2)] = 64
    """pairs per batch; one sample would have no negatives"""
    lr: Positive = 0.5
    """learning rate, eta"""
    tau: Positive = 1.0
    """temperature"""
    loss_form: Annotated[str, OneOf(("plain", "times-tau"))] = "plain"
    """plain: loss (1); times-tau: tau times it, the form of (159) whose gradient is (21)"""
    weight_decay: float = 1e-3
    """lambda; at least 0 and below 1/lr"""
    sigma_0: Positive = 1e-3
    """std of the initial weights: small, so that the logits are flat in stage 1"""
    attention_scale: NotNegative = 1.0
    """factor of the attention's logits; 0: the plain mean over tokens"""
    bias_until: Annotated[str, OneOf(("T2", "end"))] = "T2"
    """when the bias stops growing faster than the norm: T2 or end"""
    steps: Count = 400
    """training steps"""

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of features."""

    @property
    def setting(self) -> str:
        return f"d={self.d} m={self.neurons}"

    @property
    def loss_factor(self) -> float:
        """What the loss (1) is multiplied by."""
        return self.tau if self.loss_form == "times-tau" else 1.0

    @property
    def growth_constant(self) -> float:
        """C_z log log d / d: stage-1 growth per step at eps = 1 over the learning rate. When a
        feature shows on all tokens attention does not matter for it: the closed form is exact."""
        moment = uniform_attention_moment(1.0, self.activation, self.tokens, self.spread)
        return (1 - 1 / self.batch) * moment * self.loss_factor / self.tau

    def check(self) -> None:
        if self.d > self.d1:
            raise bad_value("d1", self.d1, f"must be at least the number of features, {self.d}")
        if not 0 <= self.weight_decay < 1 / self.lr:
            least = f"must be at least 0 and below 1/lr={1 / self.lr:g}, or it would flip weights"
            raise bad_value("weight_decay", self.weight_decay, least)

    @abstractmethod
    def eps(self, cells: Cells, context: Context) -> Tensor:
        """Frequencies of all features, the frequent ones first: (run, d)."""

    def value(self, name: str, cells: Cells, context: Context) -> Tensor:
        """A parameter, (run,): the cells' own where it is an axis, else the same for all."""
        if name in cells.values:
            return cells.column(name, context)
        value = getattr(self, name)
        return torch.full((len(cells),), value, dtype=context.dtype, device=context.device)

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=self.bytes_per_cell(), steps_per_cell=self.steps)

    def bytes_per_cell(self) -> int:
        data, weights = 2 * self.batch * self.tokens * self.d1, self.neurons * self.d1
        return 8 * (3 * data + 8 * weights + 6 * self.batch * (self.batch + self.neurons))

    def setup(
        self,
        cells: Cells,
        context: Context,
        *,
        pruning: NeuronPruning | None = None,
        companions: Companions | None = None,
        train_attention: bool = False,
    ) -> Trial:
        """Draw dictionary and initial weights of every run."""
        draws, sigma = cells.draws(context), self.value("sigma", cells, context)
        atoms = dictionary(draws, self.d1, self.d)
        eps, shown = self.eps(cells, context), (self.activation, self.tokens, self.spread)
        data = SparseCoding(atoms, eps, sigma, *shown, companions)
        one, tau = torch.ones_like(sigma), self.value("tau", cells, context)
        weights = initial_weights(draws, self.neurons, self.d1, self.sigma_0 * one)
        bias_scale = self.value("bias_scale", cells, context)
        bias = BiasSchedule(atoms, weights, self.lr * one, bias_scale, self.bias_until)
        problem = Contrastive(
            tau,
            tau if self.loss_form == "times-tau" else one,
            bias,
            Attention(scale=self.attention_scale),
            compile_kernels=context.compiled,
            pruning=pruning,
        )
        parameters = {"weights": weights}
        if train_attention:
            parameters |= identity_attention(len(cells), self.d1, weights)
        return Trial(self, draws, data, problem, bias, parameters, pruning)


@dataclass(frozen=True, kw_only=True)
class ImbalancedExperiment(ContrastiveExperiment):
    """Features of two frequencies; 000 publishes 5 + 4."""

    majority: Count = 5
    """features with eps = 1"""
    minority: Count = 4
    """features with eps = eps_min"""

    @property
    def d(self) -> int:
        return self.majority + self.minority

    def eps(self, cells: Cells, context: Context) -> Tensor:
        return frequencies(self.majority, self.minority, self.value("eps_min", cells, context))

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"group": np.array(GROUPS)}


@dataclass(frozen=True, kw_only=True)
class FigureExperiment(ImbalancedExperiment):
    """Networks with and without a bias, read at several steps, one of which the figures show."""

    eps_min: tuple[Frequency, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
    """frequency of the minority features in training"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|; 0: no bias"""
    reads: tuple[int, ...] = (25, 100, 158, 400)
    """steps after which the network is read; 158 is T4 = d^1.99/eta at d = 9"""
    figure_read: int = 100
    """step at which the figures are read"""

    def check(self) -> None:
        super().check()
        check_reads(self.reads, self.steps)
        if self.figure_read not in self.reads:
            raise bad_value("figure_read", self.figure_read, f"must be one of reads={self.reads}")

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads), **super().coordinates()}


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train."""

    experiment: ContrastiveExperiment
    draws: Draws
    data: SparseCoding
    problem: Contrastive
    bias: BiasSchedule
    parameters: dict[str, Tensor]
    pruning: NeuronPruning | None = None
    samples: FiniteSets | None = None
    """where batches come from; none: fresh pairs every step"""

    @property
    def weights(self) -> Tensor:
        """The initial weights, (run, m, d1)."""
        return self.parameters["weights"]

    def batch(self, step: int) -> Pairs:
        """The pairs of a step."""
        return (self.samples or self.data).sample(self.draws, self.experiment.batch, step)

    def train(
        self,
        context: Context,
        trackers: Mapping[str, Tracker],
        record: Sequence[int],
        watch: Callable[[State], None] | None = None,
    ) -> Trajectory:
        """Mini-batch SGD; ``watch`` sees every state after the bias has moved."""

        def after_update(state: State) -> None:
            trained = None if self.pruning is None else self.pruning.trained
            self.bias.after_update(state.parameters["weights"], state.step, trained)
            if watch is not None:
                watch(state)

        of = self.experiment
        # attention starts at the identity: decay would pull it away from there by itself
        sgd = Sgd(of.lr, weight_decay=of.weight_decay, undecayed=TRAINED_ATTENTION)
        return descend(
            self.problem,
            self.parameters,
            self.batch,
            sgd,
            of.steps,
            trackers=trackers,
            record=record,
            after_update=after_update,
            pruning=self.pruning,
            context=context,
        )


def group_means(values: Tensor, majority: int) -> Tensor:
    """Mean over the features of each group, majority then minority: (..., d) to (..., 2)."""
    values = values.to(torch.get_default_dtype()) if not values.is_floating_point() else values
    parts = (values[..., :majority], values[..., majority:])
    return torch.stack([part.mean(dim=-1) for part in parts], dim=-1)


def as_arrays(found: Mapping[str, Tensor], trajectory: Trajectory) -> dict[str, np.ndarray]:
    """What a training recorded and what was found besides, as the outputs of its runs."""
    every = {**trajectory.records, **found, "nonfinite_step": trajectory.nonfinite_step}
    return {name: value.cpu().numpy() for name, value in every.items()}


def check_reads(reads: Sequence[int], steps: int) -> None:
    """Steps at which something is read: records come in order of time."""
    rising = all(a < b for a, b in pairwise(reads))
    if not reads or not rising or reads[0] < 0 or reads[-1] > steps:
        raise bad_value("reads", reads, f"rising steps between 0 and steps={steps}")


def check_alphas(alphas: Sequence[float], neurons: int) -> None:
    """Shares of pruned neurons, with the unpruned run that the others are compared with."""
    for value in alphas:
        check_alpha(value, neurons)
    if 0.0 not in alphas or len(alphas) < 2:
        raise bad_value("alpha", alphas, "needs 0 (not pruned) and a value above it")


def check_starts(starts: Sequence[int], steps: int) -> None:
    for first in starts:
        if not 0 <= first < steps:
            raise bad_value("start", first, f"pruning must start at a step in 0..{steps - 1}")
