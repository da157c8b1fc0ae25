"""Verdicts of ``contrast-dynamics``: C1-C4 and C14."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment
from rarefy.studies.contrastive.words import elsewhere
from rarefy.studies.kit.arrays import known
from rarefy.studies.kit.reading import Naming
from rarefy.theory.contrastive import outside_decay, stage_1_growth

DECAY = 0.9
"""Least decay rate over eta lambda; a tenth is left to the error term of (8)."""
NEARLY_ALL = 0.95
"""Share of cases read as "all", with high probability."""
IN_RUNS = 0.9
"""Share of runs in which a stage of Fig. 1, the picture of one neuron, must be seen."""


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
    found = [
        *_growth(experiment, results, name),
        *_stage_1(results, name),
        *_stage_2(experiment, results, name),
        *_three_stages(results, name),
    ]
    return elsewhere(found, scale)


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
    for claim, group in (("C1.1", "minority"), ("C1", "majority")):
        identity, rate = name(claim, f"rate over prediction, {group}"), relative.sel(group=group)
        found.append(st.judge_equal(identity, rate.values.ravel(), 1.0, 0.05, note=note))
    outside = name("C2.1", "decay rate of the outside part over eta lambda")
    kept = f"{where}; (1 - eta lambda)^{steps} = {keep:.4f}; 0 would be no decay"
    norm, energy = name("C2", "squared norm of the outside part"), results["outside_energy"]
    noisy = f"{where}; mini-batch noise adds to it, the population gradient would not"
    return [
        *found,
        st.judge_slope(name("C1.2", "rate against eps_j"), slope, 1.0, 0.1, note=where),
        st.judge_bound(outside, decay, DECAY, "at_least", note=kept),
        st.judge_bound(norm, energy.values.ravel(), 1.0, "at_most", note=noisy),
    ]


def _stage_1(results: xr.Dataset, name: Naming) -> list[Verdict]:
    """T1, and (b)-(e) of Theorem C.1 there."""
    t1, lucky = results["t1"], results["lucky_at_t1"]
    reached = name("C3.1", "T1 (34) reached by all neurons")
    few = "bound d/(2 sqrt(log d)) with constant 1; 4 would say nothing at small d"
    many, peak = results["many_at_t1"].values.ravel(), results["peak_at_t1"].values.ravel()
    units = "in units of sqrt(log d/d1) |w|; O(1) read as 4"
    named = {
        "lucky": name("C3.2", "(36) lucky neurons above sqrt(2 log d/d)"),
        "proved": name("C3", "as proved (47): lucky neurons above sqrt(log d/d)"),
        "others": name("C3.3", "(37) other neurons below sqrt(2 log d/d)"),
        "many": name("C3", "(38) share of neurons with too many features"),
        "peak": name("C3", "(39) largest outside coordinate"),
    }
    return [
        _in_runs(reached, known(t1 >= 0, t1), f"median T1 {float(t1.median()):g}", NEARLY_ALL),
        _pairs(named["lucky"], lucky),
        _pairs(named["proved"], lucky, "pass_weaker"),
        _pairs(named["others"], results["others_at_t1"]),
        st.judge_bound(named["many"], many, 0.05, "at_most", note=few),
        st.judge_bound(named["peak"], peak, st.BIG_O, "at_most", note=units),
    ]


def _stage_2(experiment: DynamicsExperiment, results: xr.Dataset, name: Naming) -> list[Verdict]:
    bias, log_d = experiment.bias_scale, math.log(experiment.d)
    raised = results["bias_at_t2"].values.ravel() / math.sqrt(2 * log_d)
    spread, t2 = results["ordinary_over_lucky"].values.ravel(), float(results["t2"].median())
    some = f"over the features whose M*_j is not empty; median T2 {t2:g}; O(1) read as 4"
    return [
        _pairs(name("C4.1", "(9) by the paper's lucky neurons"), results["lucky_at_t2"]),
        st.judge_bound(
            name("C4", "(10) largest ordinary over largest lucky weight"),
            spread,
            st.BIG_O,
            "at_most",
            note=some,
        ),
        _pairs(name("C4", "operational set: (9) by neurons pure at T2"), results["pure_at_t2"]),
        st.judge_bound(
            name("C4", "(80) growth of bias over norm since T1"),
            raised / bias if bias else np.empty(0),
            log_d,
            "at_least",
            note="smallest neuron at T2; polylog(d) read as log d. It is 1 where the norm grows "
            "faster than 1 + eta/d a step, since the bias then only keeps up",
        ),
    ]


def _three_stages(results: xr.Dataset, name: Naming) -> list[Verdict]:
    """Fig. 1: in stage 1 the feature grows and the noise stays, in stage 2 the dominant feature
    pulls away from the second, at the end it is over half of what the three curves hold."""
    step = results["step"]
    reached = (results["t1"] >= 0) & (results["t2"] > results["t1"])

    def at(time: str) -> xr.Dataset:
        """The curves at the first record not before T1 or T2, run by run."""
        index = (step >= results[time]).argmax("step")
        return results[["dominant", "second", "noise"]].isel(step=index)

    start, one, two, end = results.isel(step=0), at("t1"), at("t2"), results.isel(step=-1)
    grown = one["dominant"] > 5 * start["dominant"]
    apart = two["dominant"] / two["second"] > one["dominant"] / one["second"]
    total = end["dominant"] ** 2 + end["second"] ** 2 + end["noise"] ** 2
    noise = float(known(end["noise"] > end["second"], end["noise"]).mean())
    above = f"at the end the noise part is above the second feature in {noise:.0%} of runs"
    return [
        _in_runs(name(claim, what), known(seen, end["dominant"]), note, IN_RUNS)
        for claim, what, seen, note in (
            (
                "C14.1",
                "stage 1: the dominant feature grows fivefold, the noise stays within a tenth",
                reached & grown & (np.abs(one["noise"] / start["noise"] - 1) < 0.1),
                "",
            ),
            (
                "C14.2",
                "stage 2: from T1 to T2 the dominant feature pulls away from the second",
                reached & apart,
                "share of runs; the neuron that ends up purest",
            ),
            (
                "C14.3",
                "stage 3: the dominant feature holds over half of the squared norm",
                end["dominant"] ** 2 > 0.5 * total,
                above,
            ),
        )
    ]


def _pairs(identity: st.Identity, tally: xr.DataArray, test: str = "pass") -> Verdict:
    """Share of pairs of a neuron and a feature that pass."""
    cases = tally.sel(test="cases").sum("seed")
    where = ", ".join(f"{float(e):g}" for e in tally["eps_min"].values[cases.values > 0])
    note = f"cases at eps_min {where}" if where else "the set is empty in every run"
    passed, total = int(tally.sel(test=test).sum()), int(cases.sum())
    return st.judge_fraction(identity, passed, total, NEARLY_ALL, note=note)


def _in_runs(identity: st.Identity, seen: xr.DataArray, note: str, least: float) -> Verdict:
    return st.judge_fraction(identity, int(seen.sum()), int(seen.count()), least, note=note)
