"""Verdicts of ``contrast-convergence``: C5, C6 and C15.

The primary readings are at the largest d, tau = log d and the last read; the others change one of
these. All runs have the bias: without it the network is not the theorem's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, loglog_slope
from rarefy.measure.trends import Slope
from rarefy.studies.contrastive.convergence.experiment import ConvergenceExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.kit import reading as kit
from rarefy.studies.kit.arrays import by_seed

PRIMARY_POWER = 1.0
"""tau = log d, the simplest polylog."""
INSIDE = 0.95
"""Share of weights that must be in the range (13), which is stated for each of them."""


def tau_name(power: float) -> str:
    return {0.0: "tau=1", 1.0: "tau=log d"}.get(float(power), f"tau=log^{power:g} d")


def primary_point(experiment: ConvergenceExperiment) -> dict[str, float]:
    power = PRIMARY_POWER if PRIMARY_POWER in experiment.tau_power else experiment.tau_power[-1]
    return {"d": max(experiment.d), "tau_power": power, "read": experiment.reads[-1]}


def verdicts(experiment: ConvergenceExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    first = primary_point(experiment)
    readings = [
        *_loss("C5.1", "C5.2", experiment, first),
        *_loss("C5", "", experiment, first, "full_loss"),
        *_weights("C6.1", "C6.2", experiment, first),
        _energy("C15.1", "energy", first),
        _reading("C6", "exponent 1 in eps, ", _exponent("weight"), kit.exponent(1.0, 0.25), first),
        _energy("C15", "energy_all", first, "all neurons, "),
        _growth(experiment, first),
    ]
    others = [{"tau_power": power} for power in experiment.tau_power]
    others += [{"read": read} for read in experiment.reads[1:]] + [{"d": min(experiment.d)}]
    for change in others:
        point = {**first, **change}
        if point != first:
            readings += [*_weights("C6", "", experiment, point), _energy("C15", "energy", point)]
            if "d" not in change:
                readings += _loss("C5", "", experiment, point)
    return kit.judge_all(experiment, results, scale, readings)


def _reading(
    claim: str, what: str, take: Any, expect: kit.Expect, point: dict[str, float], note: Any = ""
) -> kit.Reading:
    where = f"{tau_name(point['tau_power'])}, d={point['d']:g}, step d^{point['read']:g}/eta"
    return kit.Reading(claim, f"{what}{where}, {{setting}}", take, expect, at=point, note=note)


def _loss(
    falls: str,
    small: str,
    experiment: ConvergenceExperiment,
    point: dict[str, float],
    name: str = "loss",
) -> list[kit.Reading]:
    """(11): o(1) in d, and O(1/log d) as (162) proves it; mean over eps_min."""
    every_d = {name: value for name, value in point.items() if name != "d"}
    where = f"{tau_name(point['tau_power'])}, to step d^{point['read']:g}/eta, {{setting}}"

    def mean(here: xr.Dataset) -> xr.DataArray:
        return here[name].mean("eps_min")

    def note(here: xr.Dataset, taken: xr.DataArray) -> str:
        means, floor = taken.mean("seed").values, here["floor"].mean(["eps_min", "seed"]).values
        ends = f"{means[0]:.3g} nats at the smallest d, {means[-1]:.3g} at the largest"
        return (
            f"{ends}; a perfect encoder has {floor[0]:.2g} and {floor[-1]:.2g}, one that tells "
            f"nothing apart {math.log(experiment.batch):.3g}"
        )

    regulariser = "" if name == "loss" else "with regulariser, "
    what = f"{regulariser}mean loss since T3 falls with d, {where}"
    found = [kit.Reading(falls, what, mean, kit.falls("d"), at=every_d, note=note)]
    if small:
        bound = BIG_O / math.log(point["d"])
        said = "nats; o(1) read as 4/log d, after the O(1/log d) of (162)"
        found.append(_reading(small, "mean loss, ", mean, kit.at_most(bound), point, said))
    return found


def _weights(
    inside: str, rises: str, experiment: ConvergenceExperiment, point: dict[str, float]
) -> list[kit.Reading]:
    """(13) for the minority features of imbalanced runs, and Remark 2: rarer, weaker."""
    rare = [eps for eps in experiment.eps_min if eps < 1] or list(experiment.eps_min)

    def share(here: xr.Dataset) -> xr.DataArray:
        return here["inside"].sel(group="minority", eps_min=rare).mean("eps_min")

    def ratio(here: xr.Dataset) -> xr.DataArray:
        return here["weight"].sel(group="minority") / here["weight"].sel(group="majority")

    def note(here: xr.Dataset, taken: xr.DataArray) -> str:
        above = float(here["above"].sel(group="minority", eps_min=rare).mean())
        return f"pairs of a neuron and a rare feature in its N_i; {above:.1%} lie above the range"

    what = "weights in the range (13), "
    found = [_reading(inside, what, share, kit.at_least(INSIDE), point, note)]
    if rises:
        what = "weight on rare over frequent features grows with eps_min, "
        found.append(_reading(rises, what, ratio, kit.rises("eps_min"), point, "mean over M_j"))
    return found


def _energy(claim: str, name: str, point: dict[str, float], which: str = "") -> kit.Reading:
    note = "minority over majority, ratio of means: an empty M_j counts 0 in both"
    law = kit.exponent(2.0, 0.5)
    return _reading(claim, f"{which}exponent 2 in eps, ", _exponent(name), law, point, note)


def _growth(experiment: ConvergenceExperiment, point: dict[str, float]) -> kit.Reading:
    """(89) in the other direction: the same sum of frequent features grows like tau log^3 d."""
    every_d = {name: value for name, value in point.items() if name != "d"}
    order = np.array([math.log(d) ** (3 + point["tau_power"]) for d in experiment.d])

    def slope(here: xr.Dataset) -> Slope:
        energy = here["energy"].sel(group="majority").mean("eps_min")
        return loglog_slope(order, by_seed(energy, "d"))

    what = f"exponent 1 in tau log^3 d, {tau_name(point['tau_power'])}, every d, {{setting}}"
    note = "majority features, mean over eps_min"
    return kit.Reading("C15", what, slope, kit.exponent(1.0, 0.25), at=every_d, note=note)


def _exponent(name: str) -> Callable[[xr.Dataset], Slope]:
    return lambda here: exponent_in_eps(here[name])
