"""What ``Pruner`` adds to a training step of a ResNet-18 on one GPU, beside the same step without.

    python benchmarks/bench_pruner_gpu.py [--seconds 50] [--batches 128 512] [--modes eager]

32 x 32 images, bf16 autocast, channels last, SGD with momentum. One model is trained in all ways in
turn, ten steps at a time, several rounds, and timed by the GPU's own events; ratios are to the
plain step of the same round. Also: peak memory, whether an update waits for the GPU anywhere, and
whether its masks are those that a CPU chooses. After ``--seconds`` nothing new is begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from harness import DEVICE, asked, device_seconds, in_turn, keep, size
from pruned_models import PLAIN, WAYS, Way, convolutions, show, summary
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.nets.resnet import ResNet18

STEPS, WARM_UP = size((20, 31), (1, 0))
"""Masks every 10 updates are recorded at the third choice, and counted at every tenth update."""


class Training:
    """One model and its step, eager or compiled, with or without a pruner."""

    def __init__(self, batch: int, compiled: bool) -> None:
        torch.manual_seed(0)
        # no block begins as its shortcut: all convolutions have gradients from the first step on
        model = ResNet18(3, 32, 10, zero_last=False)
        shape = (3, 32, 32)
        if DEVICE.type == "cpu":  # of 11 million weights a CPU would choose for half a minute
            model, shape = convolutions(), (1, 28, 28)
        self.model: nn.Module = model.to(DEVICE, memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01, momentum=0.9)
        images = torch.randn(batch, *shape, device=DEVICE)
        self.images = images.contiguous(memory_format=torch.channels_last)
        self.labels = torch.randint(0, 10, (batch,), device=DEVICE)
        self.forward: Callable[[Tensor], Tensor] = (
            torch.compile(self.model, dynamic=False) if compiled else self.model
        )
        self.peak: dict[str, float] = {}

    def step(self) -> None:
        self.optimizer.zero_grad()
        with torch.autocast(self.images.device.type, torch.bfloat16):
            loss = functional.cross_entropy(self.forward(self.images), self.labels)
        loss.backward()
        self.optimizer.step()

    def timed(self, way: Way | None) -> Callable[[], float]:
        """Seconds per step of ``STEPS``; the pruner is new each time, and its first masks, chosen
        when it is made, are not timed."""

        def train() -> float:
            pruner = None if way is None else way.attach(self.model, self.optimizer)
            for _ in range(WARM_UP):
                self.step()
            if DEVICE.type == "cuda":
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            taken = device_seconds(lambda: [self.step() for _ in range(STEPS)])
            name = PLAIN if way is None else way.words
            self.peak[name] = torch.cuda.max_memory_allocated() / 2**20
            if pruner is not None:
                pruner.detach()
            return taken / STEPS

        return train

    def waits(self, way: Way) -> str:
        """Where an update waits for the GPU, "" if nowhere."""
        pruner = way.attach(self.model, self.optimizer)
        self.step()
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(way.every):
                self.step()
            return ""
        except RuntimeError as error:
            return str(error).split("\n")[0]
        finally:
            torch.cuda.set_sync_debug_mode("default")
            pruner.detach()

    def as_on_a_cpu(self, way: Way) -> bool:
        """Whether masks chosen here are those that a CPU chooses of the same weights."""
        pruner = way.attach(self.model, self.optimizer)
        for _ in range(2):
            self.step()
        same = _chosen_on_a_cpu(pruner)
        pruner.detach()
        return same


def _chosen_on_a_cpu(pruner: Pruner) -> bool:
    rule = pruner.rule
    scores = {name: each.dense().cpu().abs() for name, each in pruner.pruned.items()}
    expected = rule.granularity.masks(rule.filters, scores, rule.keep)
    found = {name: mask.cpu() for name, mask in pruner.masks.items()}
    return all(torch.equal(found[name], mask) for name, mask in expected.items())


def measured(batch: int, compiled: bool, rounds: int) -> dict[str, Any]:
    training = Training(batch, compiled)
    training.step()  # compilation is not timed
    timed = {PLAIN: training.timed(None)}
    timed |= {way.words: training.timed(way) for way in WAYS}
    found = summary(in_turn(timed, rounds, warm_up=size(1, 0)))
    found["peak_mebibytes"] = training.peak
    if not compiled:
        each_update = [way for way in WAYS if way.every == 1]
        if DEVICE.type == "cuda":
            found["waits_for_the_gpu"] = {way.name: training.waits(way) for way in each_update}
        # (a filter's norm is rounded differently on a CPU: neurons may rightly differ)
        found["masks_as_on_a_cpu"] = {
            way.name: training.as_on_a_cpu(way)
            for way in each_update
            if way.name.endswith("dense") and not way.name.startswith("neuron")
        }
    return found


def main() -> None:
    arguments = asked(
        __doc__,
        gpu=True,
        rounds=size(5, 1),
        seconds=50.0,
        batches=size([128, 512], [2]),
        modes=size(["eager", "compiled"], ["eager"]),
    )
    torch.backends.cudnn.benchmark = True
    found: dict[str, dict[str, Any]] = {}
    left_out = []
    for mode in arguments.modes:
        for batch in arguments.batches:
            name = f"{mode}, batch {batch}"
            if found and time.perf_counter() - arguments.began > arguments.seconds:
                left_out.append(name)
                continue
            found[name] = measured(batch, mode == "compiled", arguments.rounds)
            print(f"{name}: done after {time.perf_counter() - arguments.began:.0f} s", flush=True)
            record = {
                "what": "seconds per training step with Pruner (keep 0.5) beside one without",
                "model": "ResNet-18, 3x3 stem, 32x32, bf16 autocast, channels last, SGD momentum",
                "steps": STEPS,
                "results": found,
            }
            keep(arguments, "pruner-gpu", record, "bfloat16 autocast")
    show(found)
    for name, each in found.items():
        plain = each["peak_mebibytes"][PLAIN]
        most = max(each["peak_mebibytes"].items(), key=lambda item: item[1])
        print(f"{name}: peak {plain:.0f} MiB without, at most {most[1]:.0f} MiB ({most[0]})")
        for question in ("waits_for_the_gpu", "masks_as_on_a_cpu"):
            if question in each:
                print(f"  {question}: {each[question]}")
    if left_out:
        print(f"not measured for want of time: {'; '.join(left_out)} (see --seconds, --modes)")


if __name__ == "__main__":
    main()
