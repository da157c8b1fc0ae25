"""How far a finite setting is from Condition 1 of 003, as a table."""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from rarefy.core.picture import Table
from rarefy.data.noise_structure import gram
from rarefy.studies.benign._benign import ClassNoiseStudy, Training
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import COLUMNS, table_rows


def geometry_of(eigenvalues: Tensor) -> NoiseGeometry:
    """Of noise matrices with one basis, from their eigenvalues (1, classes, d)."""
    values = eigenvalues[0].double().numpy()
    there = values > 0
    smallest = np.where(there, values, np.inf).min(axis=1)
    return NoiseGeometry(
        gram=gram(eigenvalues.double())[0].numpy(),
        operator=(values[:, None, :] * values[None, :, :]).max(axis=2),
        trace=np.square(values).sum(axis=1),
        rank=there.sum(axis=1),
        spread=values.max(axis=1) / smallest,
    )


def initial_std(study: ClassNoiseStudy) -> float:
    """sigma_0 of the initial filters: of uniform ones on +-1/sqrt(d), 1/sqrt(3 d)."""
    return study.sigma_0 if study.initialisation == "gaussian" else 1 / math.sqrt(3 * study.d)


def conditions_table(
    study: ClassNoiseStudy, eigenvalues: Tensor, size: int, strength: float, training: Training
) -> Table:
    """Condition 1 for equal classes, C = 1."""
    conditions = condition_1(
        geometry=geometry_of(eigenvalues),
        norms=np.full(study.classes, strength),
        samples=study.classes * size,
        filters=study.filters,
        d=study.d,
        sigma_0=initial_std(study),
        lr=training.lr,
        output_scale=study.scale,
        horizon=float(max(training.steps, 2)),
    )
    return Table(
        "conditions",
        f"Condition 1 at |S| = {size}, |u| = {strength:g}",
        "What the theorem assumes (003 Condition 1, with C = 1 and delta = 0.1), and by how much "
        "this finite setting misses it.",
        COLUMNS,
        [list(row) for row in table_rows(conditions)],
    )
