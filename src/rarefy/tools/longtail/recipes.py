"""How to pre-train on a set when nothing is said: a rule by its size and kind and by the device, no
search. On a CPU the trainings of a small set take about a minute, those of a large one some."""

from __future__ import annotations

from typing import Any

from rarefy.core.errors import bad_value

BATCH, LEAST_STEPS = 512, 3
"""Images per update where there are enough, and updates per epoch where there are not."""
RATE = 0.5
"""Learning rate at 512 images per update (Jiang et al. 2021), in proportion at others."""
SMALL, EPOCHS, UPDATES = 5_000, 500, 240
"""A small set is shown for about so many updates; others for 500 epochs."""
CPU_UPDATES = 480
"""Of larger sets on a CPU."""
TINY = 16
"""Pixels below which a small network will do."""


def usual_pretraining(
    images: int, size: int, network: str | None, batch: int | None, device: str
) -> dict[str, Any]:
    """Network, batch, epochs and learning rate for so many images of ``size`` pixels a side on a
    ``cpu`` or ``cuda``. (An update of 64 images of 32 x 32 pixels takes one core 0.05 s with LeNet,
    0.85 s with the CNN and 5 s with a ResNet-18.)"""
    if batch is not None and batch < 2:
        raise bad_value("batch", batch, "must be at least 2")
    if batch is None:
        batch = BATCH
        while batch > 2 and images // batch < LEAST_STEPS:
            batch //= 2
    steps = max(images // max(batch, 1), 1)
    epochs = EPOCHS
    if images <= SMALL or device == "cpu":
        epochs = round((UPDATES if images <= SMALL else CPU_UPDATES) / steps)
    larger = "lenet" if device == "cpu" else "resnet18"
    return {
        "network": network or ("cnn" if size < TINY else larger),
        "batch": batch,
        "epochs": max(epochs, 1),
        "learning_rate": RATE * batch / BATCH,
        "warm_up": 0.1 if images <= SMALL else 0.02,
    }
