"""How to pre-train on a set when nothing is said: a rule by its size and kind, no search."""

from __future__ import annotations

from typing import Any

from rarefy.core.errors import bad_value

BATCH, LEAST_STEPS = 512, 3
"""Images per update where there are enough, and updates per epoch where there are not."""
RATE = 0.5
"""Learning rate at 512 images per update (Jiang et al. 2021), in proportion at others."""
SMALL, EPOCHS, UPDATES = 5_000, 500, 240
"""A small set is shown for about so many updates; others for 500 epochs."""
TINY = 16
"""Pixels below which a small network will do."""


def usual_pretraining(
    images: int, size: int, network: str | None, batch: int | None
) -> dict[str, Any]:
    """Network, batch, epochs and learning rate for so many images of ``size`` pixels a side."""
    if batch is not None and batch < 2:
        raise bad_value("batch", batch, "must be at least 2")
    if batch is None:
        batch = BATCH
        while batch > 2 and images // batch < LEAST_STEPS:
            batch //= 2
    epochs = EPOCHS
    if images <= SMALL:
        epochs = max(1, round(UPDATES / max(images // max(batch, 1), 1)))
    return {
        "network": network or ("cnn" if size < TINY else "resnet18"),
        "batch": batch,
        "epochs": epochs,
        "learning_rate": RATE * batch / BATCH,
        "warm_up": 0.1 if images <= SMALL else 0.02,
    }
