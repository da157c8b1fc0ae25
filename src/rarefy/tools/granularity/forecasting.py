"""What a comparison will train and how long that takes here, before it starts."""

from __future__ import annotations

from pathlib import Path

from rarefy.tools import forecasting
from rarefy.tools.granularity.images import ImageGranularity
from rarefy.tools.granularity.sets import ONCE, TARGET, wants_features


def compared(experiment: ImageGranularity) -> str:
    """What is compared, in words."""
    levels = [one for one in experiment.labels if one not in (TARGET, ONCE)]
    tuned = len(experiment.coordinates()["checkpoint"]) * experiment.tune_epochs
    return (
        f"target {experiment.target}, pre-trained on {', '.join(levels)}, beside re-training and "
        f"one pass, {experiment.epochs} + {tuned} epochs"
    )


def _extra(experiment: ImageGranularity) -> float:
    """How much longer a training is than its epochs. Held-out and test images are looked at several
    times, all for the probe: a forward pass is a third of what training on an image takes. Features
    that are clustered take one more pre-training per seed."""
    sets, steps = experiment.sets(), experiment.cost().steps_per_cell
    asked, looks = len(sets.held_out) + len(sets.test), len(experiment.coordinates()["tuned"])
    found = 1 + ((looks + 1) * asked + len(sets.tuned)) / 3 / (steps * len(sets.tuned))
    if any(map(wants_features, experiment.labels)) and experiment.features == TARGET:
        found += experiment.epochs / steps / len(experiment.labels)
    return found


def forecast(
    experiment: ImageGranularity, store: Path, device: str, jobs: int | None, overwrite: bool
) -> str:
    """One line; nothing where nothing is left to do."""
    words = forecasting.forecast(experiment, store, device, jobs, overwrite, _extra(experiment))
    return f"{compared(experiment)}: {words}" if words else ""
