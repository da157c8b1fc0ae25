"""How far a finite setting is from Condition 1 of 003, for noise matrices with one basis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from rarefy.core.picture import Table
from rarefy.theory.benign_conditions import NoiseGeometry, condition_1
from rarefy.theory.conditions import COLUMNS, Condition, table_rows

if TYPE_CHECKING:
    from rarefy.studies.benign._benign import ClassNoiseStudy, Training


def diagonal_geometry(eigenvalues: np.ndarray) -> NoiseGeometry:
    """``NoiseGeometry.of`` for A_k that are diagonal in one basis, (classes, d): the matrices need
    not be formed."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    there = values > 0
    smallest = np.where(there, values, np.inf).min(axis=1)
    return NoiseGeometry(
        gram=(values**2) @ (values**2).T,
        operator=(values[:, None, :] * values[None, :, :]).max(axis=2),
        trace=(values**2).sum(axis=1),
        rank=there.sum(axis=1).astype(np.float64),
        spread=values.max(axis=1) / smallest,
    )


def initial_std(study: ClassNoiseStudy) -> float:
    """sigma_0 of the initial filters; PyTorch's are uniform on +-1/sqrt(d)."""
    return study.sigma_0 if study.initialisation == "gaussian" else 1 / math.sqrt(3 * study.d)


def conditions(
    study: ClassNoiseStudy,
    eigenvalues: np.ndarray,
    strength: float,
    samples: int,
    training: Training,
) -> list[Condition]:
    """Condition 1 with C = 1 for one setting of a study; eigenvalues: (classes, d); samples: n."""
    return condition_1(
        geometry=diagonal_geometry(eigenvalues),
        norms=np.full(study.classes, strength),
        samples=samples,
        filters=study.filters,
        d=study.d,
        sigma_0=initial_std(study),
        lr=training.lr,
        output_scale=study.scale,
        horizon=float(max(training.steps, 2)),
    )


def condition_table(found: list[Condition], where: str) -> Table:
    return Table(
        "conditions",
        "How far the setting is from what Theorem 1 assumes",
        f"003 Condition 1 with C = 1 and delta = 0.1, {where}. The theorem speaks of settings in "
        "which every line holds.",
        COLUMNS,
        [list(row) for row in table_rows(found)],
    )
