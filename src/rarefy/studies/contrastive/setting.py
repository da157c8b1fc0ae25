"""What the studies of 000 and 001 share: the setting, and how a batch of it is trained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import (
    Companions,
    SparseCoding,
    check_sparse_coding,
    dictionary,
    frequencies,
)
from rarefy.nets.brelu_transformer import Attention
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.contrastive import (
    TRAINED_ATTENTION,
    Contrastive,
    identity_attention,
    initial_weights,
)
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.neuron_pruning import NeuronPruning
from rarefy.train.optimisers import Sgd

LOSS_FORMS = ("plain", "times-tau")
GROUPS = ("majority", "minority")


@dataclass(frozen=True, kw_only=True)
class ContrastiveExperiment(Experiment):
    """The setting but for the features; 000 publishes d1 = 500 and 24 neurons, the rest is our
    choice, examined by the study ``contrast-sensitivity``."""

    lab: ClassVar[str] = "contrastive"

    d1: int = 500
    neurons: int = 24
    tokens: int = 2
    spread: str = "all"
    """tokens that show a present feature: all, one, or a random subset"""
    activation: float = 0.3
    """probability that a feature with eps = 1 is present in a sample"""
    batch: int = 64
    lr: float = 0.5
    tau: float = 1.0
    loss_form: str = "plain"
    """plain: loss (1); times-tau: tau times it, the form of (159) whose gradient is (21)"""
    weight_decay: float = 1e-3
    sigma_0: float = 1e-3
    """std of the initial weights: small, so that the logits are flat in stage 1"""
    attention_scale: float = 1.0
    bias_until: str = "T2"
    """when the bias stops growing faster than the norm: T2 or end"""
    steps: int = 400

    @property
    @abstractmethod
    def d(self) -> int:
        """Number of features."""

    @property
    def setting(self) -> str:
        return f"d={self.d} m={self.neurons}"

    def check(self) -> None:
        super().check()
        for name in ("neurons", "steps"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        if self.batch < 2:
            raise bad_value("batch", self.batch, "must be at least 2: one sample has no negatives")
        if self.d > self.d1:
            least = f"must be at least the number of features, {self.d}"
            raise bad_value("d1", self.d1, least)
        if not 0 <= self.attention_scale < float("inf"):
            raise bad_value("attention_scale", self.attention_scale, "must be finite, at least 0")
        for name in ("lr", "tau", "sigma_0"):
            if not 0 < getattr(self, name) < float("inf"):
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        if not 0 <= self.weight_decay < 1 / self.lr:
            raise bad_value(
                "weight_decay",
                self.weight_decay,
                f"must be at least 0 and below 1/lr={1 / self.lr:g}, or it would flip weights",
            )
        if self.loss_form not in LOSS_FORMS:
            raise bad_value("loss_form", self.loss_form, f"must be one of {', '.join(LOSS_FORMS)}")
        if self.bias_until not in ("T2", "end"):
            raise bad_value("bias_until", self.bias_until, "must be one of T2, end")
        for value in as_tuple(getattr(self, "bias_scale", (0.0,))):
            if not 0 <= value < float("inf"):
                raise bad_value("bias_scale", value, "must be finite and at least 0")
        sigma = [float(v) for v in as_tuple(getattr(self, "sigma", (0.0,)))]
        check_sparse_coding([1.0], sigma, self.activation, self.tokens, self.spread)

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=self.bytes_per_cell(), steps_per_cell=self.steps)

    def bytes_per_cell(self) -> int:
        numbers = 2 * self.batch * self.tokens * self.d1
        size = (
            3 * numbers + 8 * self.neurons * self.d1 + 6 * self.batch * (self.batch + self.neurons)
        )
        return 8 * size

    def setup(
        self,
        cells: Cells,
        context: Context,
        *,
        eps: Tensor,
        sigma: Tensor,
        bias_scale: Tensor,
        pruning: NeuronPruning | None = None,
        companions: Companions | None = None,
        train_attention: bool = False,
    ) -> Trial:
        """Draw dictionary and initial weights of every run; eps: (run, d), the rest (run,)."""
        draws = cells.draws(context)
        atoms = dictionary(draws, self.d1, self.d)
        data = SparseCoding(
            atoms, eps, sigma, self.activation, self.tokens, self.spread, companions
        )
        one = torch.ones_like(sigma)
        weights = initial_weights(draws, self.neurons, self.d1, self.sigma_0 * one)
        bias = BiasSchedule(atoms, weights, self.lr * one, bias_scale, self.bias_until)
        factor = self.tau if self.loss_form == "times-tau" else 1.0
        problem = Contrastive(
            self.tau * one,
            factor * one,
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

    majority: int = 5
    """features with eps = 1"""
    minority: int = 4
    """features with eps = eps_min"""

    @property
    def d(self) -> int:
        return self.majority + self.minority

    def check(self) -> None:
        if self.majority < 1:
            raise bad_value("majority", self.majority, "must be at least 1")
        if self.minority < 1:
            raise bad_value("minority", self.minority, "must be at least 1: no feature is rare")
        super().check()
        for value in as_tuple(getattr(self, "eps_min", (1.0,))):
            if not 0 < value <= 1:
                raise bad_value("eps_min", value, "a feature frequency must be in (0, 1]")

    def eps(self, eps_min: Tensor) -> Tensor:
        """Frequencies of all features, majority first: (run, d)."""
        return frequencies(self.majority, self.minority, eps_min)


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train."""

    study: ContrastiveExperiment
    draws: Draws
    data: SparseCoding
    problem: Contrastive
    bias: BiasSchedule
    parameters: dict[str, Tensor]
    pruning: NeuronPruning | None = None

    @property
    def weights(self) -> Tensor:
        """The initial weights, (run, m, d1)."""
        return self.parameters["weights"]

    def train(
        self,
        context: Context,
        trackers: Mapping[str, Tracker],
        record: Sequence[int],
        watch: Callable[[State], None] | None = None,
    ) -> Trajectory:
        """Mini-batch SGD with fresh pairs every step; ``watch`` sees every state after the bias
        has moved."""

        def after_update(state: State) -> None:
            trained = None if self.pruning is None else self.pruning.trained
            self.bias.after_update(state.parameters["weights"], state.step, trained)
            if watch is not None:
                watch(state)

        return descend(
            self.problem,
            self.parameters,
            lambda step: self.data.sample(self.draws, self.study.batch, step),
            # attention starts at the identity: decay would pull it away from there by itself
            Sgd(
                self.study.lr,
                weight_decay=self.study.weight_decay,
                undecayed=TRAINED_ATTENTION,
            ),
            self.study.steps,
            trackers=trackers,
            record=record,
            after_update=after_update,
            pruning=self.pruning,
            context=context,
        )


def group_means(values: Tensor, majority: int) -> Tensor:
    """Mean over the features of each group, majority then minority: (..., d) to (..., 2)."""
    values = values.to(torch.get_default_dtype()) if not values.is_floating_point() else values
    return torch.stack(
        [values[..., :majority].mean(dim=-1), values[..., majority:].mean(dim=-1)], dim=-1
    )


def as_tuple(value: object) -> tuple[float, ...]:
    return tuple(value) if isinstance(value, Sequence) else (value,)  # type: ignore[return-value]
