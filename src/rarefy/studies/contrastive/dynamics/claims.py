"""Verdicts of ``contrast-dynamics``: C1-C5 and C14."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment
from rarefy.studies.contrastive.setting import GROUPS
from rarefy.studies.kit.premise import inconclusive
from rarefy.studies.kit.reading import Naming
from rarefy.theory.contrastive import expected_t1, outside_decay, stage_1_growth, t3, t4


def predicted_growth(experiment: DynamicsExperiment, results: xr.Dataset) -> xr.DataArray:
    """Stage-1 growth per step from the data's moment, dims (eps_min, group); nothing is fitted.

    The moment is proportional to the frequency, so its measured values at all frequencies are
    pooled into one constant moment/eps first.
    """
    minority = results["eps_min"]  # eps_j of the majority is 1
    both = xr.concat([xr.ones_like(minority), minority], dim="group")
    eps = both.assign_coords(group=results["group"])
    moment = ((results["moment"].mean("seed") / eps).mean() * eps).transpose("eps_min", "group")
    rule = (experiment.lr, experiment.tau, experiment.batch, experiment.loss_factor)
    return moment.copy(data=stage_1_growth(moment.values, *rule, experiment.weight_decay))


def measured_rate(experiment: DynamicsExperiment, results: xr.Dataset) -> np.ndarray:
    """Stage-1 growth per step of minority features without decay: (seed, eps_min)."""
    minority = results["stage_1_factor"].sel(group="minority")
    factor = minority.transpose("seed", "eps_min").values
    return factor ** (1 / experiment.stage_1_steps) - 1 + experiment.lr * experiment.weight_decay


def verdicts(experiment: DynamicsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    name = Naming(experiment, scale, after=f", {experiment.setting}")
    return [
        *_growth(experiment, results, name),
        *_stage_1(experiment, results, name),
        *_stage_2(experiment, results, name),
        *_loss(experiment, results, name),
        _three_stages(results, name),
    ]


def _growth(experiment: DynamicsExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    steps = experiment.stage_1_steps
    predicted = predicted_growth(experiment, results) ** steps
    # linear in the measured factor, so unbiased: 1 when its mean is the predicted one
    relative = (results["stage_1_factor"] - 1) / (predicted - 1)
    # from the measured factor alone, so that the slope does not contain the prediction
    slope = st.loglog_slope(results["eps_min"].values, measured_rate(experiment, results))
    keep = outside_decay(experiment.lr, experiment.weight_decay) ** steps
    with np.errstate(divide="ignore", invalid="ignore"):  # no decay, or nothing outside: no answer
        decay = np.log(results["outside_factor"].values.ravel()) / np.log(keep)
    where = f"over {steps} steps"
    found, note = [], f"{where}; constant from the data model, nothing fitted"
    for group in GROUPS:
        identity, rate = name("C1", f"rate over prediction, {group}"), relative.sel(group=group)
        found.append(st.judge_equal(identity, rate.values.ravel(), 1.0, 0.05, note=note))
    outside = name("C2", "decay of the outside part over eta lambda")
    kept = f"{where}; (1 - eta lambda)^{steps} = {keep:.4f}"
    norm, energy = name("C2", "squared norm of the outside part"), results["outside_energy"]
    noisy = f"{where}; mini-batch noise adds to it, the population gradient would not"
    return [
        *found,
        st.judge_slope(name("C1", "rate against eps_j"), slope, 1.0, 0.1, note=where),
        st.judge_equal(outside, decay, 1.0, 0.1, note=kept),
        st.judge_bound(norm, energy.values.ravel(), 1.0, "at_most", note=noisy),
    ]


def _stage_1(experiment: DynamicsExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    growth = predicted_growth(experiment, results).sel(group=list(GROUPS))
    counts = (experiment.majority, experiment.minority)
    decay = outside_decay(experiment.lr, experiment.weight_decay)
    expected = [
        expected_t1(np.repeat(growth.sel(eps_min=eps), counts), experiment.d1, decay)
        for eps in results["eps_min"].values
    ]
    ratio = results["t1"].where(results["t1"] >= 0) / xr.DataArray(expected, dims="eps_min")
    t1, t1_001 = (results[time].values.ravel() for time in ("t1", "t1_001"))
    alone = f"median T1 {np.median(t1):g}, average neuron by growth alone {min(expected)}"
    median = f"median {np.median(t1_001):g} (-1: not reached)"
    of_001 = _reached(name("C3", "T1 of 001 reached by all neurons"), t1_001, median)
    if experiment.bias_scale and of_001.outcome == "fails":
        # (41) presupposes that there is no bias yet; 000's may set in before it is reached
        why = "000's bias sets in first and stops most neurons, which 001 does not have: no answer"
        of_001 = inconclusive(of_001, why)
    lucky, others = results["lucky_at_t1"], results["others_at_t1"]
    peak = "in units of sqrt(log d/d1) |w|; O(1) read as 4"
    return [
        _reached(name("C3", "T1 of 000 reached by all neurons"), t1, alone),
        of_001,
        _at_most(
            name("C3", "T1 over the time that growth alone gives"),
            ratio,
            "T1 waits for the least lucky neuron; (33) would have it proportional to d1",
        ),
        _share(name("C3", "(36) lucky neurons above sqrt(2 log d/d)"), lucky),
        _share(name("C3", "(36) as proved, above sqrt(log d/d)"), lucky, "pass_weaker"),
        _share(name("C3", "(37) other neurons below sqrt(2 log d/d)"), others),
        _at_most(
            name("C3", "(38) share of neurons with too many features"),
            results["many_at_t1"],
            "bound d/(2 sqrt(log d)) with constant 1; 4 would say nothing at small d",
            0.05,
        ),
        _at_most(name("C3", "(39) largest outside coordinate"), results["peak_at_t1"], peak),
    ]


def _stage_2(experiment: DynamicsExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    t2, bias, log_d = results["t2"].values.ravel(), experiment.bias_scale, math.log(experiment.d)
    raised = results["bias_at_t2"].values.ravel() / math.sqrt(2 * log_d)
    spread = name("C4", "(65) largest ordinary over largest lucky weight")
    some = "over the features whose M*_j is not empty"
    return [
        _reached(name("C4", "T2 reached"), t2, f"median T2 {np.median(t2):g}"),
        _share(name("C4", "(9) by the paper's lucky neurons"), results["lucky_at_t2"]),
        _share(name("C4", "(9) by the operational set"), results["pure_at_t2"]),
        _at_most(spread, results["ordinary_over_lucky"], some),
        st.judge_bound(
            name("C4", "(80) growth of bias over norm since T1"),
            raised / bias if bias else np.empty(0),
            log_d,
            "at_least",
            note="smallest neuron at T2; polylog(d) read as log d. It is 1 where the norm grows "
            "faster than 1 + eta/d a step, since the bias then only keeps up",
        ),
    ]


def _loss(experiment: DynamicsExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    start, end = t3(experiment.d, experiment.lr), t4(experiment.d, experiment.lr)
    window = results.where((results["step"] > start) & (results["step"] <= end), drop=True)
    floor = results["floor"].stack(run=("eps_min", "seed")).values
    first, last, step = np.empty(0), np.empty(0), experiment.steps
    found = []
    for variable, what in (("running_loss", "loss"), ("running_full_loss", "with regulariser")):
        if window.sizes["step"] >= 2:
            runs = window[variable].stack(run=("eps_min", "seed")).transpose("run", "step").values
            first, last, step = runs[:, 0], runs[:, -1], int(window["step"][-1])
        note = f"mean since T3={start:.0f} as in (163), to step {step} (T4={end:.0f})"
        share = float(np.nanmean(floor / last)) if len(last) else np.nan
        twins = f"twins in a batch, which no encoder tells apart, account for {share:.0%} of it"
        fall = name("C5", f"fall of the running mean over the window, {what}")
        near = name("C5", f"running mean near 0, {what}")
        near_note = f"{note}; o(1) read as 0.1 nats; {twins}"
        found += [
            st.judge_bound(fall, first - last, 0.0, "at_least", note=note),
            st.judge_bound(near, last, 0.1, "at_most", note=near_note),
        ]
    return found


def _three_stages(results: xr.Dataset, name: Naming) -> Verdict:
    """C14: in stage 1 the feature grows and the noise stays, in stage 2 the dominant feature pulls
    away from the second, at the end it is over half of what the three curves hold."""
    step = results["step"]
    reached = (results["t1"] >= 0) & (results["t2"] > results["t1"])

    def at(time: str) -> xr.Dataset:
        """The curves at the first record not before T1 or T2, run by run."""
        index = (step >= results[time]).argmax("step")
        return results[["dominant", "second", "noise"]].isel(step=index)

    start, one, two, end = results.isel(step=0), at("t1"), at("t2"), results.isel(step=-1)
    grown = one["dominant"] > 5 * start["dominant"]
    first_stage = grown & (np.abs(one["noise"] / start["noise"] - 1) < 0.1)
    second_stage = two["dominant"] / two["second"] > one["dominant"] / one["second"]
    total = end["dominant"] ** 2 + end["second"] ** 2 + end["noise"] ** 2
    third_stage = end["dominant"] ** 2 > 0.5 * total
    good = reached & first_stage & second_stage & third_stage
    parts = {"1": reached & first_stage, "2": reached & second_stage, "3": third_stage}
    shares = ", ".join(f"stage {k} {float(v.mean()):.0%}" for k, v in parts.items())
    noise = float((end["noise"] > end["second"]).mean())
    note = f"{shares}; the noise part stays above the second feature in {noise:.0%} of runs"
    identity = name("C14", "three stages in the traced neuron")
    return st.judge_fraction(identity, int(good.sum()), int(good.size), 0.9, note=note)


def _at_most(
    identity: st.Identity, values: xr.DataArray, note: str, limit: float = st.BIG_O
) -> Verdict:
    return st.judge_bound(identity, values.values.ravel(), limit, "at_most", note=note)


def _reached(identity: st.Identity, times: np.ndarray, note: str) -> Verdict:
    return st.judge_fraction(identity, int((times >= 0).sum()), len(times), 0.95, note=note)


def _share(identity: st.Identity, tally: xr.DataArray, test: str = "pass") -> Verdict:
    cases = tally.sel(test="cases").sum("seed")
    where = ", ".join(f"{float(e):g}" for e in tally["eps_min"].values[cases.values > 0])
    note = f"cases at eps_min {where}" if where else "the set is empty in every run"
    total, passed = int(cases.sum()), int(tally.sel(test=test).sum())
    return st.judge_fraction(identity, passed, total, 0.95, note=note)
