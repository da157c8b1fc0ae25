"""Supervised training of a ResNet-18 on CIFAR-10 on one GPU, beside a plain PyTorch loop.

    python benchmarks/bench_training_gpu.py [--rounds 3] [--seeds 3] [--skip-accuracy]

Images per second as a share of what the card's bf16 products reach (measured on a large matrix
product in the same run), for our loop in several ways and for the plain loop: eager, float32 (TF32
convolutions, torch's default), no augmentation at all. Then the time to 94 % test accuracy of a
ResNet-9 by its usual recipe: training time alone (looking at the test set is not counted),
compilation apart.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import DEVICE, asked, bf16_limit, keep, size, timed, wait
from torch import nn
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.nets.builder import build
from rarefy.tools.image_data import on_device
from rarefy.tools.recipes import usual_recipe
from rarefy.tools.sparse_training import Task, new_training, own_random_state
from rarefy.train.evaluation import evaluate
from rarefy.train.image_batches import Augmentation, Scaling
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import Training

DATA, NETWORK = size(("cifar10", "resnet18"), ("digits", "lenet"))
BATCH, STEPS, WARM_UP = size((512, 40, 5), (64, 1, 1))
MULTIPLY_ADDS = 555_422_720
"""Of one forward pass at 32 x 32 (tests/nets/test_resnet.py counts them)."""
OPERATIONS = 3 * 2 * MULTIPLY_ADDS
"""An image in training: forward, and twice as much backward; two operations per multiply-add."""
TARGET = 0.94
QUICK = size("resnet9", "lenet")
"""What ``rarefy train cifar10`` trains on a GPU, by its recipe, which was chosen by held-out
training images (``recipes`` in the committed result)."""
PLAIN = "plain loop, float32"
WAYS: dict[str, tuple[bool, bool, PruningSpec]] = {
    "ours, eager": (False, False, PruningSpec()),
    "ours, graphs": (False, True, PruningSpec()),
    "ours, compiled": (True, False, PruningSpec()),
    "ours, compiled, graphs": (True, True, PruningSpec()),
    "ours, compiled, graphs, keep 0.3 every 10": (True, True, PruningSpec(0.3, every=10)),
    "ours, compiled, graphs, keep 0.3 every 1": (True, True, PruningSpec(0.3)),
}


def ours(
    compiled: bool, graphs: bool, spec: PruningSpec, network: str = NETWORK, run_key: int = 0
) -> Training:
    data = on_device(DATA, DEVICE)
    recipe = usual_recipe(data, network)
    changes = Augmentation(recipe.pop("shift"), recipe.pop("flip"))
    batch = min(BATCH, recipe.pop("batch"))
    recipe["epochs"] = size(recipe["epochs"], 1)
    given = DATA, network, Recipe(**recipe), changes, batch
    task = Task(*given, compiled=compiled, graphs=graphs)
    with own_random_state(run_key, DEVICE):
        return new_training(task, spec, data, data.train, run_key, Context(device=DEVICE))


def our_steps(training: Training) -> Callable[[int], None]:
    batches = training.batches.again()

    def steps(count: int) -> None:
        for _ in range(count):
            training.advance(next(batches))
            training.step = 0  # a timing needs no end

    return steps


def plain_steps() -> Callable[[int], None]:
    torch.manual_seed(0)
    data = on_device(DATA, DEVICE)
    images, labels = data.train.images, data.train.labels
    model: nn.Module = build(NETWORK, images.shape[1], images.shape[2], 10).to(DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)

    def steps(count: int) -> None:
        for _ in range(count):
            chosen = torch.randint(0, len(images), (BATCH,), device=DEVICE)
            x = images[chosen].float() / 255 - 0.5
            optimizer.zero_grad()
            functional.cross_entropy(model(x), labels[chosen]).backward()
            optimizer.step()

    return steps


def throughput(rounds: int) -> dict[str, Any]:
    loops: dict[str, Callable[[int], None]] = {PLAIN: plain_steps()}
    first: dict[str, float] = {}
    for name, (compiled, graphs, spec) in WAYS.items():
        loops[name] = our_steps(ours(compiled, graphs, spec))
    for name, steps in loops.items():
        first[name] = timed(partial(steps, WARM_UP)).wall
    seconds: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, steps in loops.items():
            steps(2)
            seconds[name].append(timed(partial(steps, STEPS)).wall / STEPS)
    limit = bf16_limit()
    found = {}
    for name, taken in seconds.items():
        rate = BATCH / statistics.median(taken)
        found[name] = {
            "images_per_second": rate,
            "slowest": BATCH / max(taken),
            "fastest": BATCH / min(taken),
            "share_of_bf16_limit": rate * OPERATIONS / limit,
            "times_plain": statistics.median(seconds[PLAIN]) / statistics.median(taken),
            "first_steps_seconds": first[name],
        }
        print(
            f"{name:45} {rate:9.0f} images/s  {100 * found[name]['share_of_bf16_limit']:5.1f} % of "
            f"{limit / 1e12:.0f} TFLOP/s  {found[name]['times_plain']:.1f} x plain",
            flush=True,
        )
    return {"rounds": rounds, "bf16_limit": limit, "ways": found}


def to_target(seeds: int) -> dict[str, Any]:
    data = on_device(DATA, DEVICE)
    scaling = Scaling(data.mean, data.std)
    runs = []
    for seed in range(seeds):
        training = ours(True, True, PruningSpec(), QUICK, seed)
        # compilation and recording, on a network that is thrown away
        our_steps(ours(True, True, PruningSpec(), QUICK))(2)
        wait()
        clock = {"last": time.perf_counter(), "trained": 0.0}
        seen: list[dict[str, float]] = []

        def watch(now: Training, clock: dict[str, float] = clock, seen: list = seen) -> None:
            wait()
            clock["trained"] += time.perf_counter() - clock["last"]
            score = evaluate(
                now.model,
                data.test.images,
                data.test.labels,
                scaling,
                precision=now.precision,
                memory_format=now.batches.memory_format,
            )
            seen.append(
                {"epoch": now.epoch, "seconds": clock["trained"], "accuracy": score.accuracy}
            )
            wait()
            clock["last"] = time.perf_counter()

        training.run(Context(device=DEVICE), None, watch)
        there = next((one for one in seen if one["accuracy"] >= TARGET), None)
        runs.append({"reached": there, "end": seen[-1], "epochs": seen})
        print(f"seed {seed}: {there} / end {seen[-1]}", flush=True)
    done = {"target": TARGET, "network": QUICK, "recipe": vars(training.recipe), "batch": BATCH}
    return {**done, "runs": runs}


def main() -> None:
    arguments = asked(__doc__, gpu=True, rounds=size(3, 1), seeds=size(5, 1), skip_accuracy=False)
    torch.backends.cudnn.benchmark = True
    what = "ResNet-18 (3 x 3 stem) on CIFAR-10, batch 512: training images per second"
    record: dict[str, Any] = {"what": what, "throughput": throughput(arguments.rounds)}
    keep(arguments, "training-gpu", record, "bfloat16")
    if not arguments.skip_accuracy:
        record["time_to_accuracy"] = to_target(arguments.seeds)
        keep(arguments, "training-gpu", record, "bfloat16")


if __name__ == "__main__":
    main()
