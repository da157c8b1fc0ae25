"""What the sparse-coding data alone determine: the growth moment and the least possible loss."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.sparse_coding import SparseCoding
from rarefy.nets.brelu_transformer import Attention, mixed_latents


def latent_moment(
    data: SparseCoding, attention: Attention, draws: Draws, samples: int, at_once: int = 64
) -> Tensor:
    """E[z+_j z_j] of the attention-mixed latents summed over tokens, by Monte Carlo: (run, d).

    It predicts stage-1 growth (000 Lemma F.3). ``at_once`` samples are held in memory.
    """
    total = torch.zeros_like(data.eps)
    rounds = max(1, samples // at_once)
    for index in range(rounds):
        pairs = data.sample(draws, at_once, index)
        z_x = mixed_latents(pairs.x, pairs.latents[:, 0], attention)
        z_y = mixed_latents(pairs.y, pairs.latents[:, 1], attention)
        total += (z_x * z_y).mean(dim=1)
    return total / rounds


def loss_floor(data: SparseCoding, draws: Draws, batch: int, batches: int = 8) -> Tensor:
    """The least mean InfoNCE loss of any encoder of signal alone, E[log(number of twins)]: (run,).

    Samples of a batch with equal support and signs (twins, a sample counts as its own) have
    exchangeable partners, so at best the softmax is uniform over them.
    """
    d = data.eps.shape[1]
    total = torch.zeros_like(data.sigma)
    code = draws.integers("signature", 2**31, (d,)) + 1
    for index in range(batches):
        latent = data.latents(draws, batch, index, views=1)[:, 0]
        signature = latent.sum(dim=2).sign().to(torch.int64)
        name = (signature * code[:, None, :]).sum(dim=2)  # equal names: equal signatures
        twins = (name[:, :, None] == name[:, None, :]).sum(dim=2)
        total += twins.to(total.dtype).log().mean(dim=1)
    return total / batches
