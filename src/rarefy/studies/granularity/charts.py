"""What pictures and tables of the laboratory share: colours, curves of shares, and the tables of
the setting, of its premises and of what changes with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rarefy.core.parameters import parameters_of
from rarefy.core.picture import Curve, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.granularity.experiment import AS_CHOSEN, GranularityExperiment
from rarefy.studies.granularity.premises import premises
from rarefy.studies.granularity.stored_sets import StoredSetExperiment
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.words import seeds_in_words, shown
from rarefy.theory.conditions import COLUMNS, table_rows
from rarefy.theory.granularity_conditions import smallest_log_dimension

ROLES = {"coarse": "minority", "fine": "majority", "one label a sample": "mixed"}
"""Colours: the same for these labels in all pictures of the laboratory."""
PATCHES_AND_RATE = (
    "(Patches x2 doubles the learning rate too: an update is divided by the number of patches.)"
)
"""For captions of tables of sensitivity."""


def share_curve(
    label: str, x: ArrayLike, samples: ArrayLike, role: str | None = None, style: str = "solid"
) -> Curve:
    """``mean_curve`` for shares of samples: the band of a mean near 0 or 1 would leave [0, 1]."""
    curve = mean_curve(label, x, samples, role, style)
    if curve.low is None or curve.high is None:
        return curve
    return replace(curve, low=np.clip(curve.low, 0.0, 1.0), high=np.clip(curve.high, 0.0, 1.0))


def level(label: str, ends: ArrayLike, value: float, role: str, style: str = "dotted") -> Curve:
    """A horizontal line between two ends."""
    return Curve(label, np.asarray(ends, dtype=float), np.full(2, value), role=role, style=style)


def setting_table(setting: GranularityExperiment, **others: GranularityExperiment) -> Table:
    """All that the verdicts' settings leave out; ``others``: instead of the setting, parts of the
    grid that are set up otherwise, by name."""
    columns = list(others.values()) or [setting]
    rows = [
        (name, one.meaning, *(_text(getattr(each, name)) for each in columns))
        for name, one in parameters_of(GranularityExperiment).items()
        if name not in ("seeds", "bias")
    ]
    return Table(
        "setting",
        "The setting",
        f"Verdicts name only part of it. Where nothing else is said, {setting.seeds} seeds.",
        ("parameter", "what it is", *(others or ("value",))),
        rows,
    )


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def premise_table(setting: GranularityExperiment, subclasses: int, where: str = "") -> Table:
    """The table of App. B.3; ``where`` says of which part of a grid."""
    found = premises(setting, subclasses)
    rows = zip(found.values(), table_rows(list(found)), strict=True)
    return Table(
        "premises",
        "How far the setting is from what the theorems assume",
        f"004 App. B.3 (m: App. C, G) with {subclasses} subclasses a side{where}; polylog(d) is "
        "read as log(d) and every constant as 1. Lines 4 and 10 together need log(d) of at least "
        f"{smallest_log_dimension():.0f}: no computer reaches that, so what is judged is whether a "
        "finite network already behaves as the theorems say.",
        ("labels", *COLUMNS),
        [[labels, *row] for labels, row in rows],
    )


def stored_set_tables(experiment: StoredSetExperiment) -> list[Table]:
    """The setting, with fine-tuning, and its premises, at the main noise."""
    noise, steps = experiment.main_noise, str(experiment.tune_steps)
    here = experiment.at_noise(noise)
    setting = setting_table(here)
    row = ("tune_steps", "updates of fine-tuning, with fresh easy samples", steps)
    premise = premise_table(here, experiment.subclasses, f", noise {noise:g}")
    return [replace(setting, rows=[*setting.rows, row]), premise]


def sensitivity_table(
    results: xr.Dataset, columns: Mapping[str, xr.DataArray], caption: str
) -> Table:
    """One row per variation; columns have the dimensions variation and seed."""
    rows = []
    for variation in results["variation"].values:
        values = (by_seed(column.sel(variation=variation)) for column in columns.values())
        rows.append((str(variation), *map(shown, values)))
    return Table(
        "sensitivity",
        "What changes when the setting does",
        f"{caption} One thing is changed at a time, all else is {AS_CHOSEN!r}; means with 95 % "
        f"intervals over {seeds_in_words(results)}.",
        ("variation", *columns),
        rows,
    )
