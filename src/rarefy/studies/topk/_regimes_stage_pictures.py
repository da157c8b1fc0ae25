"""Picture and tables of ``topk-stages``."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import BIG_O
from rarefy.studies.topk._regimes_limit import limit_stage
from rarefy.studies.topk._regimes_stage_verdicts import EXPONENTS, exponent, stage_of
from rarefy.theory.conditions import COLUMNS, Condition, table_rows, worst
from rarefy.theory.topk import condition_4_1

if TYPE_CHECKING:
    from rarefy.studies.topk.topk_stages import TopKStages

EXPRESSION = {"signal": "m T/(eta mu^2)", "noise": "m n/(eta sigma_p^2 d)"}
LEMMA = {"signal": "Lemma F.1", "noise": "Lemma H.1"}


def stage_pictures(study: TopKStages, results: xr.Dataset) -> list[Picture]:
    level = float(results["level"].values[-1])
    ordered = results.sortby("factor")
    factor = ordered["factor"].values
    panels = []
    for regime in results["regime"].values:
        stage = stage_of(ordered, str(regime), level)
        curves = [
            mean_curve(
                str(varied), factor, stage.sel(varied=varied).transpose("seed", "factor").values
            )
            for varied in results["varied"].values
        ]
        middle = float(stage.sel(factor=_nearest_one(factor)).mean())
        for power in sorted({float(p) for p in EXPONENTS[str(regime)].values()}):
            # from the cell that nothing is varied in, along every exponent the lemma has
            line = middle * (factor / _nearest_one(factor)) ** power
            curves.append(Curve(f"exponent {power:g}", factor, line, role="theory", style="dotted"))
        panels.append(
            Lines(
                curves,
                "factor by which the quantity is multiplied",
                "length of stage 1 (steps)",
                title=f"{regime}: {EXPRESSION[str(regime)]}",
                x_log=True,
                y_log=True,
            )
        )
    return [
        Picture(
            "stages",
            "Length of the first stage, one quantity varied at a time",
            f"Steps until all coefficients that begin on the positive side reach {level:g}: gamma "
            f"in the signal regime, rho in the noise regime; {study.setting}, mean and 95 % "
            f"interval of {results.sizes['seed']} runs. Dotted: the exponents of the lemmas.",
            panels,
        )
    ]


def _nearest_one(factor: np.ndarray) -> float:
    return float(factor[np.abs(np.log(factor)).argmin()])


def stage_tables(study: TopKStages, results: xr.Dataset) -> list[Table]:
    rows = []
    for regime in results["regime"].values:
        for varied in results["varied"].values:
            row: list[object] = [
                f"{regime} ({LEMMA[str(regime)]})",
                str(varied),
                EXPONENTS[str(regime)][str(varied)],
            ]
            for level in results["level"].values:
                slope = exponent(stage_of(results, str(regime), float(level)), str(varied))
                limit = _limit_exponent(study, results, str(regime), str(varied), float(level))
                row += [
                    f"{slope.value:.3f} [{slope.low:.3f}, {slope.high:.3f}]",
                    f"{limit:.3f}",
                ]
            rows.append(row)
    columns = ["regime", "varied", "claimed"]
    for level in results["level"].values:
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
        _conditions(study, results),
    ]


def _conditions(study: TopKStages, results: xr.Dataset) -> Table:
    rows = []
    for regime in results["regime"].values:
        cells = product(results["varied"].values, results["factor"].values)
        lists = [_conditions_at(study, str(regime), str(what), float(by)) for what, by in cells]
        lines = [worst(line) for line in zip(*lists, strict=True)]
        rows += [[str(regime), *row] for row in table_rows(lines)]
    return Table(
        "conditions",
        "Condition 4.1 where the cells are farthest from it",
        "Each line at the cell that misses it most; delta = 0.1, T* the number of steps, the "
        "constant of Theta in d read as 1, that of O in the learning rate as 4.",
        ("regime", *COLUMNS),
        rows,
    )


def _conditions_at(study: TopKStages, regime: str, varied: str, factor: float) -> list[Condition]:
    sizes = study.sizes(regime, varied, factor)
    given: dict[str, Any] = {
        "classes": sizes.classes,
        "filters": sizes.filters,
        "samples": sizes.samples,
        "d": int(sizes.d),
        "mu": sizes.mu,
        "sigma": sizes.sigma,
        "sigma_0": study.sigma_0,
        "lr": sizes.lr,
        "output_scale": 1 / sizes.filters,
        "horizon": study.steps,
    }
    return [*condition_4_1(**given)[:-1], condition_4_1(**given, constant=BIG_O)[-1]]


def _limit_exponent(
    study: TopKStages, results: xr.Dataset, regime: str, varied: str, level: float
) -> float:
    power = float(EXPONENTS[regime][varied])
    if varied != "classes":
        return power
    factor = results["factor"].values
    constant = limit_stage(level, study.classes * factor)
    return power + float(np.polyfit(np.log(factor), np.log(constant), 1)[0])
