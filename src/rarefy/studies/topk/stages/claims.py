"""Verdicts of ``topk-stages``: S11, an exponent for each quantity and regime, and one constant."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    Interval,
    Slope,
    bootstrap_interval,
    judge_bound,
    judge_slope,
    loglog_slope,
)
from rarefy.studies.topk.stages.experiment import StagesExperiment
from rarefy.theory.topk import noise_stage_order, signal_stage_order

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
    name = "gamma_stage" if regime == "signal" else "rho_stage"
    return results[name].sel(regime=regime, level=level)


def exponent(stage: xr.DataArray, varied: str) -> Slope:
    """Only of seeds that reached the level at every factor: a mean over those that were fast enough
    at one factor, and over all at another, would not be of the same runs."""
    values = stage.sel(varied=varied).transpose("seed", "factor").values
    whole = np.isfinite(values).all(axis=1, keepdims=True)
    return loglog_slope(stage["factor"].values, np.where(whole, values, np.nan))


def constants(study: StagesExperiment, stage: xr.DataArray, regime: str) -> np.ndarray:
    """Length in units of the lemma's expression: (seed, cell)."""
    found = []
    for varied in stage["varied"].values:
        for factor in stage["factor"].values:
            sizes = study.sizes(regime, str(varied), float(factor))
            scale = 1 / sizes.filters
            if regime == "signal":
                order = signal_stage_order(sizes.classes, sizes.mu, sizes.lr, scale)
            else:
                order = noise_stage_order(sizes.samples, sizes.sigma, int(sizes.d), sizes.lr, scale)
            found.append(stage.sel(varied=varied, factor=factor).values / order)
    return np.stack(found, axis=1)


def _spread(found: np.ndarray) -> Interval:
    """Largest over smallest mean of the cells, (seed, cell); none where a stage is missing, since a
    stage longer than the training would be the largest."""
    if not np.isfinite(found).all():
        return Interval(np.nan, np.nan, np.nan, len(found))

    def of_means(sample: np.ndarray) -> float:
        means = sample.mean(axis=0)
        return float(means.max() / means.min())

    return bootstrap_interval(found, of_means)


def stage_verdicts(study: StagesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for regime in results["regime"].values:
        for level in results["level"].values:
            stage = stage_of(results, str(regime), float(level))
            what = f"{'gamma' if regime == 'signal' else 'rho'} >= {level:g}"
            where = f"{regime} regime, {what}, {study.setting}"
            for varied in results["varied"].values:
                found.append(
                    judge_slope(
                        ("S11", study.name, scale, f"exponent in {varied}, {where}"),
                        exponent(stage, str(varied)),
                        EXPONENTS[str(regime)][str(varied)],
                        TOLERANCE,
                        note=_note(stage.sel(varied=varied), str(varied)),
                    )
                )
            found.append(
                judge_bound(
                    ("S11", study.name, scale, f"one constant for all cells, {where}"),
                    _spread(constants(study, stage, str(regime))),
                    BIG_O,
                    "at_most",
                    note="largest over smallest constant in front of the lemma's expression",
                )
            )
    return found


def _note(stage: xr.DataArray, varied: str) -> str:
    missing = int(stage.isnull().sum())
    said = [f"{missing} runs did not reach it"] if missing else []
    if varied == "classes":
        said.append("the constant contains the residual at the start, 1 - 1/T, and how it falls")
    return "; ".join(said)
