"""The plain baseline: one run at a time, autograd, written as one would for a single figure.

Same data model, network, loss, bias rule and optimiser as ``contrast-alignment`` at its paper
sizes; nothing is batched over runs and nothing is shared with the library.
"""

from __future__ import annotations

import math

import torch


def train(steps: int, seed: int, eps_min: float, sigma: float, device: str = "cpu") -> torch.Tensor:
    """Train one run and return its weights, (24, 500)."""
    d, majority, d1, m, tokens, batch = 9, 5, 500, 24, 2, 64
    lr, tau, decay, activation = 0.5, 1.0, 1e-3, 0.3
    generator = torch.Generator(device).manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    dictionary = torch.linalg.qr(normal(d1, d)).Q
    weights = (1e-3 * normal(m, d1)).requires_grad_(True)
    bias = torch.zeros(m, device=device)
    eps = torch.tensor([1.0] * majority + [eps_min] * (d - majority), device=device)
    target = torch.arange(batch, device=device)
    optimiser = torch.optim.SGD([weights], lr=lr, weight_decay=decay)
    started = ended = False
    norm = norm_at_t1 = weights.detach().norm(dim=1)

    def encode(x: torch.Tensor) -> torch.Tensor:
        attention = torch.softmax(x @ x.transpose(1, 2), dim=-1)
        s = attention @ x @ weights.T
        return (torch.relu(s - bias) - torch.relu(-s - bias)).sum(dim=1)

    for _ in range(steps):
        uniform = torch.rand(batch, d, generator=generator, device=device)
        sign = torch.rand(batch, d, generator=generator, device=device)
        latent = (uniform < activation * eps) * torch.where(sign < 0.5, -1.0, 1.0)
        signal = (latent @ dictionary.T)[:, None]
        x = signal + sigma * normal(batch, tokens, d1)
        y = signal + sigma * normal(batch, tokens, d1)
        with torch.no_grad():
            f_y = encode(y)
        loss = torch.nn.functional.cross_entropy(encode(x) @ f_y.T / tau, target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            now = weights.norm(dim=1)
            if started:
                growth = now / norm
                if not ended:
                    growth = torch.clamp(growth, min=1 + lr / d)
                    ended = bool((now**2 >= d * norm_at_t1**2).any())
                bias = bias * growth
            elif bool(((weights @ dictionary).square().sum(dim=1) >= 0.5 * now**2).all()):
                started, norm_at_t1 = True, now
                bias = math.sqrt(2 * math.log(d) / d) * now
            norm = now
    return weights.detach()
