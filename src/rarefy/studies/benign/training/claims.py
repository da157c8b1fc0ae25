"""Verdicts of ``benign-training`` about the loss: B1 (Lemma 1) and B2 (Lemma 2).

A seed is one sample: the cells of a seed share their draws, and its worst cell counts, since the
lemmas speak of all.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.benign.training.lemmas import lemma_verdicts
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

MAINLY = 0.75
"""Share of the predicted rate that features must carry for its dependence on them to be read."""
EXPONENT = 0.25
"""Tolerance of exponents in |u| and |S|: with three quarters from features at one end of a range
of 2 or more and all at the other, an exact law would bend its exponent by up to that much."""
GEOMETRIC = 2**-0.5
"""Least bend that is nearer to 1 (geometric) than to 1/2 (like 1/t), in logarithm."""
LIKE_1_OVER_T = 0.1
"""Tolerance of the exponent -1 of stage 2."""


def verdicts(study: TrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    ordered = results.transpose("case", "seed", "gamma", "strength", ...)
    cases = {case: ordered.sel(case=case) for case in texts(results, "case")}
    named = Naming(study, scale)
    found: list[Verdict] = []
    if "slow" in cases:
        found += _stage_1(study, cases["slow"], named)
    if "slow uneven" in cases:
        found.append(_in_size(study, cases["slow uneven"], named))
    if "long" in cases:
        found += _stage_2(study, cases["long"], named)
    return [*found, *lemma_verdicts(study, results, scale)]


def feature_share(study: TrainingExperiment, strength: ArrayLike, size: ArrayLike) -> np.ndarray:
    """Part of the predicted first fall of the loss that comes from features, at Gamma = 1 where a
    noise vector has squared length base^2 (d - K)."""
    signal = np.asarray(size) * np.asarray(strength) ** 2
    return np.asarray(signal / (signal + study.base**2 * (study.d - study.classes)))


def _worst(values: xr.DataArray) -> np.ndarray:
    """The least of a seed's cells; missing where one is."""
    return np.asarray(values.values.reshape(values.sizes["seed"], -1).min(axis=1))


def _by_strength(here: xr.Dataset, values: xr.DataArray) -> str:
    """Smallest over seeds and Gamma, |u| by |u|."""
    least = values.min(["seed", "gamma"]).values
    pairs = zip(here["strength"].values, least, strict=True)
    return ", ".join(f"{value:.3g} at {u:g}" for u, value in pairs)


def _stage_1(study: TrainingExperiment, slow: xr.Dataset, named: Naming) -> list[Verdict]:
    least, bend = slow["constant"].sel(spread="least"), slow["bend"]
    strength = slow["strength"].values
    led = feature_share(study, strength, study.size) >= MAINLY
    rate = (slow["class_rate"].mean("class") / slow["lr"]).sel(gamma=slow["gamma"].values.min())
    used = ", ".join(f"{u:g}" for u in strength[led])
    few = "" if led.sum() > 1 else "no two |u| on the axis at which features lead"
    return [
        st.judge_bound(
            named("B1.1", "rate of the slowest sample over that of features alone"),
            _worst(least),
            st.OMEGA,
            "at_least",
            note="in units of eta m output_scale^2 |S||u|^2/n times (1 - 1/K)/(2 log K), the "
            f"first step of features alone; least by |u|: {_by_strength(slow, least)}",
        ),
        st.judge_bound(
            named("B1.2", "rate in the second half of stage 1 over that in the first"),
            _worst(bend),
            GEOMETRIC,
            "at_least",
            note="median sample (1: geometric, 1/2: like 1/t); least by |u|: "
            f"{_by_strength(slow, bend)}",
        ),
        undecided(
            st.judge_slope(
                named("B1.3", "exponent of the rate in |u| where features lead"),
                _slope_or_none(strength[led], rate.values[:, led]),
                2.0,
                EXPONENT,
                note=f"Gamma = {slow['gamma'].values.min():g}, |u| = {used or 'none'}",
            ),
            few,
        ),
    ]


def _in_size(study: TrainingExperiment, uneven: xr.Dataset, named: Naming) -> Verdict:
    """Classes of unequal size in one run: the number of samples n stays what it is."""
    sizes = np.array(study.sizes_of("slow uneven"))
    u = uneven["strength"].values[-1]
    rate = uneven["class_rate"].isel(strength=-1).sel(gamma=uneven["gamma"].values.min()).values
    there = feature_share(study, u, sizes) >= MAINLY
    used = ", ".join(str(size) for size in sizes[there])
    return st.judge_slope(
        named("B1", "classes of unequal size: exponent of the rate in |S_y|"),
        _slope_or_none(sizes[there].astype(float), rate[:, there]),
        1.0,
        EXPONENT,
        note=f"|u| = {u:g}, classes of {used or 'none'} samples, those where features lead",
    )


def _stage_2(study: TrainingExperiment, long: xr.Dataset, named: Naming) -> list[Verdict]:
    came = long["start"].values[np.isfinite(long["start"].values)]
    when = f"T_0 = {came.mean():.0f} on average" if came.size else "T_0 never came"
    fitted = f"last three quarters of {study.long_steps} steps, mean over Gamma and |u|"

    def exponent(name: str) -> st.Slope:
        values = long[name].values.reshape(long.sizes["seed"], -1).mean(axis=1)
        fit = st.mean_interval(values)
        return st.Slope(fit.mean, fit.low, fit.high, fit.n, 2)

    return [
        st.judge_bound(
            named("B2.1", "average loss since T_0 over Lemma 2's bound"),
            -_worst(-long["bound_worst"]),
            1.0,
            "at_most",
            note="largest of a seed's cells and steps; eps = "
            f"{study.stop_loss:g}, |W(T_0) - W*| measured, {when}",
        ),
        st.judge_upper_exponent(
            named("B2.2", "exponent in t of the training loss"),
            exponent("loss_slope"),
            -1.0,
            LIKE_1_OVER_T,
            note=fitted,
        ),
        st.judge_upper_exponent(
            named("B2", "loss averaged since T_0: exponent in t"),
            exponent("average_slope"),
            -1.0,
            LIKE_1_OVER_T,
            note=f"{fitted}; a loss that falls like 1/t has an average like log(t)/t",
        ),
    ]


def _slope_or_none(x: np.ndarray, y: np.ndarray) -> st.Slope:
    """Slope of logarithms with its interval over seeds; none from fewer than two points."""
    if len(x) < 2:
        return st.Slope(np.nan, np.nan, np.nan, len(y), len(x))
    return st.loglog_slope(x, y)
