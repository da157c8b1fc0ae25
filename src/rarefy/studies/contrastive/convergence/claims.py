"""Verdicts of ``contrast-convergence``: C5, C6 and C15.

The primary readings are at the largest d, tau = log d and the last read; the others change one of
these. (13) and (89) are asked again at scale ``wide``, m = d^2, where Xi_1 promises the lucky
neurons that their proofs need. All runs have the bias: without it the network is not the theorem's.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, loglog_slope
from rarefy.measure.trends import Slope
from rarefy.studies.contrastive.convergence.experiment import ConvergenceExperiment
from rarefy.studies.contrastive.exponents import exponent_in_eps
from rarefy.studies.contrastive.words import elsewhere
from rarefy.studies.kit import reading as kit
from rarefy.studies.kit.arrays import by_seed
from rarefy.theory.initial_sets import xi_1_order

Point = dict[str, float]
"""Where a reading looks."""
Claims = tuple[str, str]
"""The ids of two readings; no second reading without one."""
WORDS = {
    "weight": "mean weight over M_j (13)",
    "energy": "squared weights over M_j (89)",
    "energy_all": "squared weights over all neurons",
}
WIDE = {"C6.1": "C6.3", "C15.1": "C15.2"}
"""The primary readings that are asked again at scale ``wide``, and their ids there."""
PRIMARY_POWER = 1.0
"""tau = log d, the simplest polylog."""
INSIDE = 0.95
"""Share of weights that must be in the range (13), which is stated for each of them."""


def tau_name(power: float) -> str:
    return {0.0: "tau=1", 1.0: "tau=log d"}.get(float(power), f"tau=log^{power:g} d")


def primary_point(experiment: ConvergenceExperiment) -> Point:
    power = PRIMARY_POWER if PRIMARY_POWER in experiment.tau_power else experiment.tau_power[-1]
    return {"d": max(experiment.d), "tau_power": power, "read": experiment.reads[-1]}


def verdicts(experiment: ConvergenceExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    first = primary_point(experiment)
    readings = [
        *_loss(("C5.1", "C5.2"), experiment, first),
        *_loss(("C5", ""), experiment, first, "with regulariser: ", "full_loss"),
        *_weights(("C6.1", "C6.2"), experiment, first),
        _exponent(("C6", 1), "weight", experiment, first, "power law: "),
        _exponent(("C15.1", 2), "energy", experiment, first),
        _exponent(("C15", 2), "energy_all", experiment, first, "all neurons: "),
        _growth(experiment, first),
    ]
    changes = [{"tau_power": power} for power in experiment.tau_power]
    changes += [{"read": read} for read in experiment.reads[1:]] + [{"d": min(experiment.d)}]
    for change in changes:
        point = {**first, **change}
        if point != first:
            before = f"{_where(change)}: "
            readings.append(_exponent(("C15", 2), "energy", experiment, point, before))
            readings += _weights(("C6", ""), experiment, point, before)
            if "d" not in change:
                readings += _loss(("C5", ""), experiment, point, before)
    judged = kit.judge_all(experiment, results, scale, readings)
    if scale != "wide":
        return elsewhere(judged, scale)
    asked_again = [replace(v, claim=WIDE[v.claim]) for v in judged if v.claim in WIDE]
    return asked_again + elsewhere([v for v in judged if v.claim not in WIDE], scale)


def _where(point: Point) -> str:
    words = {"tau_power": tau_name, "d": "d={:g}".format, "read": "step d^{:g}/eta".format}
    return ", ".join(words[name](value) for name, value in point.items())


def _loss(
    claims: Claims,
    experiment: ConvergenceExperiment,
    point: Point,
    before: str = "",
    name: str = "loss",
) -> list[kit.Reading]:
    """(11): o(1) in d, and O(1/log d) as (162) proves it; mean over eps_min."""
    every_d = {axis: value for axis, value in point.items() if axis != "d"}

    def mean(here: xr.Dataset) -> xr.DataArray:
        return here[name].mean("eps_min")

    def note(here: xr.Dataset, taken: xr.DataArray) -> str:
        means, floor = taken.mean("seed").values, here["floor"].mean(["eps_min", "seed"]).values
        ends = f"{means[0]:.3g} nats at the smallest d, {means[-1]:.3g} at the largest"
        return (
            f"{ends}; a perfect encoder has {floor[0]:.2g} and {floor[-1]:.2g}, one that tells "
            f"nothing apart {math.log(experiment.batch):.3g}"
        )

    what = f"{before}mean loss since T3 falls with d, {_where(every_d)}, {{setting}}"
    found = [kit.Reading(claims[0], what, mean, kit.falls("d"), at=every_d, note=note)]
    if claims[1]:
        bound = BIG_O / math.log(point["d"])
        what = f"{before}mean loss since T3 is small, {_where(point)}, {{setting}}"
        said = "nats; o(1) read as 4/log d, after the O(1/log d) of (162)"
        small = kit.at_most(bound)
        found.append(kit.Reading(claims[1], what, mean, small, at=point, note=said))
    return found


def _weights(
    claims: Claims, experiment: ConvergenceExperiment, point: Point, before: str = ""
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

    what, all_in = f"{before}weights in the range (13), {_where(point)}", kit.at_least(INSIDE)
    found = [
        kit.Reading(
            claims[0],
            f"{what}, {{setting}}",
            share,
            all_in,
            at=point,
            note=note,
            premise=lambda here: _no_lucky_neuron(experiment, int(point["d"])),
        )
    ]
    if claims[1]:
        what = f"{before}weight on rare over frequent features grows with eps_min, {_where(point)}"
        said, rises = "mean over i in M_j", kit.rises("eps_min")
        found.append(
            kit.Reading(claims[1], f"{what}, {{setting}}", ratio, rises, at=point, note=said)
        )
    return found


def _no_lucky_neuron(experiment: ConvergenceExperiment, d: int) -> str:
    """The proofs of (13) and (89) take one lucky neuron per feature from Lemma B.2 (c)."""
    rare = [eps for eps in experiment.eps_min if eps < 1]
    most = float(xi_1_order(experiment.neurons(d), d, max(rare, default=1.0)))
    if most >= 1:
        return ""
    return f"by (31) a rare feature has {most:.2g} lucky neurons at eps_min {max(rare):g}, not one"


def _exponent(
    claim: tuple[str, int],
    name: str,
    experiment: ConvergenceExperiment,
    point: Point,
    before: str = "",
) -> kit.Reading:
    """Rare over frequent features as a power of eps_min, within a quarter of the predicted one."""
    said, power = claim
    what = f"{before}exponent of the {WORDS[name]} in eps_min, {_where(point)}, {{setting}}"

    def slope(here: xr.Dataset) -> Slope:
        return exponent_in_eps(here[name])

    note = "minority over majority, ratio of means: an empty M_j counts 0 in both"
    return kit.Reading(
        said,
        what,
        slope,
        kit.exponent(power, power / 4),
        at=point,
        note=note,
        premise=lambda here: _no_lucky_neuron(experiment, int(point["d"])),
    )


def _growth(experiment: ConvergenceExperiment, point: Point) -> kit.Reading:
    """(89) in the other direction: the same sum of frequent features grows like tau log^3 d."""
    every_d = {axis: value for axis, value in point.items() if axis != "d"}
    order = np.array([math.log(d) ** (3 + point["tau_power"]) for d in experiment.d])

    def slope(here: xr.Dataset) -> Slope:
        energy = here["energy"].sel(group="majority").mean("eps_min")
        return loglog_slope(order, by_seed(energy, "d"))

    what = f"over d: exponent in tau log^3 d, {_where(every_d)}, {{setting}}"
    note = "majority features, mean over eps_min"
    return kit.Reading("C15", what, slope, kit.exponent(1.0, 0.25), at=every_d, note=note)
