"""Two random views of every image at once, beside a plain loop that makes them one by one.

    python benchmarks/bench_views.py [--rounds 5]

32 x 32 colour images with the usual views of CIFAR (crop, mirror, jitter, greyscale). The plain
loop does what a transform of torchvision does, image by image: crop, interpolate, the four changes
of colour in the order drawn. On a CPU: microseconds per view, eager and compiled. On a GPU: an
epoch of 12,406 images in bf16, and its share of a SimCLR epoch of a ResNet-18 (batch 512, compiled)
measured in the same run; at most 5 % is wanted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from harness import DEVICE, asked, in_turn, keep, milliseconds, size, timed
from torch import Tensor
from torch.nn import functional

from rarefy.nets.resnet import ResNet18
from rarefy.train.image_batches import Scaling
from rarefy.train.views import Views, colour
from rarefy.train.views.view_parameters import ViewParameters

VIEWS = Views.default(3, 32)
SCALING = Scaling((0.49, 0.48, 0.45), (0.25, 0.24, 0.26))
EPOCH, BATCH = size((12_406, 512), (1, 1))
"""CIFAR10-LT (5,000 to 50 images per class), and images in a batch of two views each."""
CPU_IMAGES, PLAIN_IMAGES = size((512, 128), (1, 1))
WANTED = 0.05
CHANGES = (colour.brightness, colour.contrast, colour.saturation, colour.hue)


def some_images(count: int, device: torch.device) -> Tensor:
    generator = torch.Generator(device).manual_seed(0)
    shape = (count, 3, 32, 32)
    return torch.randint(0, 256, shape, generator=generator, device=device, dtype=torch.uint8)


def plain_loop(images: Tensor, drawn: ViewParameters) -> Tensor:
    """A view at a time; what was drawn is read from the device once, before the loop."""
    rows = zip(*(one.tolist() for one in drawn[:-1]), strict=True)  # (nothing comes behind)
    views = []
    for row, (box, mirrored, factors, order, jittered, greyed, *_) in enumerate(rows):
        top, left, tall, wide = box
        view = images[row // 2, None, :, top : top + tall, left : left + wide].float() / 255
        view = functional.interpolate(
            view, (32, 32), mode=VIEWS.way, align_corners=False, antialias=True
        ).clamp(0, 1)
        if mirrored:
            view = view.flip(3)
        if jittered:
            for which in order:
                strength = torch.full((1,), factors[which], device=view.device)
                view = CHANGES[which](view, strength)
        if greyed:
            view = colour.greyscale(view)
        views.append(SCALING(view, torch.float32)[0])
    return torch.stack(views).unflatten(0, (-1, 2)).transpose(0, 1)


def check(device: torch.device) -> dict[str, float]:
    """How far batched views are from the plain loop's, at most, in units of the std."""
    images = some_images(PLAIN_IMAGES, device)
    generator = torch.Generator(device)
    drawn = VIEWS.draw(PLAIN_IMAGES, 32, 32, generator.manual_seed(1))
    wanted = plain_loop(images, drawn)
    found = {}
    for name, compile_it in (("eager", False), ("compiled", True)):
        views = VIEWS.make(images, generator.manual_seed(1), SCALING, compile_it=compile_it)
        found[name] = float((views - wanted).abs().max())
        if not found[name] < 1e-4:
            raise SystemExit(f"{name} views differ from the plain loop's by {found[name]}")
    return found


def on_cpu(rounds: int) -> dict[str, Any]:
    """Microseconds per view of each way, all ways in turn."""
    device = torch.device("cpu")
    images, generator = some_images(CPU_IMAGES, device), torch.Generator().manual_seed(0)
    few = images[:PLAIN_IMAGES]

    def plain() -> Tensor:
        return plain_loop(few, VIEWS.draw(PLAIN_IMAGES, 32, 32, generator))

    ways: dict[str, tuple[int, Callable[[], Tensor]]] = {
        "plain loop": (PLAIN_IMAGES, plain),
        "batched, eager": (
            CPU_IMAGES,
            lambda: VIEWS.make(images, generator, SCALING, compile_it=False),
        ),
        "batched, compiled": (
            CPU_IMAGES,
            lambda: VIEWS.make(images, generator, SCALING, compile_it=True),
        ),
    }

    def microseconds(count: int, make: Callable[[], Tensor]) -> float:
        return timed(make).wall / (2 * count) * 1e6

    calls = {name: partial(microseconds, *way) for name, way in ways.items()}
    taken = in_turn(calls, rounds, warm_up=1)  # compiled once
    ratios = {
        name: [plain / mine for plain, mine in zip(taken["plain loop"], one, strict=True)]
        for name, one in taken.items()
    }
    print(f"{'us per view':30} {'median':>10} {'x plain loop':>14}")
    for name, one in taken.items():
        print(f"{name:30} {statistics.median(one):10.1f} {statistics.median(ratios[name]):14.1f}")
    return {"us_per_view": taken, "times_plain": ratios}


def training_step(device: torch.device) -> Callable[[Tensor], None]:
    """One SimCLR step on a batch of both views (2, n, ...), without anything around it."""
    model = ResNet18(3, 32, 128).to(device, memory_format=torch.channels_last)
    forward = torch.compile(model) if device.type == "cuda" else model
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, fused=True)
    partner = torch.arange(2 * BATCH, device=device).roll(BATCH)
    itself = torch.eye(2 * BATCH, dtype=torch.bool, device=device)

    def step(views: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            # not views.flatten(0, 1), which loses the layout of a slice
            features = forward(torch.cat(list(views)))
        features = functional.normalize(features.float(), dim=1)
        likeness = (features @ features.T / 0.2).masked_fill(itself, float("-inf"))
        functional.cross_entropy(likeness, partner).backward()
        optimizer.step()

    return step


def on_gpu(rounds: int) -> dict[str, Any]:
    """Milliseconds per epoch: views eager and compiled, a plain loop scaled up, the training."""
    images, generator = some_images(EPOCH, DEVICE), torch.Generator(DEVICE).manual_seed(0)
    few, drawn = images[:PLAIN_IMAGES], VIEWS.draw(PLAIN_IMAGES, 32, 32, generator)
    options = (SCALING, torch.bfloat16, torch.channels_last)

    def make(compile_it: bool) -> Tensor:
        return VIEWS.make(images, generator, *options, compile_it=compile_it)

    first = timed(lambda: make(True))
    views, step, whole = first.result, training_step(DEVICE), EPOCH // BATCH

    def epoch() -> None:
        for number in range(whole):
            step(views[:, number * BATCH : (number + 1) * BATCH])

    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = {
        "compiled": milliseconds(lambda: make(True), rounds),
        "peak_bytes": torch.cuda.max_memory_allocated() - before,
        "eager": milliseconds(lambda: make(False), rounds),
        "parameters alone": milliseconds(lambda: VIEWS.draw(EPOCH, 32, 32, generator), rounds),
        "plain loop": milliseconds(lambda: plain_loop(few, drawn), 3, 1) * EPOCH / PLAIN_IMAGES,
        "training": milliseconds(epoch, rounds),
        "first_call_seconds": first.wall,
    }
    share = found["compiled"] / (found["compiled"] + found["training"])
    for name in ("plain loop", "eager", "compiled", "parameters alone", "training"):
        print(f"{name:30} {found[name]:10.2f} ms per epoch")
    print(f"views are {100 * share:.2f} % of an epoch; wanted at most {100 * WANTED:.0f} %")
    return {"milliseconds": found, "share_of_epoch": share, "wanted": WANTED}


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    what = "two views (crop, mirror, jitter, greyscale) of 32 x 32 colour images"
    record: dict[str, Any] = {"what": what, "views": vars(VIEWS), "rounds": arguments.rounds}
    record["difference"] = check(DEVICE)
    if DEVICE.type == "cpu":
        keep(arguments, "views-cpu", record | {"cpu": on_cpu(arguments.rounds)})
    if DEVICE.type == "cuda" or arguments.tiny:
        arguments.device, torch.backends.cudnn.benchmark = DEVICE, True
        keep(arguments, "views-gpu", record | {"gpu": on_gpu(arguments.rounds)}, "bfloat16")


if __name__ == "__main__":
    main()
