"""The plain baseline of the signal-and-noise labs: one cell at a time, autograd, as one would write
it for a single figure. Nothing is batched over cells and nothing is shared with the library."""

from __future__ import annotations

import torch


def train_topk(
    steps: int,
    seed: int,
    sigma: float,
    keep: int,
    device: str = "cpu",
    prune: bool = True,
) -> torch.Tensor:
    """One cell of 002 Fig. 1 (n = d = 200, T = 10, m = 20, sum over filters): its filters.

    ``prune``: after every update all but the ``keep`` largest coordinates of a filter are zeroed.
    """
    n, d, classes, m, lr, sigma_0 = 200, 200, 10, 20, 0.05, 0.01
    generator = torch.Generator(device).manual_seed(seed)
    y = torch.randint(classes, (n,), generator=generator, device=device)
    noise = torch.zeros(n, d, device=device)
    noise[:, classes:] = sigma * torch.randn(n, d - classes, generator=generator, device=device)
    signal = torch.eye(d, device=device)[y]
    x = torch.stack([signal, noise], dim=1)  # (n, patch, d)
    filters = sigma_0 * torch.randn(classes, m, d, generator=generator, device=device)
    filters.requires_grad_(True)
    optimiser = torch.optim.SGD([filters], lr=lr)
    for _ in range(steps):
        scores = torch.relu(torch.einsum("npd,kmd->nkmp", x, filters)).sum(dim=(2, 3))
        loss = torch.nn.functional.cross_entropy(scores, y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if prune:
            with torch.no_grad():
                kept = filters.abs().topk(keep, dim=2).indices
                mask = torch.zeros_like(filters).scatter_(2, kept, 1.0)
                filters.mul_(mask)
    return filters.detach()


def train_benign(
    steps: int, seed: int, strength: float, special: float, device: str = "cpu"
) -> torch.Tensor:
    """One cell of 003 Fig. 3 (K = 5, d = 1000, m = 100, 100 samples a class, mean over filters)."""
    classes, d, m, size, lr = 5, 1000, 100, 100, 0.05
    generator = torch.Generator(device).manual_seed(seed)
    y = torch.arange(classes, device=device).repeat_interleave(size)
    eigenvalues = torch.full((classes, d), 0.5, device=device)
    eigenvalues[:, :classes] = 0
    for k in range(classes):
        eigenvalues[k, classes + k] = special
    zeta = torch.randn(len(y), d, generator=generator, device=device)
    x = torch.stack([strength * torch.eye(d, device=device)[y], eigenvalues[y] * zeta], dim=1)
    uniform = torch.rand(classes, m, d, generator=generator, device=device)
    filters = ((2 * uniform - 1) / d**0.5).requires_grad_(True)
    optimiser = torch.optim.SGD([filters], lr=lr)
    for _ in range(steps):
        scores = torch.relu(torch.einsum("npd,kmd->nkmp", x, filters)).sum(dim=(2, 3)) / m
        loss = torch.nn.functional.cross_entropy(scores, y)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return filters.detach()
