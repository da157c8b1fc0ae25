"""A small class-noise model and filters that know something of it, for tests of tail errors."""

from __future__ import annotations

import torch
from small_noise import special_direction
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.tail_noise import TailSamples

CLASSES, D, M, RUNS = 3, 14, 6, 2
LENGTHS = (0.0, 0.7, 1.5)


def draws(seed: int = 0) -> Draws:
    return Draws([seed], dtype=torch.float64)


def noise(special: float = 2.0) -> ClassNoise:
    table = special_direction(torch.tensor([[special] * CLASSES, [special / 2] * CLASSES]), D, 3)
    return ClassNoise(table, torch.full((RUNS, CLASSES), 0.4, dtype=torch.float64))


def filters(seed: int = 1) -> Tensor:
    """Random filters that know something: each has a part along its class's special direction."""
    found = draws(seed).normal("filters", (RUNS * CLASSES * M * D,)).reshape(RUNS, CLASSES, M, D)
    for k in range(CLASSES):
        found[:, k, :, CLASSES + k] *= 3
    return found


def labels(count: int) -> Tensor:
    return (torch.arange(count) % CLASSES)[None]


def own_law(model: ClassNoise, count: int, chunk: int, seed: int = 2) -> TailSamples:
    samples = model.sample(draws(seed), labels(count), "test", chunk)
    there = (model.special_axes()[samples.labels])[:, :, None]
    lam = model.eigenvalues[:, torch.arange(CLASSES), model.special_axes()][:, samples.labels[0]]
    z = samples.noise.gather(2, there)[:, :, 0] / lam
    zero = torch.zeros(1, count, dtype=torch.float64)
    return TailSamples(samples, z, zero.long(), zero)
