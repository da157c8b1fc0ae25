"""What ``Pruner`` adds to a training step on a CPU: a CNN and a ViT, beside the same loop without.

All ways to prune are timed in turn in one process, ten steps at a time, several rounds; the figure
is the median over the rounds of the ratio to the plain loop's time in the same round.

    python benchmarks/bench_pruner_cpu.py [--rounds 9]
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import asked, in_turn, keep, size
from pruned_models import PLAIN, WAYS, Transformer, convolutions, show, summary
from torch import nn
from torch.nn import functional

STEPS = size(10, 1)
"""Of one turn: masks that are chosen every ten updates are chosen once."""


def loop(
    model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor
) -> Callable[[], float]:
    """Seconds per step of ``STEPS`` plain steps; whatever a pruner does hangs on the optimiser."""

    def train() -> float:
        start = time.perf_counter()
        for _ in range(STEPS):
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
        return (time.perf_counter() - start) / STEPS

    return train


def measured(
    make: Callable[[], nn.Module],
    optimiser: Callable[[Any], torch.optim.Optimizer],
    batch: int,
    rounds: int,
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(batch, 1, 28, 28, generator=generator)
    labels = torch.randint(0, 10, (batch,), generator=generator)
    timed, pruners = {}, []
    for way in [None, *WAYS]:
        torch.manual_seed(0)
        model = make()
        optimizer = optimiser(model.parameters())
        if way is not None:
            pruners.append(way.attach(model, optimizer))
        timed[PLAIN if way is None else way.words] = loop(model, optimizer, images, labels)
    return summary(in_turn(timed, rounds, warm_up=size(1, 0)))


def main() -> None:
    arguments = asked(__doc__, rounds=size(9, 1))
    busy = os.getloadavg()[0]  # what else the machine did just before
    sgd, adam = partial(torch.optim.SGD, lr=0.01, momentum=0.9), partial(torch.optim.AdamW, lr=1e-3)
    models = {
        "CNN": measured(convolutions, sgd, size(64, 2), arguments.rounds),
        "ViT": measured(Transformer, adam, size(16, 2), arguments.rounds),
    }
    show(models)
    record = {
        "what": "seconds per training step with Pruner (keep 0.5) beside the same step without it",
        "models": {
            "CNN": "2 convolutions and 2 linear layers, 421,642 weights, 28x28, batch 64, SGD",
            "ViT": "6 blocks, width 64, 4 heads, 49 tokens, batch 16, AdamW",
        },
        "steps": STEPS,
        "load_average_before": busy,
        "results": models,
    }
    keep(arguments, "pruner-cpu", record)


if __name__ == "__main__":
    main()
