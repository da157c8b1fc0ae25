"""A contrastive problem small enough to check by hand, and its formulas written out in loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import SparseCoding, dictionary
from rarefy.nets.brelu_transformer import Attention
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.contrastive import Contrastive, initial_weights


@dataclass(frozen=True)
class Small:
    draws: Draws
    data: SparseCoding
    problem: Contrastive
    weights: Tensor

    @property
    def parameters(self) -> dict[str, Tensor]:
        return {"weights": self.weights}


def small(
    *,
    name: str = "small",
    runs: int = 2,
    first: int = 0,
    d1: int = 6,
    neurons: int = 4,
    eps: tuple[float, ...] = (1.0, 0.5, 0.25),
    sigma: float = 0.3,
    activation: float = 0.6,
    tokens: int = 2,
    spread: str = "one",
    sigma_0: float = 0.5,
    bias: float = 0.0,
    tau: float = 1.0,
    factor: float = 1.0,
    attention: Attention | None = None,
    dtype: torch.dtype = torch.float64,
) -> Small:
    """``bias`` is the same for all neurons but for a slope, so that each has its own. ``first`` is
    the number of the first run: run 3 of a batch alone is ``runs=1, first=3``."""
    draws = Draws([key(name, run) for run in range(first, first + runs)], dtype=dtype)
    one = torch.ones(runs, dtype=dtype)
    atoms = dictionary(draws, d1, len(eps))
    frequency = torch.tensor(eps, dtype=dtype).expand(runs, -1)
    data = SparseCoding(atoms, frequency, sigma * one, activation, tokens, spread)
    weights = initial_weights(draws, neurons, d1, sigma_0 * one)
    schedule = BiasSchedule(atoms, weights, 0.1 * one, one)
    slope = torch.linspace(0.5, 1.5, neurons, dtype=dtype)
    schedule.value = bias * slope.expand(runs, -1).clone()
    problem = Contrastive(tau * one, factor * one, schedule, attention or Attention())
    return Small(draws, data, problem, weights)


def random_attention(d1: int, runs: int | None = None, seed: int = 0, **options: Any) -> Attention:
    """Random W_Q, W_K, W_V: one for all runs, or one each."""
    generator = torch.Generator().manual_seed(seed)
    shape = (d1, d1) if runs is None else (runs, d1, d1)
    query, key_, value = (
        torch.randn(shape, generator=generator, dtype=torch.float64) / math.sqrt(d1)
        for _ in range(3)
    )
    return Attention(query, key_, value, **options)


def naive_mixed_tokens(tokens: Tensor, attention: Attention, run: int) -> Tensor:
    """z^(r) = sum_s softmax_s(<Q x_r, K x_s>) V x_s for one sample (token, d1), in loops."""

    def matrix(given: Tensor | None) -> Tensor:
        if given is None:
            return torch.eye(tokens.shape[1], dtype=tokens.dtype)
        return given if given.dim() == 2 else given[run]

    q, k, v = matrix(attention.query), matrix(attention.key), matrix(attention.value)
    mixed = []
    for r in range(len(tokens)):
        scores = [attention.scale * float((q @ tokens[r]) @ (k @ x)) for x in tokens]
        total = sum(math.exp(score) for score in scores)
        parts = [math.exp(score) / total * (v @ x) for score, x in zip(scores, tokens, strict=True)]
        mixed.append(torch.stack(parts).sum(dim=0))
    return torch.stack(mixed)


def naive_brelu(s: float, b: float) -> float:
    return s - b if s > b else s + b if s < -b else 0.0


def naive_formula_5(
    weights: Tensor,
    bias: Tensor,
    x: Tensor,
    y: Tensor,
    tau: float,
    kept: Sequence[bool],
    attention: Attention,
    run: int = 0,
) -> Tensor:
    """000 eq. (5) of one run, in loops: weights (m, d1), bias (m,), samples x and y (K, L, d1).

    The softmax weights are those of the neurons in ``kept``; h_i(Y_k), h_i(X_ks) and the gradient
    of h_i(X_k) know no mask. With every neuron kept this is (21).
    """
    z_x = [naive_mixed_tokens(tokens, attention, run) for tokens in x]
    z_y = [naive_mixed_tokens(tokens, attention, run) for tokens in y]

    def h(i: int, mixed: Tensor) -> float:
        return sum(naive_brelu(float(weights[i] @ z), float(bias[i])) for z in mixed)

    neurons = range(len(weights))
    h_x = [[h(i, z) for i in neurons] for z in z_x]
    h_y = [[h(i, z) for i in neurons] for z in z_y]
    samples = range(len(x))
    gradient = torch.zeros_like(weights)
    for k in samples:
        # f of the masked network has a zero in the place of every neuron left out
        similarity = [sum(h_x[k][i] * h_y[s][i] for i in neurons if kept[i]) for s in samples]
        largest = max(similarity)
        exponential = [math.exp((value - largest) / tau) for value in similarity]
        logit = [value / sum(exponential) for value in exponential]
        for i in neurons:
            slope = torch.zeros_like(weights[i])  # gradient of h_i(X_k) in w_i
            for z in z_x[k]:
                if abs(float(weights[i] @ z)) >= float(bias[i]):
                    slope += z
            gradient[i] += (logit[k] - 1) * h_y[k][i] * slope
            for s in samples:
                if s != k:  # the partners of the other samples are the negatives
                    gradient[i] += logit[s] * h_y[s][i] * slope
    return gradient / len(x)


def population_gradient(
    problem: Contrastive,
    parameters: dict[str, Tensor],
    data: SparseCoding,
    draws: Draws,
    samples: int,
    batches: int,
) -> tuple[Tensor, Tensor]:
    """Gradient (22) by Monte Carlo over ``batches`` fresh batches, and its standard error."""
    total = torch.zeros_like(parameters["weights"], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for index in range(batches):
        batch = data.sample(draws, samples, step=index)
        gradient = problem.gradients(parameters, batch)[1]["weights"].to(torch.float64)
        total += gradient
        squares += gradient**2
    mean = total / batches
    variance = (squares / batches - mean**2).clamp(min=0) * batches / max(batches - 1, 1)
    return mean, (variance / batches).sqrt()
