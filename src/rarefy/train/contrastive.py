"""The contrastive problem of 000 and 001 on the run axis, and its gradient written by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
from torch import Tensor

from rarefy.core.compilation import compiled
from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import FreshPairs, Pairs
from rarefy.nets.brelu_transformer import (
    Attention,
    brelu,
    brelu_derivative,
    encode,
    mix_tokens,
    project,
)
from rarefy.train.bias_schedule import BiasSchedule
from rarefy.train.descent import automatic_gradients
from rarefy.train.losses import info_nce, info_nce_gradient

TRAINED_ATTENTION = ("query", "key")


class NeuronMask(Protocol):
    """Whatever says which neurons take part."""

    @property
    def kept(self) -> Tensor:
        """(run, m), true for those that do."""
        ...


@dataclass(frozen=True)
class FixedMask:
    """The same neurons at every step."""

    kept: Tensor


@dataclass(frozen=True)
class Contrastive:
    """Loss (3) without its regulariser, which the optimiser applies as weight decay.

    The one parameter is ``weights``, (run, m, d1); the bias is moved by its schedule, not by
    gradients. ``query`` and ``key``, (run, d1, d1), are parameters too where attention is trained;
    their gradient is autograd's. ``tau`` and ``factor``: (run,). With ``pruning`` the logits are
    those of the neurons it keeps, and the gradient is (5).

    Arguments:
        tau, factor: (run,), temperature, and the factor in front of the logarithm.
        bias: of the neurons, moved by its own rule.
        attention: over the tokens; none if not given.
        compile_kernels: whether the gradient is compiled.
        pruning: which neurons take part, such as ``NeuronPruning``.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> atoms = rarefy.lab.dictionary(draws, d1=100, d=9)
        >>> eps = rarefy.lab.frequencies(5, 4, draws.per_run(0.3))
        >>> data = rarefy.lab.SparseCoding(atoms, eps, sigma=draws.per_run(0.03))
        >>> weights = rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3))
        >>> bias = rarefy.lab.BiasSchedule(atoms, weights, draws.per_run(0.5), draws.per_run(1.0))
        >>> learner = rarefy.lab.Contrastive(draws.per_run(1.0), draws.per_run(1.0), bias)
        >>> learner.loss({"weights": weights}, data.sample(draws, 64, step=0)).shape
        torch.Size([3])
    """

    tau: Tensor
    factor: Tensor
    bias: BiasSchedule
    attention: Attention = field(default_factory=Attention)
    compile_kernels: bool = False
    pruning: NeuronMask | None = None

    def attention_of(self, parameters: dict[str, Tensor]) -> Attention:
        """The attention in force: the fixed one, or the one being trained."""
        if "query" not in parameters:
            return self.attention
        return replace(self.attention, query=parameters["query"], key=parameters["key"])

    @property
    def kept(self) -> Tensor | None:
        return None if self.pruning is None else self.pruning.kept

    def embed(self, parameters: dict[str, Tensor], tokens: Tensor) -> Tensor:
        """f(X), all neurons: (run, sample, m) for tokens (run, sample, token, d1)."""
        attention = self.attention_of(parameters)
        return encode(parameters["weights"], self.bias.value, tokens, attention)

    def loss(self, parameters: dict[str, Tensor], batch: Pairs) -> Tensor:
        """(run,); differentiable."""
        f_x, f_y = self.embed(parameters, batch.x), self.embed(parameters, batch.y)
        return info_nce(f_x, f_y, self.tau, self.factor, self.kept)

    def gradients(
        self, parameters: dict[str, Tensor], batch: Pairs
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss and gradient (21), times factor/tau; nothing is recorded for autograd."""
        if len(parameters) > 1:
            return automatic_gradients(self, parameters, batch)
        weights, given = parameters["weights"], (self.tau, self.factor, self.attention, self.kept)
        shown = None
        if self.compile_kernels and self.attention.plain and isinstance(batch, FreshPairs):
            shown = batch.shown_to(weights)
        if shown is not None:
            raw, products, values = shown
            loss, d_raw = compiled(_backwards_of)(self.bias.value, raw, products, *given)
            return loss, {"weights": _combined(d_raw, values)}
        function = compiled(_gradient) if self.compile_kernels else _gradient
        loss, gradient = function(weights, self.bias.value, batch.tokens, *given)
        return loss, {"weights": gradient}


def _gradient(
    weights: Tensor,
    bias: Tensor,
    tokens: Tensor,
    tau: Tensor,
    factor: Tensor,
    attention: Attention,
    kept: Tensor | None,
) -> tuple[Tensor, Tensor]:
    runs, _, samples, length, d1 = tokens.shape
    both = tokens.reshape(runs, 2 * samples, length, d1)
    mixing, values = attention.weights(both), attention.values(both)
    loss, d_raw = _backwards(project(weights, values), mixing, bias, tau, factor, kept)
    return loss, _combined(d_raw, values[:, :samples])


def _backwards_of(
    bias: Tensor,
    raw: Tensor,
    products: Tensor,
    tau: Tensor,
    factor: Tensor,
    attention: Attention,
    kept: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """``_backwards`` from what ``Draws.shown_views`` gives."""
    mixing = attention.of_products(products.flatten(1, 2))
    return _backwards(raw.flatten(1, 2), mixing, bias, tau, factor, kept)


def _backwards(
    raw: Tensor, mixing: Tensor, bias: Tensor, tau: Tensor, factor: Tensor, kept: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The loss, and its gradient in <w_i, v> of the first views' tokens, (run, sample, token, m);
    raw: of both views, one after the other."""
    samples = raw.shape[1] // 2
    s, threshold = mix_tokens(mixing, raw), bias[:, None, None, :]
    f = brelu(s, threshold).sum(dim=2)
    loss, d_f = info_nce_gradient(f[:, :samples], f[:, samples:], tau, factor, kept)
    return loss, _d_raw(s[:, :samples], threshold, mixing[:, :samples], d_f)


def weight_gradient(
    s: Tensor, threshold: Tensor, mixing: Tensor, values: Tensor, d_f: Tensor
) -> Tensor:
    """The gradient in the weights, (run, m, d1), from that in f, (run, sample, m); ``s``: the
    preactivations, (run, sample, token, m)."""
    return _combined(_d_raw(s, threshold, mixing, d_f), values)


def _d_raw(s: Tensor, threshold: Tensor, mixing: Tensor, d_f: Tensor) -> Tensor:
    d_s = brelu_derivative(s, threshold) * d_f[:, :, None, :]
    # z^(r) = sum_s mixing[r, s] v_s, so the coefficient of v_s is sum_r mixing[r, s] d_s[r]
    return mix_tokens(mixing.transpose(-1, -2), d_s)


def _combined(d_raw: Tensor, values: Tensor) -> Tensor:
    """Sum of the tokens with these coefficients: (run, m, d1)."""
    return torch.bmm(d_raw.flatten(1, 2).transpose(1, 2), values.flatten(1, 2))


def initial_weights(draws: Draws, neurons: int, d1: int, sigma_0: Tensor) -> Tensor:
    """Normal weights before training (Liao et al., Algorithm 1, line 1).

    Arguments:
        draws: one key per run.
        neurons, d1: their number, and the dimensions of a token.
        sigma_0: (run,), their std.

    Returns:
        (run, m, d1).

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3)).shape
        torch.Size([3, 24, 100])
    """
    return draws.normal("weights", (neurons, d1), scale=sigma_0)


def identity_attention(runs: int, d1: int, like: Tensor) -> dict[str, Tensor]:
    """W_Q = W_K = identity (000 Algorithm 1, line 1) as parameters to train, (run, d1, d1)."""
    identity = torch.eye(d1, dtype=like.dtype, device=like.device).expand(runs, d1, d1)
    return {name: identity.clone() for name in TRAINED_ATTENTION}
