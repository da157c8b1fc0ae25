"""Small pruning studies, and functions of the coordinates of made-up results."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import xarray as xr
from made_up_results import Made

from rarefy.core.contracts import Context, Study, Verdict
from rarefy.studies import get_study
from rarefy.sweep.grid import Grid, grid_of

ContrastPruning = get_study("contrast-pruning")
FLOAT64 = Context(dtype=torch.float64)
SAME = 1e-12
START = 8
SMALL: dict[str, Any] = {
    "seeds": 2,
    "alpha": (0.0, 0.2, 0.4),
    "start": (0, START),
    "eps_min": (0.3,),
    "bias_scale": (0.0, 1.0),
    "d1": 24,
    "batch": 16,
    "steps": 12,
    "reads": (0, 4, START, 12),
    "relax": 15,
    "effect_batches": 3,
}


def pruning(**options: Any) -> ContrastPruning:
    study = ContrastPruning.at("tiny", **SMALL | options)
    assert isinstance(study, ContrastPruning)
    return study


def simulated(study: Study) -> tuple[Grid, dict[str, np.ndarray]]:
    grid = grid_of(study)
    return grid, study.simulate(grid.cells(np.arange(len(grid))), FLOAT64)


def close(found: np.ndarray, expected: np.ndarray, name: str = "") -> None:
    largest = np.nanmax(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=SAME, atol=SAME * largest, err_msg=name)


def outcomes(verdicts: list[Verdict], *words: str) -> set[str]:
    """The outcomes of the verdicts whose setting has all the words."""
    chosen = [v for v in verdicts if all(word in f"{v.claim} {v.setting}" for word in words)]
    assert chosen, words
    return {verdict.outcome for verdict in chosen}


def by_group(minority: Made, majority: Made) -> Made:
    return lambda c: xr.where(c["group"] == "minority", minority(c), majority(c))


def with_pruning(pruned: Made, without: Made) -> Made:
    return lambda c: xr.where(c["alpha"] > 0, pruned(c), without(c))


def one(c: xr.Dataset) -> float:
    return 1.0
