"""The plain baseline of the multi-view lab: one run at a time, autograd, as one would write it for
a single figure. Nothing is batched over runs and nothing is shared with the library."""

from __future__ import annotations

import math

import torch


def train_multi_view(
    steps: int,
    seed: int,
    subclasses: int,
    fine: bool,
    device: str = "cpu",
    d: int = 100,
    patches: int = 24,
    feature_patches: int = 3,
    neurons: int = 100,
    batch: int = 64,
    lr: float = 1.0,
    sigma: float = 0.02,
    sigma_0: float = 0.01,
    threshold: float = 1.0,
    spread: float = 0.1,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One run of 004 (14)-(18) on fresh easy samples: weights (output, m, d) and biases."""
    generator = torch.Generator(device).manual_seed(seed)
    subclass = torch.arange(batch, device=device) % (2 * subclasses)
    side = subclass // subclasses
    label = subclass if fine else side
    outputs = 2 * subclasses if fine else 2
    low, high = math.sqrt(1 - spread), math.sqrt(1 + spread)
    weights = sigma_0 * torch.randn(outputs, neurons, d, generator=generator, device=device)
    weights.requires_grad_(True)
    bias = torch.full((outputs, neurons), -sigma_0 * threshold * math.log(d) ** 0.5, device=device)
    rate = 1 / math.log(d) ** 5
    for _ in range(steps):
        x = sigma * torch.randn(batch, patches, d, generator=generator, device=device)
        shape = (batch, 2 * feature_patches)
        strength = low + (high - low) * torch.rand(shape, generator=generator, device=device)
        feature = torch.cat([side[:, None], 2 + subclass[:, None]], dim=1)
        feature = feature.repeat_interleave(feature_patches, dim=1)
        x[:, : 2 * feature_patches].scatter_add_(2, feature[..., None], strength[..., None])
        seen = torch.einsum("npd,cmd->ncmp", x, weights) + bias[:, :, None]
        loss = torch.nn.functional.cross_entropy(torch.relu(seen).sum(dim=(2, 3)), label)
        loss.backward()
        with torch.no_grad():
            assert weights.grad is not None
            moved = lr / patches * weights.grad
            weights -= moved
            bias -= rate * moved.norm(dim=2)  # (18)
            weights.grad = None
    return weights.detach(), bias
