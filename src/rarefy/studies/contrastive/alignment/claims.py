"""Verdicts of ``contrast-alignment``: C7, C8 and C10.

Primary readings are with the paper's bias: C10 at the figures' step, C8 at T4, the end of Theorem
3.1's window, C7 on the paper's own sets N_i, which the start decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, OMEGA
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.weakest import judge_weakest
from rarefy.studies.contrastive.words import bias_name, elsewhere, middle_sigma
from rarefy.studies.kit import reading as kit
from rarefy.studies.kit.slices import every
from rarefy.theory.contrastive import lucky_count_order, set_size_order, t4

QUANTITIES = {"aligned": "neurons with cosine >= 0.3 (Fig. 2)", "best": "best cosine (Fig. 3)"}


def window_read(experiment: AlignmentExperiment) -> int:
    """T4, the end of Theorem 3.1's window, or the last read before it."""
    end = t4(experiment.d, experiment.lr)
    return max((read for read in experiment.reads if read <= end), default=experiment.reads[-1])


def verdicts(experiment: AlignmentExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    biased = float(max(experiment.bias_scale))
    point = {"bias_scale": biased, "sigma": middle_sigma(results), "read": window_read(experiment)}
    late = {**point, "read": experiment.reads[-1]}
    readings = [*_sets(experiment, point), *_pure(experiment, point)]
    if late != point:
        where = f"step {late['read']}"
        readings += [_mixed(late, where), _more(late, f"{where}: pure neurons grow with eps_min")]
    if biased and 0 in experiment.bias_scale:
        bare = {**point, "bias_scale": 0.0}
        readings.append(_more(bare, "no bias: pure neurons grow with eps_min"))
    found = kit.judge_all(experiment, results, scale, readings)
    return elsewhere([*_figures(experiment, results, scale, biased), *found], scale)


def _figures(
    experiment: AlignmentExperiment, results: xr.Dataset, scale: str, biased: float
) -> list[Verdict]:
    """Fig. 2-3, at the noise level where the trend is weakest."""
    note, setting = f"mean over {experiment.minority} features", experiment.setting
    rare, shown = results.sel(group="minority"), experiment.figure_read

    def judged(claim: str, quantity: str, before: str, bias: float, read: int) -> Verdict:
        at = rare[quantity].sel(bias_scale=bias, read=read)
        cases = {f"sigma={sigma:g}": here for (sigma,), here in every(at, "sigma")}
        where = f"step {read}, {bias_name(bias)}, {setting}"
        name = kit.Naming(experiment, scale, before)
        identity = name(claim, f"{QUANTITIES[quantity]}, {where}")
        return judge_weakest(identity, cases, "increasing", note)

    found = [
        judged("C10.1", "aligned", "", biased, shown),
        judged("C10.2", "best", "", biased, shown),
    ]
    last = experiment.reads[-1]
    if last != shown:
        found.append(judged("C10", "best", "read late: ", biased, last))
    if biased and 0 in experiment.bias_scale:
        found.append(judged("C10", "best", "no bias: ", 0.0, shown))
        if last != shown:
            found.append(judged("C10", "best", "no bias, read late: ", 0.0, last))
    return found


def _sets(experiment: AlignmentExperiment, point: Mapping[str, Any]) -> list[kit.Reading]:
    """|N_i| is at most of order d^(1 - r^2) (14), and grows as eps_min falls."""

    def over(here: xr.Dataset) -> xr.DataArray:
        order = set_size_order(experiment.d, here["eps_min"].values)
        return here["initial_set"] / xr.DataArray(order, dims="eps_min")

    few, most = "N_i (26) over d^(1-r^2), {setting}", kit.at_most(BIG_O, "eps_min")
    note = "mean over neurons, at eps_min={worst}, where it is largest; O(1) read as 4"
    grows, falls = "N_i (26) grows as eps_min falls, {setting}", kit.falls("eps_min")
    return [
        kit.Reading("C7.1", few, over, most, at=point, note=note),
        kit.Reading("C7.2", grows, "initial_set", falls, at=point),
        _mixed(point, f"step {point['read']}"),
    ]


def _mixed(at: Mapping[str, Any], where: str) -> kit.Reading:
    what = f"trained, {where}: features with a tenth of a neuron's squared norm, {{setting}}"
    return kit.Reading("C7", what, "mixed", kit.falls("eps_min"), at=at)


def _pure(experiment: AlignmentExperiment, point: Mapping[str, Any]) -> list[kit.Reading]:
    """Fewer the rarer, but at least of order m d^-(eps_max/eps_min)^2 (Theorem 3.1)."""

    def over_bound(here: xr.Dataset) -> xr.DataArray:
        least = lucky_count_order(experiment.neurons, experiment.d, here["eps_min"].values)
        over = here["pure"].sel(group="minority") / xr.DataArray(least, dims="eps_min")
        return over.isel(eps_min=np.flatnonzero(least >= 1))

    def counted(_: xr.Dataset, over: xr.DataArray) -> str:
        worst = "operational set, at eps_min={worst}, where the margin is smallest; Omega as 0.25"
        return worst if over.size else "the bound is below one neuron at every eps_min"

    enough = f"pure neurons over their bound, step {point['read']}, {{setting}}"
    least = kit.at_least(OMEGA, "eps_min")
    paper = kit.Reading(
        "C8",
        "the paper's set M*_j at the start grows with eps_min, {setting}",
        "lucky",
        kit.rises("eps_min"),
        at={**point, "group": "minority"},
    )
    grows = f"pure neurons grow with eps_min, step {point['read']}"
    return [
        _more(point, grows, "C8.1"),
        kit.Reading("C8.2", enough, over_bound, least, at=point, note=counted),
        paper,
    ]


def _more(at: Mapping[str, Any], what: str, claim: str = "C8") -> kit.Reading:
    note = "operational set: cosine at least 0.3, four times the second squared"
    rare = {**at, "group": "minority"}
    what = f"{what}, {bias_name(at['bias_scale'])}, {{setting}}"
    return kit.Reading(claim, what, "pure", kit.rises("eps_min"), at=rare, note=note)
