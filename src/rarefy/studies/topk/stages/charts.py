"""Picture and tables of ``topk-stages``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.topk.stages.claims import EXPONENTS, LEMMA, exponent, stage_of
from rarefy.studies.topk.stages.experiment import StagesExperiment
from rarefy.theory.conditions import COLUMNS, table_rows

EXPRESSION = {"signal": "m T/(eta mu^2)", "noise": "m n/(eta sigma_p^2 d)"}


def pictures(experiment: StagesExperiment, results: xr.Dataset) -> list[Picture]:
    level = float(results["level"].values[-1])
    return [
        Picture(
            "stages",
            "Length of the first stage, one quantity varied at a time",
            f"Steps until all coefficients that begin on the positive side reach {level:g}: gamma "
            f"in the signal regime, rho in the noise regime; {experiment.setting}, mean and 95 % "
            f"interval of {results.sizes['seed']} runs. Dotted: the exponents of the lemmas.",
            [
                _panel(stage_of(results.sortby("factor"), regime), regime)
                for regime in texts(results, "regime")
            ],
        )
    ]


def _panel(stage: xr.DataArray, regime: str) -> Lines:
    factor = stage["factor"].values
    curves = [
        mean_curve(str(varied), factor, by_seed(stage.sel(varied=varied), "factor"))
        for varied in stage["varied"].values
    ]
    base = float(factor[np.abs(np.log(factor)).argmin()])
    middle = float(stage.sel(factor=base).mean())
    for power in sorted({float(power) for power in EXPONENTS[regime].values()}):
        # from the cell that nothing is varied in, along every exponent the lemma has
        line = middle * (factor / base) ** power
        curves.append(Curve(f"exponent {power:g}", factor, line, role="theory", style="dotted"))
    x_label, y_label = "factor by which the quantity is multiplied", "length of stage 1 (steps)"
    return Lines(curves, x_label, y_label, f"{regime}: {EXPRESSION[regime]}", True, True)


def tables(experiment: StagesExperiment, results: xr.Dataset) -> list[Table]:
    rows: list[list[object]] = []
    for regime, varied in product(texts(results, "regime"), texts(results, "varied")):
        slope, power = exponent(stage_of(results, regime).sel(varied=varied)), EXPONENTS[regime]
        measured = f"{slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}]"
        rows.append([f"{regime} ({LEMMA[regime]})", varied, power[varied], measured])
    return [
        Table(
            "exponents",
            "Exponents of the stage length",
            "Log-log slopes with 95 % intervals over runs. In T they differ from the lemma's "
            "because the constant depends on T: residuals fall from 1 - 1/T as scores grow.",
            ["regime", "varied", "lemma", "measured"],
            rows,
        ),
        _conditions(experiment, results),
    ]


def _conditions(experiment: StagesExperiment, results: xr.Dataset) -> Table:
    varied, factor = texts(results, "varied"), results["factor"].values.tolist()
    rows = []
    for regime in texts(results, "regime"):
        lines = experiment.worst_conditions(list(product([regime], varied, factor)))
        rows += [[regime, *row] for row in table_rows(lines)]
    return Table(
        "conditions",
        "Condition 4.1 where the cells are farthest from it",
        "Each line at the cell that misses it most; delta = 0.1, T* the number of steps, the "
        "constant of Theta in d read as 1, that of O in the learning rate as 4.",
        ("regime", *COLUMNS),
        rows,
    )
