"""What a comparison will train and how long that takes here, before it starts."""

from __future__ import annotations

from pathlib import Path

import torch

from rarefy.core.settings import resolve_device
from rarefy.sweep.estimate import estimates, in_words
from rarefy.sweep.store import Store
from rarefy.sweep.workers import usual_jobs
from rarefy.tools.granularity.experiment import GranularityExperiment
from rarefy.tools.granularity.sets import ONCE, TARGET, load_sets, wants_features


def compared(experiment: GranularityExperiment, cells: int) -> str:
    """What is compared, in words."""
    levels = [one for one in experiment.labels if one not in (TARGET, ONCE)]
    tuned = len(experiment.coordinates()["checkpoint"]) * experiment.tune_epochs
    return (
        f"target {experiment.target}, pre-trained on {', '.join(levels)}, beside re-training and "
        f"one pass: {cells} trainings of {experiment.epochs} + {tuned} epochs, "
        f"{experiment.seeds} seeds"
    )


def _with_evaluation(experiment: GranularityExperiment) -> float:
    """Held-out and test images are looked at several times, all for the probe: a forward pass is a
    third of what training on an image takes."""
    sets = load_sets(experiment.source(), torch.device("cpu"))
    asked, looks = len(sets.held_out) + len(sets.test), len(experiment.coordinates()["tuned"])
    shown = experiment.cost().steps_per_cell * len(sets.tuned)
    return 1 + ((looks + 1) * asked + len(sets.tuned)) / 3 / shown


def forecast(
    experiment: GranularityExperiment, store: Path, device: str, jobs: int | None, overwrite: bool
) -> str:
    """One line; a network is tried for a second, in a process of its own. Nothing where nothing is
    left to do."""
    done = Store(store, experiment, "quick", "float32", overwrite).done()
    left = int((~done).sum())
    if not left:
        return ""
    where = resolve_device(device)
    ((_, seconds),) = estimates({experiment.name: experiment}, where)
    if isinstance(seconds, str):
        return f"{compared(experiment, left)}; how long is not known: {seconds}"
    at_once = min(usual_jobs(experiment, where) if jobs is None else jobs, left)
    per_cell = seconds / len(done) / at_once * _with_evaluation(experiment)
    if any(map(wants_features, experiment.labels)) and experiment.features == TARGET:
        # one more pre-training per seed, whose features are clustered
        per_epoch = per_cell / experiment.cost().steps_per_cell
        per_cell += per_epoch * experiment.epochs / len(experiment.labels)
    each = per_cell * len(experiment.labels)
    return (
        f"{compared(experiment, left)}; about {in_words(per_cell * left)} "
        f"({in_words(each)} per seed)"
    )
