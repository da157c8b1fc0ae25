"""How to train on a set when nothing is said: a rule by its size and kind, no search."""

from __future__ import annotations

from typing import Any

import torch

from rarefy.data.images import ImageData

SMALL, MIDDLE = 5_000, 20_000
"""Training images up to which a set is small or of middle size."""


SEEDS, FEW_SEEDS = 5, 3
"""Repeats where they are affordable (fewer than five decide nothing), and where they are not."""
AFFORDABLE = 600.0
"""Seconds of one core for a training of which ten are affordable: under an hour on two cores."""
SHOWN = 200_000
"""Images of 32 x 32 that a training is shown on a CPU: about two minutes of the small network on
one core."""
PACE = {
    "lenet": 0.25e-3,
    "cnn-small": 0.7e-3,
    "cnn": 5e-3,
    "vit": 3e-3,
    "resnet9": 24e-3,
    "resnet18": 36e-3,
}
"""Seconds of one core for an image of 32 x 32 in training; others' networks are taken for a cnn."""
TINY = 16
"""Pixels per side below which the usual cnn is small already."""


LEAST_BATCH, LEAST_STEPS, LEAST_UPDATES = 8, 8, 400
"""However small a set: images per batch, batches per epoch, updates in all. With fewer updates a
network, and even more a pruned one, is still on its way."""


def usual_network(data: ImageData, device: torch.device) -> str:
    """The cnn on a GPU, and a ResNet-9 for many photographs; on a CPU the cnn's small form, a
    seventh of the work: seven convolutions that begin with 16 filters."""
    if device.type == "cuda" and _many_photographs(data.shape, len(data.train)):
        return "resnet9"
    return "cnn" if device.type == "cuda" or data.shape[1] < TINY else "cnn-small"


def _many_photographs(shape: tuple[int, int, int], images: int) -> bool:
    return shape[0] == 3 and shape[1] >= 32 and images > MIDDLE


def usual_seeds(data: ImageData, network: str, epochs: int, samples: int, on_cpu: bool) -> int:
    """Five, or three where five would take hours."""
    images = min(samples or len(data.train), len(data.train))
    seconds = PACE.get(network, PACE["cnn"]) * images * epochs * _size(data)
    return FEW_SEEDS if on_cpu and seconds > AFFORDABLE else SEEDS


def _size(data: ImageData) -> float:
    """Of an image, in those of 32 x 32."""
    return data.shape[1] * data.shape[2] / 32**2


def usual_recipe(
    data: ImageData, network: str, samples: int = 0, on_cpu: bool = False
) -> dict[str, Any]:
    """Parameters of a training: batch, epochs, learning rate and what is done to the images.

    ``on_cpu``: a large set is shown fewer times there.

    A small set needs small batches for enough updates. Photographs (three channels) are moved by an
    eighth of their size and mirrored, as is usual for CIFAR; grey images may be digits or letters,
    which mirroring would spoil, and are left as they are. Transformers are trained with AdamW,
    LeNet (which has no BatchNorm) at a small rate. A ResNet-9 on many photographs gets what was
    best on held-out training images of CIFAR-10 (benchmarks/bench_training_gpu.py).
    """
    images = min(samples or len(data.train), len(data.train))
    channels, size, _ = data.shape
    batch = 64 if images <= SMALL else 128 if images <= MIDDLE else 512
    while batch > LEAST_BATCH and images // batch < LEAST_STEPS:
        batch //= 2
    epochs = 10 if images > MIDDLE and channels == 1 else 20
    if on_cpu:
        epochs = min(epochs, max(round(SHOWN / images / _size(data)), 1))
    found: dict[str, Any] = {
        "batch": batch,
        "epochs": max(epochs, -(-LEAST_UPDATES // max(images // batch, 1))),
        "optimizer": "sgd",
        "learning_rate": 0.1 if batch == 512 else 0.05,
        "weight_decay": 5e-4,
        "warm_up": 0.1,
        "label_smoothing": 0.0,
        "shift": size // 8 if channels == 3 else 0,
        "flip": channels == 3,
    }
    if network == "resnet9" and _many_photographs(data.shape, images):
        longer = {} if on_cpu else {"epochs": 36}
        found |= {"learning_rate": 0.4, "weight_decay": 1e-3, **longer}
        found |= {"warm_up": 0.2, "label_smoothing": 0.1}
    if network == "lenet":
        # without BatchNorm: at 0.05 and more some seeds' training loss stays at that of guessing
        found["learning_rate"] = 0.02
    if network == "vit":
        found |= {"optimizer": "adamw", "learning_rate": 0.002, "weight_decay": 0.05}
    return found
