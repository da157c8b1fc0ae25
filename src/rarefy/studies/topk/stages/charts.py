"""Picture and tables of ``topk-stages``."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.topk.stages.claims import EXPONENTS, exponent, stage_of
from rarefy.studies.topk.stages.experiment import StagesExperiment
from rarefy.theory.conditions import COLUMNS, table_rows
from rarefy.theory.unpruned_limit import limit_stage

EXPRESSION = {"signal": "m T/(eta mu^2)", "noise": "m n/(eta sigma_p^2 d)"}
LEMMA = {"signal": "Lemma F.1", "noise": "Lemma H.1"}


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
                _panel(stage_of(results.sortby("factor"), regime, level), regime)
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
    levels = results["level"].values.tolist()
    rows: list[list[object]] = []
    for regime, varied in product(texts(results, "regime"), texts(results, "varied")):
        rows.append([f"{regime} ({LEMMA[regime]})", varied, EXPONENTS[regime][varied]])
        for level in levels:
            slope = exponent(stage_of(results, regime, level).sel(varied=varied))
            limit = _limit_exponent(experiment, results["factor"].values, regime, varied, level)
            measured = f"{slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}]"
            rows[-1] += [measured, f"{limit:.3f}"]
    columns = ["regime", "varied", "claimed"]
    for level in levels:
        columns += [f"measured, level {level:g}", f"closed form, level {level:g}"]
    return [
        Table(
            "exponents",
            "Exponents of the stage length",
            "Log-log slopes with 95 % intervals over runs. Closed form: endless d, half of the "
            "filters active, residual (T-1)/(T-1+e^F) while the own score F grows; it differs from "
            "the claim in T alone, since the constant depends on T. It tells the direction, not "
            "the number: measured is the slowest coefficient of all, and the share of filters "
            "that respond to a sample's noise grows above a half.",
            columns,
            rows,
        ),
        _conditions(experiment, results),
    ]


def _limit_exponent(
    experiment: StagesExperiment, factor: np.ndarray, regime: str, varied: str, level: float
) -> float:
    power = float(EXPONENTS[regime][varied])
    if varied != "classes":
        return power
    constant = limit_stage(level, experiment.classes * factor)
    return power + float(np.polyfit(np.log(factor), np.log(constant), 1)[0])


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
