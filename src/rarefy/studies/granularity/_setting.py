"""The setting of a study in a table, and curves of shares: what pictures and tables need."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.picture import Curve, Table
from rarefy.measure.curves import mean_curve

if TYPE_CHECKING:
    from rarefy.studies.granularity._granularity import GranularityStudy

PATCHES_AND_RATE = (
    "(Patches x2 doubles the learning rate too: an update is divided by the number of patches.)"
)
"""For captions of tables of sensitivity."""

MEANINGS = {
    "d": "coordinates of a patch",
    "patches": "P, patches of a sample",
    "feature_patches": "s*, patches with the common feature, and as many with the subclass's",
    "spread": "iota, of feature strengths",
    "sigma": "noise of every patch",
    "distractors": "patches of a hard sample with the other side's common feature",
    "distraction": "their strength",
    "strong": "noise of the one strong patch of a hard sample",
    "counts": "how many patches have features",
    "neurons": "m, neurons an output",
    "sigma_0": "std of initial weights",
    "threshold": "c_b, of the initial bias",
    "lr": "learning rate",
    "batch": "samples of an update",
    "steps": "updates",
    "test_each": "test samples of each kind and subclass",
}


def setting_table(study: GranularityStudy, **others: GranularityStudy) -> Table:
    """All that the verdicts' settings leave out; ``others``: instead of the study, parts of its
    grid that are set up otherwise, by name."""
    columns = list(others.values()) or [study]
    rows = [
        (name, meaning, *(_text(getattr(each, name)) for each in columns))
        for name, meaning in MEANINGS.items()
    ]
    heads = tuple(others) or ("value",)
    return Table(
        "setting",
        "The setting",
        f"Verdicts name only part of it. Where nothing else is said, {study.seeds} seeds.",
        ("parameter", "what it is", *heads),
        rows,
    )


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def share_curve(
    label: str, x: ArrayLike, samples: ArrayLike, role: str | None = None, style: str = "solid"
) -> Curve:
    """``mean_curve`` for shares of samples: the band of a mean near 0 or 1 would leave [0, 1]."""
    curve = mean_curve(label, x, samples, role, style)
    if curve.low is None or curve.high is None:
        return curve
    return dataclasses.replace(
        curve, low=np.clip(curve.low, 0.0, 1.0), high=np.clip(curve.high, 0.0, 1.0)
    )
