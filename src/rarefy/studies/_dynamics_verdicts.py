"""Verdicts of ``contrast-dynamics``: C1-C5 and C14."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.estimates import loglog_slope, spearman_trend
from rarefy.measure.statistics import (
    judge_bound,
    judge_equal,
    judge_fraction,
    judge_slope,
    judge_trend,
)
from rarefy.theory.contrastive import expected_t1, outside_decay, stage_1_growth, t3, t4

if TYPE_CHECKING:
    from rarefy.studies.contrast_dynamics import ContrastDynamics

BIG_O = 4.0
"""A constant hidden in an O(.) is read as 4, fixed before looking at results."""


def predicted_growth(study: ContrastDynamics, results: xr.Dataset) -> xr.DataArray:
    """Stage-1 growth a step from the data's moment, dims (eps_min, group); nothing is fitted.

    The moment is proportional to the frequency, so its measured values at all frequencies are
    pooled into one constant moment/eps first.
    """
    eps = feature_eps(results)
    per_eps = (results["moment"].mean("seed") / eps).mean()
    factor = study.tau if study.loss_form == "times-tau" else 1.0
    moment = (per_eps * eps).transpose("eps_min", "group")
    return moment.copy(
        data=stage_1_growth(
            moment.values, study.lr, study.tau, study.batch, factor, study.weight_decay
        )
    )


def feature_eps(results: xr.Dataset) -> xr.DataArray:
    """eps_j of each group: 1 for the majority, eps_min for the minority."""
    minority = results["eps_min"]
    return xr.concat([xr.ones_like(minority), minority], dim="group").assign_coords(
        group=results["group"]
    )


def dynamics_verdicts(study: ContrastDynamics, results: xr.Dataset, scale: str) -> list[Verdict]:
    def name(claim: str, what: str) -> tuple[str, str, str, str]:
        return (claim, study.name, scale, f"{what}, {study.setting}")

    return [
        *_growth(study, results, name),
        *_first_stage(study, results, name),
        *_second_stage(study, results, name),
        *_loss(study, results, name),
        _three_stages(results, name),
    ]


def _growth(study, results, name) -> list[Verdict]:  # type: ignore[no-untyped-def]
    steps = study.stage_1_steps
    growth = predicted_growth(study, results)
    predicted = growth**steps
    # linear in the measured factor, so unbiased: 1 when its mean is the predicted one
    relative = (results["stage_1_factor"] - 1) / (predicted - 1)
    minority = relative.sel(group="minority").transpose("seed", "eps_min").values
    rate = minority * (growth.sel(group="minority") - 1 + study.lr * study.weight_decay).values
    keep = outside_decay(study.lr, study.weight_decay) ** steps
    with np.errstate(divide="ignore", invalid="ignore"):  # no decay, or nothing outside: no answer
        decay = np.log(results["outside_factor"].values.ravel()) / np.log(keep)
    where = f"over {steps} steps"
    return [
        judge_equal(
            name("C1", "rate over prediction, majority"),
            relative.sel(group="majority").values.ravel(),
            1.0,
            0.05,
            note=f"{where}; constant from the data model, nothing fitted",
        ),
        judge_equal(
            name("C1", "rate over prediction, minority"),
            minority.ravel(),
            1.0,
            0.05,
            note=f"{where}; constant from the data model, nothing fitted",
        ),
        judge_slope(
            name("C1", "rate against eps_j"),
            loglog_slope(results["eps_min"].values, rate),
            1.0,
            0.1,
            note=where,
        ),
        judge_equal(
            name("C2", "decay of the outside part over eta lambda"),
            decay,
            1.0,
            0.1,
            note=f"{where}; (1 - eta lambda)^{steps} = {keep:.4f}",
        ),
        judge_bound(
            name("C2", "squared norm of the outside part"),
            results["outside_energy"].values.ravel(),
            1.0,
            "at_most",
            note=f"{where}; mini-batch noise adds to it, the population gradient would not",
        ),
    ]


def _first_stage(study, results, name) -> list[Verdict]:  # type: ignore[no-untyped-def]
    t1 = results["t1"].values.ravel()
    t1_001 = results["t1_001"].values.ravel()
    lucky, others = results["lucky_at_t1"], results["others_at_t1"]
    growth = predicted_growth(study, results)
    counts = {"majority": study.majority, "minority": study.minority}
    expected = [
        expected_t1(
            np.concatenate([np.full(n, growth.sel(eps_min=e, group=g)) for g, n in counts.items()]),
            study.d1,
            outside_decay(study.lr, study.weight_decay),
        )
        for e in results["eps_min"].values
    ]
    ratio = results["t1"].where(results["t1"] >= 0) / xr.DataArray(expected, dims="eps_min")
    reached = f"median T1 {np.median(t1):g}, average neuron by growth alone {min(expected)}"
    return [
        judge_fraction(
            name("C3", "T1 of 000 reached by all neurons"),
            int((t1 >= 0).sum()),
            len(t1),
            0.95,
            note=reached,
        ),
        judge_fraction(
            name("C3", "T1 of 001 reached by all neurons"),
            int((t1_001 >= 0).sum()),
            len(t1_001),
            0.95,
            note=f"median {np.median(t1_001):g} (-1: not reached)",
        ),
        judge_bound(
            name("C3", "T1 over the time that growth alone gives"),
            ratio.values.ravel(),
            BIG_O,
            "at_most",
            note="T1 waits for the least lucky neuron; (33) would have it proportional to d1",
        ),
        _share(name("C3", "(36) lucky neurons above sqrt(2 log d/d)"), lucky, "pass", 0.95),
        _share(name("C3", "(36) as proved, above sqrt(log d/d)"), lucky, "pass_weaker", 0.95),
        _share(name("C3", "(37) other neurons below sqrt(2 log d/d)"), others, "pass", 0.95),
        judge_bound(
            name("C3", "(38) share of neurons with too many features"),
            results["many_at_t1"].values.ravel(),
            0.05,
            "at_most",
            note="bound d/(2 sqrt(log d)) with constant 1; 4 would say nothing at small d",
        ),
        judge_bound(
            name("C3", "(39) largest outside coordinate"),
            results["peak_at_t1"].values.ravel(),
            BIG_O,
            "at_most",
            note="in units of sqrt(log d/d1) |w|; O(1) read as 4",
        ),
    ]


def _second_stage(study, results, name) -> list[Verdict]:  # type: ignore[no-untyped-def]
    t2 = results["t2"].values.ravel()
    return [
        judge_fraction(
            name("C4", "T2 reached"),
            int((t2 >= 0).sum()),
            len(t2),
            0.95,
            note=f"median T2 {np.median(t2):g}",
        ),
        _share(
            name("C4", "(9) by the paper's lucky neurons"), results["lucky_at_t2"], "pass", 0.95
        ),
        _share(name("C4", "(9) by the operational set"), results["pure_at_t2"], "pass", 0.95),
        judge_bound(
            name("C4", "(10) ordinary over lucky"),
            results["ordinary_over_lucky"].values.ravel(),
            BIG_O,
            "at_most",
            note="largest of M_j over largest of M*_j, where M*_j is not empty",
        ),
        judge_bound(
            name("C4", "(63) bias over |w|/sqrt(d)"),
            results["bias_at_t2"].values.ravel(),
            math.log(study.d),
            "at_least",
            note="polylog(d) read as log d; smallest neuron at T2",
        ),
    ]


def _loss(study, results, name) -> list[Verdict]:  # type: ignore[no-untyped-def]
    start, end = t3(study.d, study.lr), t4(study.d, study.lr)
    window = results.where((results["step"] > start) & (results["step"] <= end), drop=True)
    floor = float(results["floor"].mean())
    found = []
    for variable, what in (("running_loss", "loss"), ("running_full_loss", "with regulariser")):
        if window.sizes["step"] < 2:
            rows, last, steps = np.empty((0, 2)), np.empty(0), np.arange(2)
        else:
            rows = window[variable].stack(run=("eps_min", "seed")).transpose("run", "step").values
            last, steps = rows[:, -1], window["step"].values
        note = f"mean since T3={start:.0f} as in (163), to step {steps[-1]} (T4={end:.0f})"
        found.append(
            judge_trend(
                name("C5", f"running mean falls, {what}"),
                spearman_trend(steps, rows, within_rows=True),
                "decreasing",
                note=note,
            )
        )
        found.append(
            judge_bound(
                name("C5", f"running mean near 0, {what}"),
                last,
                0.1,
                "at_most",
                note=f"{note}; o(1) read as 0.1 nats; twins in a batch set a floor of {floor:.2f}",
            )
        )
    return found


def _three_stages(results, name) -> Verdict:  # type: ignore[no-untyped-def]
    """C14: the traced neuron is mostly noise at first, mostly its dominant feature at the end, and
    T1 < T2 lie in between."""
    total = np.sqrt(sum(results[v] ** 2 for v in ("dominant", "second", "noise")))
    share = results["dominant"] / total
    noisy_start = (results["noise"] > results["dominant"]).isel(step=0)
    ordered = (results["t1"] >= 0) & (results["t2"] > results["t1"])
    ends_pure = share.isel(step=-1) ** 2 > 0.5
    noise_over_other = (results["noise"] > results["second"]).isel(step=-1)
    good = noisy_start & ordered & ends_pure
    return judge_fraction(
        name("C14", "three stages in the traced neuron"),
        int(good.sum()),
        int(good.size),
        0.9,
        note="noise first, then T1 < T2, then over half of the squared norm on one feature; noise "
        f"stays above the second feature in {float(noise_over_other.mean()):.0%} of runs",
    )


def _share(identity, tally: xr.DataArray, test: str, at_least: float) -> Verdict:  # type: ignore[no-untyped-def]
    cases = int(tally.sel(test="cases").sum())
    note = "" if cases else "the set is empty in every run"
    return judge_fraction(identity, int(tally.sel(test=test).sum()), cases, at_least, note=note)
