"""Contrastive pre-training of a ResNet-18 on CIFAR10-LT (rho 100, 12,406 images, batch 512) on one
GPU, beside a plain PyTorch loop.

    python benchmarks/bench_pretraining_gpu.py [--rounds 3]

Seconds per epoch (24 updates of 1,024 views) of every method, views included, as a share of what
the card's bf16 products reach (measured on a large matrix product in the same run); the share of
the time that making views takes; and the plain loop: eager, float32 (TF32 convolutions), its views
made by our function too, uncompiled.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import DEVICE, asked, bf16_limit, keep, size, timed
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.nets.backbones import Encoder, Projection, build_backbone
from rarefy.tools.longtail.pretraining import PretrainTask, new_pretraining
from rarefy.tools.longtail.sets import Tail, parts_of
from rarefy.tools.sparse_training import own_random_state
from rarefy.train.image_batches import Scaling, generator_for
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining
from rarefy.train.views.views import Views

DATA, NETWORK, BATCH = size(("cifar10", "resnet18", 512), ("digits", "lenet", 128))
TAIL = Tail(rho=size(100.0, 20.0))
VIEW_OPERATIONS = 3 * 2 * 555_422_720
"""A view in training: forward and twice as much backward, two operations per multiply-add (counted
in tests/nets/test_resnet.py)."""
TARGETS = {"simclr": 0.24, "branches:0.1": 0.27}
"""Seconds per epoch, at most."""
VIEWS_SHARE = 0.05
"""Of the time, at most for making views."""
PLAIN = "plain loop, float32"
WAYS: dict[str, tuple[str, bool, bool]] = {
    "simclr, not compiled, not recorded": ("simclr", False, False),
    "simclr, not compiled": ("simclr", False, True),
    "simclr, not recorded": ("simclr", True, False),
    "simclr": ("simclr", True, True),
    "pruned:0.7": ("pruned:0.7", True, True),
    "pruned:0.7+epoch": ("pruned:0.7+epoch", True, True),
    "branches:0.1, not recorded": ("branches:0.1", True, False),
    "branches:0.1": ("branches:0.1", True, True),
    "sdclr": ("sdclr", True, True),
}
"""Words, compiled, an update as one recorded CUDA graph."""
PUBLISHED = {
    "lightly, CIFAR-10, batch 512, RTX A6000": "26 s per epoch of 50,000 images, with kNN (docs)",
    "p3i0t/SimCLR-CIFAR10, GTX 1080 Ti": "38 s per epoch of 50,000 images (its README)",
}
"""Other machines, other sets: for orientation, not a comparison."""


def ours(words: str, compiled: bool, graphs: bool) -> Pretraining:
    task = PretrainTask(
        DATA,
        NETWORK,
        Recipe(epochs=500, learning_rate=0.5, weight_decay=1e-4, warm_up=0.02),
        TAIL,
        batch=BATCH,
        compiled=compiled,
        graphs=graphs,
    )
    parts = parts_of(DATA, TAIL, 0, DEVICE)
    with own_random_state(0, DEVICE):
        return new_pretraining(task, Method.parse(words), parts, 0, Context(device=DEVICE))


def our_epoch(training: Pretraining) -> Callable[[int], None]:
    def epoch(number: int) -> None:
        for batch in training.batches.epoch(number):
            training.advance(batch)
        training.step = 0  # a timing needs no end

    return epoch


def plain_epoch() -> Callable[[int], None]:
    parts = parts_of(DATA, TAIL, 0, DEVICE)
    images = parts.seen.images
    _, channels, side, _ = images.shape
    views = Views.default(channels, side)
    scaling = Scaling(parts.mean, parts.std)
    torch.manual_seed(0)
    backbone, width = build_backbone(NETWORK, channels, side)
    model = Encoder(backbone, Projection(width)).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9, weight_decay=1e-4)

    def epoch(number: int) -> None:
        draws = generator_for(DEVICE, "plain", number)
        order = torch.randperm(len(images), device=DEVICE)
        for first in range(0, len(images) - BATCH + 1, BATCH):
            chosen = images[order[first : first + BATCH]]
            both = views.make(chosen, draws, scaling, compile_it=False)
            z = functional.normalize(model(both.flatten(0, 1)), dim=1)
            logits = z @ z.T / 0.2
            logits.fill_diagonal_(-torch.inf)
            partner = (torch.arange(2 * BATCH, device=DEVICE) + BATCH) % (2 * BATCH)
            optimizer.zero_grad()
            functional.cross_entropy(logits, partner).backward()
            optimizer.step()

    return epoch


def seconds_of(epoch: Callable[[int], None], number: int) -> float:
    return timed(partial(epoch, number)).wall


def views_alone(training: Pretraining) -> Callable[[int], None]:
    def epoch(number: int) -> None:
        for _ in training.batches.epoch(number):
            pass

    return epoch


def measure(rounds: int) -> dict[str, Any]:
    epochs: dict[str, Callable[[int], None]] = {PLAIN: plain_epoch()}
    trainings: dict[str, Pretraining] = {}
    for name, (words, compiled, graphs) in WAYS.items():
        training = ours(words, compiled, graphs)
        epochs[name], trainings[name] = our_epoch(training), training
        if name == "simclr":
            epochs["views alone"] = views_alone(training)
        per_epoch = training.batches.steps * BATCH * 2
    first = {name: seconds_of(epoch, 0) for name, epoch in epochs.items()}
    for epoch in epochs.values():  # what is compiled after the first mask, once more
        seconds_of(epoch, 1)
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    for number in range(rounds):
        for name, epoch in epochs.items():
            seconds[name].append(seconds_of(epoch, 2 + number))
    limit = bf16_limit()
    found: dict[str, Any] = {"bf16_limit_tflops": limit / 1e12, "views_per_epoch": per_epoch}
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        found[name] = {
            "seconds_per_epoch": middle,
            "fastest": min(taken),
            "slowest": max(taken),
            "first_epoch_seconds": first[name],
            "times_plain": statistics.median(seconds[PLAIN]) / middle,
        }
        if name != "views alone":
            found[name]["share_of_bf16_limit"] = per_epoch * VIEW_OPERATIONS / middle / limit
        if name in trainings:
            found[name]["recorded"] = trainings[name].recording is not None
        if name in TARGETS:
            found[name]["target_seconds"] = TARGETS[name]
            found[name]["target_met"] = middle <= TARGETS[name]
    alone = statistics.median(seconds["views alone"])
    share = alone / statistics.median(seconds["simclr"])
    found["views_share_of_simclr"], found["views_share_met"] = share, share <= VIEWS_SHARE
    return found


def main() -> None:
    arguments = asked(__doc__, gpu=True, rounds=size(3, 1))
    with own_random_state(0, DEVICE):  # (as trainings run: convolutions in their fastest way)
        measured = measure(arguments.rounds)
    print(json.dumps(measured, indent=1))
    record = {
        "measured": measured,
        "published_elsewhere": PUBLISHED,
        "rounds": arguments.rounds,
    }
    keep(arguments, "pretraining-gpu", record, "bf16")


if __name__ == "__main__":
    main()
