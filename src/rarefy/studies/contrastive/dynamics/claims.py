"""Verdicts of ``contrast-dynamics``: C1-C5 and C14."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    judge_bound,
    judge_equal,
    judge_fraction,
    judge_slope,
)
from rarefy.measure.trends import loglog_slope
from rarefy.studies.contrastive.dynamics.experiment import DynamicsExperiment
from rarefy.theory.contrastive import expected_t1, outside_decay, stage_1_growth, t3, t4


def predicted_growth(study: DynamicsExperiment, results: xr.Dataset) -> xr.DataArray:
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


def dynamics_verdicts(study: DynamicsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
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
    # from the measured factor alone, so that the slope does not contain the prediction
    factor = results["stage_1_factor"].sel(group="minority").transpose("seed", "eps_min").values
    rate = factor ** (1 / steps) - 1 + study.lr * study.weight_decay
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
        _t1_of_001(study, t1_001, name("C3", "T1 of 001 reached by all neurons")),
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
            name("C4", "(65) largest ordinary over largest lucky weight"),
            results["ordinary_over_lucky"].values.ravel(),
            BIG_O,
            "at_most",
            note="over the features whose M*_j is not empty",
        ),
        judge_bound(
            name("C4", "(80) growth of bias over norm since T1"),
            results["bias_at_t2"].values.ravel()
            / math.sqrt(2 * math.log(study.d))
            / study.bias_scale
            if study.bias_scale
            else np.empty(0),
            math.log(study.d),
            "at_least",
            note="smallest neuron at T2; polylog(d) read as log d. It is 1 where the norm grows "
            "faster than 1 + eta/d a step, since the bias then only keeps up",
        ),
    ]


def _t1_of_001(study, t1, identity) -> Verdict:  # type: ignore[no-untyped-def]
    """(41) presupposes that there is no bias yet; 000's bias may set in before it is reached."""
    found = judge_fraction(
        identity,
        int((t1 >= 0).sum()),
        len(t1),
        0.95,
        note=f"median {np.median(t1):g} (-1: not reached)",
    )
    if study.bias_scale and found.outcome == "fails":
        why = "000's bias sets in first and stops most neurons, which 001 does not have: no answer"
        return replace(found, outcome="inconclusive", note=f"{found.note}; {why}")
    return found


def _loss(study, results, name) -> list[Verdict]:  # type: ignore[no-untyped-def]
    start, end = t3(study.d, study.lr), t4(study.d, study.lr)
    window = results.where((results["step"] > start) & (results["step"] <= end), drop=True)
    floor = results["floor"].stack(run=("eps_min", "seed")).values
    found = []
    for variable, what in (("running_loss", "loss"), ("running_full_loss", "with regulariser")):
        if window.sizes["step"] < 2:
            first, last, step = np.empty(0), np.empty(0), study.steps
        else:
            rows = window[variable].stack(run=("eps_min", "seed")).transpose("run", "step").values
            first, last, step = rows[:, 0], rows[:, -1], int(window["step"][-1])
        note = f"mean since T3={start:.0f} as in (163), to step {step} (T4={end:.0f})"
        share = float(np.nanmean(floor / last)) if len(last) else np.nan
        found.append(
            judge_bound(
                name("C5", f"fall of the running mean over the window, {what}"),
                first - last,
                0.0,
                "at_least",
                note=note,
            )
        )
        found.append(
            judge_bound(
                name("C5", f"running mean near 0, {what}"),
                last,
                0.1,
                "at_most",
                note=f"{note}; o(1) read as 0.1 nats; twins in a batch, which no encoder tells "
                f"apart, account for {share:.0%} of it",
            )
        )
    return found


def _three_stages(results, name) -> Verdict:  # type: ignore[no-untyped-def]
    """C14: in stage 1 the feature grows and the noise stays, in stage 2 the dominant feature pulls
    away from the second, at the end it is over half of what the three curves hold."""
    step = results["step"]
    reached = (results["t1"] >= 0) & (results["t2"] > results["t1"])

    def at(time: str) -> xr.Dataset:
        """The curves at the first record not before T1 or T2, run by run."""
        index = (step >= results[time]).argmax("step")
        return results[["dominant", "second", "noise"]].isel(step=index)

    start, one, two, end = results.isel(step=0), at("t1"), at("t2"), results.isel(step=-1)
    first_stage = (one["dominant"] > 5 * start["dominant"]) & (
        np.abs(one["noise"] / start["noise"] - 1) < 0.1
    )
    second_stage = two["dominant"] / two["second"] > one["dominant"] / one["second"]
    total = end["dominant"] ** 2 + end["second"] ** 2 + end["noise"] ** 2
    third_stage = end["dominant"] ** 2 > 0.5 * total
    good = reached & first_stage & second_stage & third_stage
    parts = {"1": reached & first_stage, "2": reached & second_stage, "3": third_stage}
    shares = ", ".join(f"stage {k} {float(v.mean()):.0%}" for k, v in parts.items())
    noise = float((end["noise"] > end["second"]).mean())
    return judge_fraction(
        name("C14", "three stages in the traced neuron"),
        int(good.sum()),
        int(good.size),
        0.9,
        note=f"{shares}; the noise part stays above the second feature in {noise:.0%} of runs",
    )


def _share(identity, tally: xr.DataArray, test: str, at_least: float) -> Verdict:  # type: ignore[no-untyped-def]
    cases = tally.sel(test="cases").sum("seed")
    where = ", ".join(f"{float(e):g}" for e in tally["eps_min"].values[cases.values > 0])
    note = f"cases at eps_min {where}" if where else "the set is empty in every run"
    total, passed = int(cases.sum()), int(tally.sel(test=test).sum())
    return judge_fraction(identity, passed, total, at_least, note=note)
