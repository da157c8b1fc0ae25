"""Two branches of one network: X through all weights, Y through the largest of them alone.

The laboratory's counterpart of Jiang et al. 2021 ("SDCLR"): the loss is symmetric and flows through
both branches, and the masked branch moves the weights that it kept. The mask is chosen from the
weights of the step. (Whole neurons need no second branch here: f(X) f(Y) loses what one side lacks,
so that a neuron mask on Y is one on both.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.compilation import compiled
from rarefy.data.sparse_coding import Pairs
from rarefy.nets.brelu_transformer import Attention, brelu, encode, preactivations
from rarefy.pruning.masks import keep_largest, kept_count, neuron_norms
from rarefy.train.contrastive import Contrastive, weight_gradient
from rarefy.train.descent import automatic_gradients
from rarefy.train.losses import symmetric_info_nce, symmetric_info_nce_gradient


@dataclass(frozen=True)
class TwoBranches(Contrastive):
    """``keep``: share of all weights of a run that the branch of Y has; 1: both branches alike."""

    keep: float = 1.0

    def mask(self, weights: Tensor) -> Tensor:
        """1 at the largest weights of a run, 0 elsewhere: (run, m, d1)."""
        if self.keep == 1:
            return torch.ones_like(weights)
        sizes = weights.detach().abs().flatten(1)
        count = kept_count(torch.tensor(1.0 - self.keep), sizes.shape[1])
        return keep_largest(sizes, int(count)).reshape(weights.shape).to(weights.dtype)

    def masked_bias(self, weights: Tensor, mask: Tensor) -> Tensor:
        """The bias goes with the norm of a neuron (000 eq. 285), and so with what is left of it:
        (run, m)."""
        norms, left = neuron_norms(weights.detach()), neuron_norms(weights.detach() * mask)
        return self.bias.value * left / norms.clamp(min=torch.finfo(norms.dtype).tiny)

    def loss(self, parameters: dict[str, Tensor], batch: Pairs) -> Tensor:
        """(run,); differentiable."""
        weights, attention = parameters["weights"], self.attention_of(parameters)
        mask = self.mask(weights)
        f_x = encode(weights, self.bias.value, batch.x, attention)
        f_y = encode(weights * mask, self.masked_bias(weights, mask), batch.y, attention)
        return symmetric_info_nce(f_x, f_y, self.tau, self.factor)

    def gradients(
        self, parameters: dict[str, Tensor], batch: Pairs
    ) -> tuple[Tensor, dict[str, Tensor]]:
        if len(parameters) > 1:
            return automatic_gradients(self, parameters, batch)
        weights = parameters["weights"]
        mask = self.mask(weights)
        biases = self.bias.value, self.masked_bias(weights, mask)
        function = compiled(_gradient) if self.compile_kernels else _gradient
        loss, gradient = function(
            weights, mask, *biases, batch.tokens, self.tau, self.factor, self.attention
        )
        return loss, {"weights": gradient}


def _gradient(
    weights: Tensor,
    mask: Tensor,
    bias: Tensor,
    masked_bias: Tensor,
    tokens: Tensor,
    tau: Tensor,
    factor: Tensor,
    attention: Attention,
) -> tuple[Tensor, Tensor]:
    branches, embedded = [], []
    for view, (kept, threshold) in enumerate(((weights, bias), (weights * mask, masked_bias))):
        seen = tokens[:, view]
        mixing, values = attention.weights(seen), attention.values(seen)
        s, limit = preactivations(kept, mixing, values), threshold[:, None, None, :]
        branches.append((s, limit, mixing, values))
        embedded.append(brelu(s, limit).sum(dim=2))
    loss, d_x, d_y = symmetric_info_nce_gradient(embedded[0], embedded[1], tau, factor)
    return loss, weight_gradient(*branches[0], d_x) + mask * weight_gradient(*branches[1], d_y)
