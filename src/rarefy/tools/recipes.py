"""How to train on a set when nothing is said: a rule by its size and kind, no search."""

from __future__ import annotations

from typing import Any

from rarefy.data.images import ImageData

SMALL, MIDDLE = 5_000, 20_000
"""Training images up to which a set is small or of middle size."""


LEAST_BATCH, LEAST_STEPS, LEAST_UPDATES = 8, 8, 400
"""However small a set: images per batch, batches per epoch, updates in all. With fewer updates a
network, and even more a pruned one, is still on its way."""


def usual_recipe(data: ImageData, network: str, samples: int = 0) -> dict[str, Any]:
    """Parameters of a training: batch, epochs, learning rate and what is done to the images.

    A small set needs small batches for enough updates. Photographs (three channels) are moved by an
    eighth of their size and mirrored, as is usual for CIFAR; grey images may be digits or letters,
    which mirroring would spoil, and are left as they are. Transformers are trained with AdamW,
    LeNet (which has no BatchNorm) at a small rate.
    """
    images = min(samples or len(data.train), len(data.train))
    channels, size, _ = data.shape
    batch = 64 if images <= SMALL else 128 if images <= MIDDLE else 512
    while batch > LEAST_BATCH and images // batch < LEAST_STEPS:
        batch //= 2
    epochs = 10 if images > MIDDLE and channels == 1 else 20
    found: dict[str, Any] = {
        "batch": batch,
        "epochs": max(epochs, -(-LEAST_UPDATES // max(images // batch, 1))),
        "optimizer": "sgd",
        "learning_rate": 0.1 if batch == 512 else 0.05,
        "weight_decay": 5e-4,
        "shift": size // 8 if channels == 3 else 0,
        "flip": channels == 3,
    }
    if network == "lenet":
        # without BatchNorm: at 0.05 and more some seeds' training loss stays at that of guessing
        found["learning_rate"] = 0.02
    if network == "vit":
        found |= {"optimizer": "adamw", "learning_rate": 0.002, "weight_decay": 0.05}
    return found
