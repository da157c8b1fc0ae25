"""How long trainings take here and how much memory, before they start: one line for all tools."""

from __future__ import annotations

import contextlib
from pathlib import Path

from rarefy.core.contracts import Experiment
from rarefy.core.settings import peak_memory, resolve_device
from rarefy.core.threads import exactly
from rarefy.sweep.estimate import in_words, seconds_for
from rarefy.sweep.store import Store
from rarefy.sweep.workers import usual_jobs

START = 5.0
"""Seconds until further processes have imported what they need."""


def forecast(
    experiment: Experiment,
    store: Path,
    device: str,
    jobs: int | None,
    overwrite: bool,
    extra: float = 1.0,
) -> str:
    """One line; the first training is tried for a second. Good to a factor of about two.

    Arguments:
        experiment: whose cells are trainings, with ``seeds``.
        store: where it will be kept; what is done there is not counted.
        device, jobs, overwrite: as for the run.
        extra: how much longer a training is than its first one by its epochs alone (evaluation,
            pruning).

    Returns:
        ``10 trainings (5 seeds), 2 at once on the cpu: about 40 s (8 s per seed), 0.9 GB of memory;
        --seeds and --epochs change that``; nothing where nothing is left to do.

    Example:
        >>> forecast(experiment, Path("runs/train-digits-cnn"), "auto", None, False)
    """
    done = Store(store, experiment, "quick", "float32", overwrite).done()
    left = int((~done).sum())
    if not left:
        return ""
    where = resolve_device(device)
    at_once = min(usual_jobs(experiment, where) if jobs is None else jobs, left)
    words = f"{left} training{'s' if left > 1 else ''} ({experiment.seeds} seeds), "
    words += f"{at_once} at once on the {where.type}: "
    with exactly(1) if where.type == "cpu" else contextlib.nullcontext():
        seconds = seconds_for(experiment, where)
    if isinstance(seconds, str):
        return f"{words}how long is not known ({seconds})"
    per_cell = extra * seconds / len(done) / at_once
    start = START if at_once > 1 else 0.0
    return (
        f"{words}about {in_words(start + left * per_cell)} "
        f"({in_words(per_cell * len(done) / experiment.seeds)} per seed), "
        f"{at_once * peak_memory(where) / 1e9:.1f} GB of memory; --seeds and --epochs change that"
    )
