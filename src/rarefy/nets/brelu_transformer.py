"""Single-head attention, then neurons with a two-sided threshold (000 eq. 4).

    h_i(X) = sum over tokens r of BReLU_{b_i}(<w_i, z^(r)>),
    z^(r) = sum_s softmax_s(<Q x_r, K x_s>) V x_s,

with W_Q = W_K = W_V = identity unless given. Attention mixes tokens linearly, so neurons are
applied to the raw tokens first and the few numbers that come out are mixed: the mixed d1-vectors
are never formed, which saves two passes over the largest tensor.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def brelu(s: Tensor, b: Tensor) -> Tensor:
    """BReLU_b(s) = ReLU(s - b) - ReLU(-s - b): zero inside [-b, b], shifted towards 0 outside."""
    return torch.relu(s - b) - torch.relu(-s - b)


def brelu_derivative(s: Tensor, b: Tensor) -> Tensor:
    """1 where the neuron is active, |s| > b (000 eq. 21 has the same indicator with >=)."""
    return (s.abs() > b).to(s.dtype)


@dataclass(frozen=True)
class Attention:
    """Fixed attention weights. Each matrix is (d1, d1), (run, d1, d1), or None for the identity.

    ``scale`` multiplies the scores; the paper has 1, and 0 gives the plain mean over tokens.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    scale: float = 1.0

    @staticmethod
    def _apply(matrix: Tensor | None, tokens: Tensor) -> Tensor:
        if matrix is None:
            return tokens
        wide = matrix if matrix.dim() == 2 else matrix[:, None]
        return tokens @ wide.transpose(-1, -2)

    def weights(self, tokens: Tensor) -> Tensor:
        """Softmax weights (run, sample, r, s) for tokens (run, sample, token, d1)."""
        q, k = self._apply(self.query, tokens), self._apply(self.key, tokens)
        return self.of_products(_token_products(q, k))

    def of_products(self, products: Tensor) -> Tensor:
        """The same from <q_r, k_s>, (run, sample, r, s)."""
        return torch.softmax(self.scale * products, dim=-1)

    @property
    def plain(self) -> bool:
        """Whether all matrices are the identity."""
        return self.query is None and self.key is None and self.value is None

    def values(self, tokens: Tensor) -> Tensor:
        return self._apply(self.value, tokens)


def _token_products(q: Tensor, k: Tensor) -> Tensor:
    """<q_r, k_s> for all token pairs of a sample, (run, sample, r, s).

    A batch of tiny matrix products is slow on a CPU; for few tokens the products are row sums.
    """
    length = q.shape[2]
    if length > 4:
        return q @ k.transpose(-1, -2)
    if q is k:  # symmetric: each pair once
        pair = {
            (r, s): (q[:, :, r] * k[:, :, s]).sum(-1) for r in range(length) for s in range(r + 1)
        }
        rows = [[pair[max(r, s), min(r, s)] for s in range(length)] for r in range(length)]
    else:
        rows = [[(q[:, :, r] * k[:, :, s]).sum(-1) for s in range(length)] for r in range(length)]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def preactivations(weights: Tensor, mixing: Tensor, values: Tensor) -> Tensor:
    """<w_i, z^(r)> for neurons (run, m, d1), attention (run, sample, r, s) and value tokens
    (run, sample, s, d1): (run, sample, r, m)."""
    return mix_tokens(mixing, project(weights, values))


def project(weights: Tensor, values: Tensor) -> Tensor:
    """<w_i, v_s> for neurons (run, m, d1) and tokens (run, sample, s, d1): (run, sample, s, m)."""
    runs, samples, tokens, d1 = values.shape
    # neurons first: a tall thin product the other way round is a fifth slower
    raw = torch.bmm(weights, values.reshape(runs, -1, d1).transpose(1, 2))
    return raw.transpose(1, 2).reshape(runs, samples, tokens, -1)


def mix_tokens(mixing: Tensor, numbers: Tensor) -> Tensor:
    """sum_s mixing[r, s] numbers[s], the small product done as sums: (run, sample, r, m)."""
    length = mixing.shape[-1]
    if length > 4:
        return mixing @ numbers
    mixed = mixing[..., :, 0:1] * numbers[:, :, 0:1, :]
    for s in range(1, length):
        mixed = torch.addcmul(mixed, mixing[..., :, s : s + 1], numbers[:, :, s : s + 1, :])
    return mixed


def encode(weights: Tensor, bias: Tensor, tokens: Tensor, attention: Attention) -> Tensor:
    """f(X) of eq. 4 for weights (run, m, d1), bias (run, m): (run, sample, m)."""
    mixing, values = attention.weights(tokens), attention.values(tokens)
    return brelu(preactivations(weights, mixing, values), bias[:, None, None, :]).sum(dim=2)


def mixed_latents(tokens: Tensor, latents: Tensor, attention: Attention) -> Tensor:
    """Latents after attention, summed over tokens (the z-hat of 000 Lemma F.3, without its 1/L):
    (run, sample, d). Meaningful for W_V = identity."""
    return mix_tokens(attention.weights(tokens), latents).sum(dim=2)
