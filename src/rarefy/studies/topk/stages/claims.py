"""What ``topk-stages`` claims: the length of the first stage in every quantity (S11)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.stages.experiment import StagesExperiment
from rarefy.theory.topk import noise_stage_order, signal_stage_order

COEFFICIENT = {"signal": "gamma", "noise": "rho"}
"""Whose stage the lemma of a regime is about."""
EXPONENTS = {
    "signal": {"filters": 1, "classes": 1, "samples": 0, "lr": -1, "mu": -2, "sigma": 0, "d": 0},
    "noise": {"filters": 1, "classes": 0, "samples": 1, "lr": -1, "mu": 0, "sigma": -2, "d": -1},
}
"""m T/(eta mu^2) of Lemma F.1 and m n/(eta sigma_p^2 d) of Lemma H.1."""
SYMBOLS = {
    **{"filters": "m", "classes": "T", "samples": "n", "lr": "eta", "mu": "mu"},
    **{"sigma": "sigma_p", "d": "d"},
}
TOLERANCE = 0.1
"""A step too many of the shortest stage, some twenty steps, is 5 % of it: 0.02 in an exponent over
a factor of eight; what depends on the slowest of many draws grows a little with their number."""
LEMMA = {"signal": "Lemma F.1", "noise": "Lemma H.1"}


def stage_of(results: xr.Dataset, regime: str) -> xr.DataArray:
    """Length of the stage the lemma of this regime is about, to the last level: (varied, factor,
    seed)."""
    return results[f"{COEFFICIENT[regime]}_stage"].sel(regime=regime).isel(level=-1)


def exponent(stage: xr.DataArray) -> st.Slope:
    """Slope of (factor, seed), only of seeds that reached the level at every factor: a mean over
    those that were fast enough at one factor, and over all at another, would not be of the same
    runs."""
    values = by_seed(stage, "factor")
    whole = np.isfinite(values).all(axis=1, keepdims=True)
    return st.loglog_slope(stage["factor"].values, np.where(whole, values, np.nan))


def verdicts(experiment: StagesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The constant C = Theta(1) of both lemmas (primary), then exponents, which say more."""
    regimes, varied = (results[name].values.tolist() for name in ("regime", "varied"))
    found, worst = [], {}
    for regime in regimes:
        stage, ended = stage_of(results, regime), results["nonfinite_step"].sel(regime=regime)
        # infinite where a run was too short for it, NaN where it was lost
        stage = stage.where(stage.notnull() | (ended != -1), np.inf)
        named = Naming(experiment, scale, f"{regime} regime: ", f", {experiment.setting}")
        place = list(COEFFICIENT).index(regime) + 1
        name = named(f"S11.{place}", f"{LEMMA[regime]}'s constant, largest factor from its middle")
        note = _values(experiment, stage, regime)
        spread = _spread(_constants(experiment, stage, regime))
        found.append(st.judge_bound(name, spread, st.BIG_O, "at_most", note=note))
        for quantity in varied:
            slope, power = exponent(stage.sel(varied=quantity)), EXPONENTS[regime][quantity]
            worst[f"{regime}, {quantity}"] = (slope, power)
    # the constant contains how the residual falls from 1 - 1/T: it settles for large T only, so
    # T stands in no primary reading
    but_t = {case: of for case, of in worst.items() if not case.endswith("classes")}
    named = Naming(experiment, scale, "exponents in ", f", {experiment.setting}")
    return [
        *found,
        _exponents(named("S11.3", _most_off(but_t)), but_t),
        _exponents(named("S11", _most_off(worst)), worst),
    ]


def _most_off(cases: Mapping[str, object]) -> str:
    """Names what is read."""
    varied = {case.rpartition(", ")[2] for case in cases}
    symbols = [symbol for name, symbol in SYMBOLS.items() if name in varied] or ["nothing"]
    return f"{', '.join(symbols)}: the one that is most off"


def _exponents(name: st.Identity, cases: Mapping[str, tuple[st.Slope, int]]) -> Verdict:
    """In both regimes: the worst decides."""
    if not cases:
        return st.judge_bound(name, [], TOLERANCE, "at_most", note="nothing else was varied")

    def off(slope: st.Slope, power: int) -> tuple[float, float, float]:
        ends = [abs(end - power) for end in (slope.low, slope.high)]
        inside = slope.low <= power <= slope.high
        return abs(slope.value - power), 0.0 if inside else min(ends), max(ends)

    where = max(cases, key=lambda case: off(*cases[case])[0])
    slope, power = cases[where]
    value, low, high = off(slope, power)
    estimate = st.Interval(value, low, high, slope.n_samples)
    note = f"{where}: {slope.value:.3g} where the lemma has {power:g}; of {len(cases)} exponents"
    return st.judge_bound(name, estimate, TOLERANCE, "at_most", note=note)


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


def _values(experiment: StagesExperiment, stage: xr.DataArray, regime: str) -> str:
    means = st.finite_mean(_constants(experiment, stage, regime))
    if short := int(np.isinf(stage).sum()):
        return f"{short} runs were too short for it"
    return f"{means.min():.3g} to {means.max():.3g} in {len(means)} cells"


def _spread(found: np.ndarray) -> st.Interval:
    """By what factor the mean of a cell is off the median of all, (seed, cell), at most; none where
    a stage is missing, since a stage longer than the training would be the largest."""
    if np.isinf(found).any():
        return st.Interval(np.nan, np.nan, np.nan, len(found))

    def of_means(sample: np.ndarray) -> np.ndarray:
        logs = np.log(st.finite_mean(sample, 1))
        off = np.abs(logs - np.median(logs, axis=1, keepdims=True))
        return np.asarray(np.exp(off.max(axis=1)))

    return st.bootstrap_interval(found, of_means)
