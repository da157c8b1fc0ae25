"""Verdicts of ``benign-training`` about the loss: B1 (Lemma 1) and B2 (Lemma 2).

A seed is one sample: the cells of a seed share their draws. Values missing on an axis are named.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.benign.training.lemmas import lemma_verdicts, naming
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.reading import Naming

MOST = 0.9
"""Share of cells in which what holds "with probability 1 - delta" must be seen: delta = 0.1."""
MAINLY = 0.75
"""Share of the predicted rate that features must carry for its dependence on them to be read."""
EXPONENT = 0.25
"""Tolerance of exponents in |u| and |S|: with three quarters from features at one end of a range
of 2 or more and all at the other, an exact law would bend its exponent by up to that much."""
PLAIN_EXPONENT = 0.1
"""Tolerance of exponents in m and eta, on which both parts of the rate depend alike."""
GEOMETRIC = 2**0.5
"""Largest bend, or its inverse, nearer to 1 (geometric) than to 1/2 (like 1/t), in logarithm. Set
after a first look, in place of 4, which a fall like 1/t would pass."""
LIKE_1_OVER_T = 0.1
"""Tolerance of the exponent -1 of stage 2."""


def verdicts(study: TrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    ordered = results.transpose("case", "seed", "gamma", "strength", ...)
    cases = {case: ordered.sel(case=case) for case in texts(results, "case")}
    names = {case: naming(study, scale, case) for case in cases}
    found: list[Verdict] = []
    for case in ("slow", "printed"):
        if case in cases:
            found += _each(cases[case], names[case], bends=case == "slow")
            found += _constants(study, cases[case], names[case])
    if "slow" in cases:
        found += _in_strength(study, cases["slow"], names["slow"])
        if "slow uneven" in cases:
            found.append(_in_size(study, cases["slow uneven"], names["slow uneven"]))
        found += _in_filters_and_rate(study, cases, names["slow"])
    if "printed" in cases:
        found.append(_too_early(study, cases["printed"], names["printed"]))
    if "long" in cases:
        found += _stage_2(study, cases["long"], names["long"])
    return [*found, *lemma_verdicts(study, results, scale)]


def feature_share(study: TrainingExperiment, strength: ArrayLike, size: ArrayLike) -> np.ndarray:
    """Part of the predicted first fall of the loss that comes from features, at Gamma = 1 where a
    noise vector has squared length base^2 (d - K)."""
    signal = np.asarray(size) * np.asarray(strength) ** 2
    return np.asarray(signal / (signal + study.base**2 * (study.d - study.classes)))


def _mostly(named: Naming, what: str, hit: np.ndarray, note: str) -> Verdict:
    """Of a seed's cells, (seed, gamma, strength), it is so in most."""
    shares = hit.reshape(len(hit), -1).mean(axis=1) if hit.size else np.empty(0)
    return st.judge_bound(named("B1", what), shares, MOST, "at_least", note=note)


def _by_strength(here: xr.Dataset, values: np.ndarray) -> str:
    """Smallest over seeds and Gamma, |u| by |u|."""
    return _listed(here["strength"].values, values.min(axis=(0, 1)))


def _each(here: xr.Dataset, named: Naming, bends: bool) -> list[Verdict]:
    """What is said of every sample and every step."""
    falls, least = here["falls"].values, here["gain_least"].values
    enough, left = here["gain_enough"].values, here["left"].values
    found = [
        _mostly(
            named,
            "no sample's loss ever rises in stage 1",
            falls >= 1,
            f"share of cells; in the worst cell {1 - falls.min():.2%} of the samples "
            f"rise; {left.mean():.0%} of the samples leave stage 1",
        ),
        _mostly(
            named,
            "in every step every sample gains what (68) promises",
            least >= 1,
            "share of cells; no hidden constant: the log odds fall by at least 2/5 eta "
            "m output_scale^2 |u|^2/n times the residuals of the class; over all cells "
            f"{enough.mean():.1%} of the (sample, step) gain it, the least gain by |u|: "
            f"{_by_strength(here, least)}",
        ),
    ]
    if bends:
        bend = here["bend"].values
        middle = np.mean(bend[np.isfinite(bend)]) if np.isfinite(bend).any() else np.nan
        note = (
            "share of cells; rate from a half to a quarter of the loss over that from "
            f"the whole to a half, median sample: mean {middle:.2f} (1: geometric, 1/2: 1/t); "
            f"smallest by |u|: {_by_strength(here, bend)}"
        )
        geometric = (bend >= 1 / GEOMETRIC) & (bend <= GEOMETRIC)
        found.append(_mostly(named, "the fall is nearer to geometric than to 1/t", geometric, note))
    return found


def _constants(study: TrainingExperiment, here: xr.Dataset, named: Naming) -> list[Verdict]:
    """Theta: the rate in units of what features alone would give, closed form."""
    least, most = (here["constant"].sel(spread=word).values for word in ("least", "most"))
    strength = here["strength"].values
    led = feature_share(study, strength, study.size) >= MAINLY
    # multiples of the first step's rate as multiples of eta m output_scale^2 |S||u|^2/n
    low, high = (
        f"{constant * (1 - 1 / study.classes) / (2 * np.log(study.classes)):.2g}"
        for constant in (st.OMEGA, st.BIG_O)
    )
    found = [
        _mostly(
            named,
            "no sample falls slower than 1/4 of the features' rate",
            least >= st.OMEGA,
            "share of cells; rate in units of eta m output_scale^2 |S||u|^2/n times "
            "(1 - 1/K)/(2 log K), the first step of features alone: 1/4 and 4 of that are "
            f"{low} and {high} without the constant; slowest sample by |u|: "
            f"{_by_strength(here, least)}",
        )
    ]
    own = ": a sample's own noise adds |xi|^2 to |S||u|^2, which Lemma 1 leaves out of its rate"
    for there, where, why in ((led, "features lead", ""), (~led, "noise leads", own)):
        largest = most[:, :, there]
        note = "premise not met: no such |u| on the axis"
        if there.any():
            values = ", ".join(f"{u:g}" for u in strength[there])
            note = f"|u| = {values}; fastest sample up to {largest.max():.3g} times{why}"
        what = f"none falls faster than 4 times that, where {where}"
        found.append(_mostly(named, what, largest <= st.BIG_O, note))
    return found


def _rate(here: xr.Dataset, per_lr: bool = False) -> np.ndarray:
    """Mean over classes of the stage-1 rate at the smallest Gamma: (seed, strength)."""
    rate = here["class_rate"].mean("class")
    rate = rate / here["lr"] if per_lr else rate
    return np.asarray(rate.sel(gamma=here["gamma"].values.min()).values)


def _in_strength(study: TrainingExperiment, slow: xr.Dataset, named: Naming) -> list[Verdict]:
    strength, rate = slow["strength"].values, _rate(slow, per_lr=True)
    led = feature_share(study, strength, study.size) >= MAINLY
    return [
        st.judge_slope(
            named("B1", f"exponent of the rate in |u|, {where}"),
            _slope_or_none(strength[there], rate[:, there]),
            2.0,
            EXPONENT,
            note=f"Gamma = {slow['gamma'].values.min():g}, |u| = "
            f"{', '.join(f'{u:g}' for u in strength[there]) or 'none'}",
        )
        for there, where in (
            (led, "where features lead"),
            (np.ones_like(led), "over the whole axis"),
        )
    ]


def _in_size(study: TrainingExperiment, uneven: xr.Dataset, named: Naming) -> Verdict:
    """Classes of unequal size in one run: the number of samples n stays what it is."""
    sizes = np.array(study.sizes_of("slow uneven"))
    u = uneven["strength"].values[-1]
    rate = uneven["class_rate"].isel(strength=-1).sel(gamma=uneven["gamma"].values.min()).values
    there = feature_share(study, u, sizes) >= MAINLY
    used = ", ".join(str(size) for size in sizes[there])
    return st.judge_slope(
        named("B1", "exponent of the rate in |S_y|"),
        _slope_or_none(sizes[there].astype(float), rate[:, there]),
        1.0,
        EXPONENT,
        note=f"|u| = {u:g}, classes of {used or 'none'} samples in one training set, those "
        "where features lead; for classes of equal size |S_y|/n is fixed",
    )


def _in_filters_and_rate(
    study: TrainingExperiment, cases: dict[str, xr.Dataset], named: Naming
) -> list[Verdict]:
    widths = [name for name in ("slow m/4", "slow", "slow 2m") if name in cases]
    m = np.array([study.at_case(name).filters for name in widths], dtype=float)
    rates = [_geometric_mean(_rate(cases[name], per_lr=True)) for name in widths]
    found = [
        st.judge_slope(
            named("B1", f"exponent of the rate in m, {study.combine} of filters"),
            _slope_or_none(m, np.stack(rates, axis=1)),
            -1.0 if study.combine == "mean" else 1.0,
            PLAIN_EXPONENT,
            note=f"m = {', '.join(f'{value:g}' for value in m)}, all |u|",
        )
    ]
    if "slow 4eta" in cases:
        rates = [_geometric_mean(_rate(cases[name])) for name in ("slow", "slow 4eta")]
        found.append(
            st.judge_slope(
                named("B1", "exponent of the rate in eta"),
                _slope_or_none(np.array([1.0, 4.0]), np.stack(rates, axis=1)),
                1.0,
                PLAIN_EXPONENT,
                note="two rates, one four times the other, all |u|",
            )
        )
    return found


def _too_early(study: TrainingExperiment, printed: xr.Dataset, named: Naming) -> Verdict:
    loss, level = printed["train_loss"].values, st.OMEGA * np.log(study.classes)
    note = (
        f"premise not met: T_0 has a training loss of log(K)/4 = {level:.3g}, the least after "
        f"{study.steps} steps is {loss.min():.3g}"
    )
    if (loss <= level).any():
        note = f"{(loss <= level).mean():.0%} of the cells reach T_0, too late to see a slope"
    what = named("B2", "exponent in t of the loss averaged since T_0")
    return st.judge_equal(what, np.empty(0), -1.0, LIKE_1_OVER_T, note=note)


def _stage_2(study: TrainingExperiment, long: xr.Dataset, named: Naming) -> list[Verdict]:
    worst, start = long["bound_worst"].values, long["start"].values
    came = start[np.isfinite(start)]
    when = f"T_0 = {came.mean():.0f} on average" if came.size else "T_0 never came"
    largest = _listed(long["strength"].values, worst.max(axis=(0, 1)))
    slower = (
        "a loss that falls like 1/t has an average like log(t)/t, whose exponent comes to -1 only "
        "with log t"
    )
    fitted = f"last three quarters of {study.long_steps} steps, all Gamma and |u|"
    return [
        st.judge_bound(
            named("B2", "average loss since T_0 within Lemma 2's bound"),
            worst.reshape(len(worst), -1).max(axis=1),
            1.0,
            "at_most",
            note="largest average over bound of a seed's cells and steps; eps = "
            f"{study.stop_loss:g}, |W(T_0) - W*| measured, {when}; largest by |u|: {largest}",
        ),
        *(
            st.judge_equal(
                named("B2", f"exponent in t of the {what}"),
                # missing if any cell of a seed is
                long[name].values.reshape(len(worst), -1).mean(axis=1),
                -1.0,
                LIKE_1_OVER_T,
                note=joined(fitted, note),
            )
            for name, what, note in (
                ("average_slope", "loss averaged since T_0", slower),
                ("loss_slope", "training loss itself", ""),
            )
        ),
    ]


def _geometric_mean(rate: np.ndarray) -> np.ndarray:
    """Over |u|: (seed,). Losses that rise have no logarithm: missing."""
    return np.asarray(np.exp(np.log(np.where(rate > 0, rate, np.nan)).mean(axis=1)))


def _slope_or_none(x: np.ndarray, y: np.ndarray) -> st.Slope:
    """Slope of logarithms with its interval over seeds; none from fewer than two points."""
    if len(x) < 2:
        return st.Slope(np.nan, np.nan, np.nan, len(y), len(x))
    return st.loglog_slope(x, y)


def _listed(strength: np.ndarray, values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g} at {u:g}" for u, value in zip(strength, values, strict=True))
