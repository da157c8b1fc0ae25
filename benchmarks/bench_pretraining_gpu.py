"""Contrastive pre-training of a ResNet-18 on CIFAR10-LT (rho 100, 12,406 images, batch 512) on one
GPU, beside a plain PyTorch loop.

    python benchmarks/bench_pretraining_gpu.py [--rounds 3]

Seconds an epoch (24 updates of 1,024 views) of every method, views included, as a share of what the
card's bf16 products reach (measured on a large matrix product in the same run); the share of the
time that making views takes; and the plain loop: eager, float32 (TF32 convolutions), its views made
by our function too, uncompiled.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_timing import bf16_limit
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.core.provenance import provenance
from rarefy.nets.backbones import Encoder, Projection, build_backbone
from rarefy.tools.longtail.pretraining import PretrainTask, new_pretraining
from rarefy.tools.longtail.sets import Tail, parts_of
from rarefy.tools.sparse_training import own_random_state
from rarefy.train.image_batches import Scaling, generator_for
from rarefy.train.recipe import Recipe
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import Pretraining
from rarefy.train.views.views import Views

DEVICE = torch.device("cuda")
BATCH = 512
VIEW_OPERATIONS = 3 * 2 * 555_422_720
"""A view in training: forward and twice as much backward, two operations a multiply-add (counted
in tests/nets/test_resnet.py)."""
TARGETS = {"simclr": (0.30, 0.25), "branches:0.1": (0.42, 0.35)}
"""Seconds an epoch: at most, and hoped for."""
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
    "lightly, CIFAR-10, batch 512, RTX A6000": "26 s an epoch of 50,000 images with kNN (its docs)",
    "p3i0t/SimCLR-CIFAR10, GTX 1080 Ti": "38 s an epoch of 50,000 images (its README)",
}
"""Other machines, other sets: for orientation, not a comparison."""


def ours(words: str, compiled: bool, graphs: bool) -> Pretraining:
    task = PretrainTask(
        "cifar10",
        "resnet18",
        Recipe(epochs=500, learning_rate=0.5, weight_decay=1e-4, warm_up=0.02),
        Tail(rho=100.0),
        batch=BATCH,
        compiled=compiled,
        graphs=graphs,
    )
    parts = parts_of("cifar10", task.tail, 0, DEVICE)
    with own_random_state(0, DEVICE):
        return new_pretraining(task, Method.parse(words), parts, 0, Context(device=DEVICE))


def our_epoch(training: Pretraining) -> Callable[[int], None]:
    def epoch(number: int) -> None:
        for batch in training.batches.epoch(number):
            training.advance(batch)
        training.step = 0  # a timing needs no end

    return epoch


def plain_epoch() -> Callable[[int], None]:
    parts = parts_of("cifar10", Tail(rho=100.0), 0, DEVICE)
    images, views = parts.seen.images, Views.default(3, 32)
    scaling = Scaling(parts.mean, parts.std)
    torch.manual_seed(0)
    backbone, width = build_backbone("resnet18", 3, 32)
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


def timed(epoch: Callable[[int], None], number: int) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    epoch(number)
    torch.cuda.synchronize()
    return time.perf_counter() - began


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
    first = {name: timed(epoch, 0) for name, epoch in epochs.items()}
    for epoch in epochs.values():  # what is compiled after the first mask, once more
        timed(epoch, 1)
    seconds: dict[str, list[float]] = {name: [] for name in epochs}
    for number in range(rounds):
        for name, epoch in epochs.items():
            seconds[name].append(timed(epoch, 2 + number))
    limit = bf16_limit(DEVICE)
    found: dict[str, Any] = {"bf16_limit_tflops": limit / 1e12, "views_an_epoch": per_epoch}
    for name, taken in seconds.items():
        middle = statistics.median(taken)
        found[name] = {
            "seconds_an_epoch": middle,
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
            most, goal = TARGETS[name]
            found[name]["target_seconds"], found[name]["goal_seconds"] = most, goal
            found[name]["target_met"], found[name]["goal_met"] = middle <= most, middle <= goal
    alone = statistics.median(seconds["views alone"])
    share = alone / statistics.median(seconds["simclr"])
    found["views_share_of_simclr"], found["views_share_met"] = share, share <= VIEWS_SHARE
    return found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--rounds", type=int, default=3)
    reader.add_argument(
        "--out", type=Path, default=Path(__file__).parent / "results" / "pretraining-gpu.json"
    )
    given = reader.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("this benchmark needs a CUDA device")
    began = time.time()
    measured = measure(given.rounds)
    found = {
        "measured": measured,
        "published_elsewhere": PUBLISHED,
        "rounds": given.rounds,
        "provenance": provenance(DEVICE, "bf16", time.time() - began),
    }
    text = json.dumps(found, indent=1)
    given.out.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
