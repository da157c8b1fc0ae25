"""What ``topk-stages`` claims: the length of the first stage in every quantity (S11)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming, slices
from rarefy.studies.topk.stages.experiment import StagesExperiment
from rarefy.theory.topk import noise_stage_order, signal_stage_order

COEFFICIENT = {"signal": "gamma", "noise": "rho"}
"""Whose stage the lemma of a regime is about."""
EXPONENTS = {
    "signal": {"filters": 1, "classes": 1, "samples": 0, "lr": -1, "mu": -2, "sigma": 0, "d": 0},
    "noise": {"filters": 1, "classes": 0, "samples": 1, "lr": -1, "mu": 0, "sigma": -2, "d": -1},
}
"""m T/(eta mu^2) of Lemma F.1 and m n/(eta sigma_p^2 d) of Lemma H.1."""
TOLERANCE = 0.1
"""A step too many of the shortest stage, some twenty steps, is 5 % of it: 0.02 in an exponent over
a factor of eight; what depends on the slowest of many draws grows a little with their number."""


def stage_of(results: xr.Dataset, regime: str, level: float) -> xr.DataArray:
    """Length of the stage the lemma of this regime is about: (varied, factor, seed)."""
    return results[f"{COEFFICIENT[regime]}_stage"].sel(regime=regime, level=level)


def exponent(stage: xr.DataArray) -> st.Slope:
    """Slope of (factor, seed), only of seeds that reached the level at every factor: a mean over
    those that were fast enough at one factor, and over all at another, would not be of the same
    runs."""
    values = by_seed(stage, "factor")
    whole = np.isfinite(values).all(axis=1, keepdims=True)
    return st.loglog_slope(stage["factor"].values, np.where(whole, values, np.nan))


def verdicts(experiment: StagesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    axes = {name: results[name].values.tolist() for name in ("regime", "level")}
    for point, _ in slices(results, axes):
        regime, stage = point["regime"], stage_of(results, **point)
        where = f"{regime} regime, {COEFFICIENT[regime]} >= {point['level']:g}"
        named = Naming(experiment, scale, after=f", {where}, {experiment.setting}")
        for varied in results["varied"].values.tolist():
            here, power = stage.sel(varied=varied), EXPONENTS[regime][varied]
            name = named("S11", f"exponent in {varied}")
            found.append(
                st.judge_slope(name, exponent(here), power, TOLERANCE, _note(here, varied))
            )
        found.append(
            st.judge_bound(
                named("S11", "one constant for all cells"),
                _spread(_constants(experiment, stage, regime)),
                st.BIG_O,
                "at_most",
                note="largest over smallest constant in front of the lemma's expression",
            )
        )
    return found


def _constants(experiment: StagesExperiment, stage: xr.DataArray, regime: str) -> np.ndarray:
    """Length in units of the lemma's expression: (seed, cell)."""
    found = []
    for varied in stage["varied"].values.tolist():
        for factor in stage["factor"].values.tolist():
            at = experiment.sizes(regime, varied, factor)
            if regime == "signal":
                order = signal_stage_order(at.classes, at.mu, at.lr, at.output_scale)
            else:
                order = noise_stage_order(at.samples, at.sigma, int(at.d), at.lr, at.output_scale)
            found.append(stage.sel(varied=varied, factor=factor).values / order)
    return np.stack(found, axis=1)


def _spread(found: np.ndarray) -> st.Interval:
    """Largest over smallest mean of the cells, (seed, cell); none where a stage is missing, since a
    stage longer than the training would be the largest."""
    if not np.isfinite(found).all():
        return st.Interval(np.nan, np.nan, np.nan, len(found))

    def of_means(sample: np.ndarray) -> float:
        means = sample.mean(axis=0)
        return float(means.max() / means.min())

    return st.bootstrap_interval(found, of_means)


def _note(stage: xr.DataArray, varied: str) -> str:
    missing = int(stage.isnull().sum())
    return joined(
        f"{missing} runs did not reach it" if missing else "",
        "the constant contains the residual at the start, 1 - 1/T, and how it falls"
        if varied == "classes"
        else "",
    )
