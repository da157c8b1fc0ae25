"""Verdicts of ``benign-training`` about the loss: B1 (Lemma 1) and B2 (Lemma 2).

A seed is one sample: the cells of a seed share their draws. Values missing on an axis are named.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    Slope,
    judge_bound,
    judge_equal,
    judge_slope,
    loglog_slope,
)
from rarefy.studies.benign.training.cases import CASES, class_sizes
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.benign.training.lemmas import lemma_verdicts

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


def training_verdicts(study: TrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    judge = _Judge(study, results, scale)
    return [*judge.stage_1(), *judge.stage_2(), *lemma_verdicts(study, results, scale)]


def feature_share(study: TrainingExperiment, strength: np.ndarray, size: float) -> np.ndarray:
    """Part of the predicted first fall of the loss that comes from features, at Gamma = 1 where a
    noise vector has squared length base^2 (d - K)."""
    signal = size * np.asarray(strength) ** 2
    return np.asarray(signal / (signal + study.base**2 * (study.d - study.classes)))


@dataclass(frozen=True)
class _Judge:
    study: TrainingExperiment
    results: xr.Dataset
    scale: str

    def identity(self, claim: str, case: str, what: str) -> Identity:
        known = case in CASES
        study = self.study.at_case(CASES[case]) if known else self.study
        where = f"{study.setting} |S|={study.size}"
        name = f", {CASES[case].text}" if known else ""
        return (claim, study.name, self.scale, f"{where}{name}: {what}")

    def has(self, *cases: str) -> bool:
        return set(cases) <= set(self.results["case"].values.tolist())

    def at(self, case: str, name: str) -> xr.DataArray:
        return self.results[name].sel(case=case).transpose("seed", "gamma", "strength", ...)

    def shares(self, hit: np.ndarray) -> np.ndarray:
        """Share of a seed's cells, (seed, gamma, strength), in which it is so: (seed,)."""
        return np.asarray(hit.reshape(len(hit), -1).mean(axis=1)) if hit.size else np.empty(0)

    # ---------------------------------------------------------------------------------- Lemma 1

    def stage_1(self) -> list[Verdict]:
        found: list[Verdict] = []
        for case in ("slow", "printed"):
            if self.has(case):
                found += [*self._each(case), *self._constants(case)]
        return found + self._exponents()

    def _each(self, case: str) -> list[Verdict]:
        """What is said of every sample and every step."""
        falls, least = self.at(case, "falls").values, self.at(case, "gain_least").values
        enough, left = self.at(case, "gain_enough").values, self.at(case, "left").values
        reached = f"{left.mean():.0%} of the samples leave stage 1"
        found = [
            judge_bound(
                self.identity("B1", case, "no sample's loss ever rises in stage 1"),
                self.shares(falls >= 1),
                MOST,
                "at_least",
                note=f"share of cells; in the worst cell {1 - falls.min():.2%} of the samples "
                f"rise; {reached}",
            ),
            judge_bound(
                self.identity("B1", case, "in every step every sample gains what (68) promises"),
                self.shares(least >= 1),
                MOST,
                "at_least",
                note="share of cells; no hidden constant: the log odds fall by at least 2/5 eta "
                "m output_scale^2 |u|^2/n times the residuals of the class; over all cells "
                f"{enough.mean():.1%} of the (sample, step) gain it, the least gain by |u|: "
                f"{self._by_strength(least)}",
            ),
        ]
        if case == "slow":
            bend = self.at(case, "bend").values
            middle = np.mean(bend[np.isfinite(bend)]) if np.isfinite(bend).any() else np.nan
            found.append(
                judge_bound(
                    self.identity("B1", case, "the fall is nearer to geometric than to 1/t"),
                    self.shares((bend >= 1 / GEOMETRIC) & (bend <= GEOMETRIC)),
                    MOST,
                    "at_least",
                    note="share of cells; rate from a half to a quarter of the loss over that from "
                    f"the whole to a half, median sample: mean {middle:.2f} (1: "
                    "geometric, 1/2: 1/t); smallest by |u|: "
                    f"{_listed(self.results['strength'].values, bend.min(axis=(0, 1)))}",
                )
            )
        return found

    def _by_strength(self, values: np.ndarray) -> str:
        """Smallest over seeds and Gamma, |u| by |u|."""
        return _listed(self.results["strength"].values, values.min(axis=(0, 1)))

    def _constants(self, case: str) -> list[Verdict]:
        """Theta: the rate in units of what features alone would give, closed form."""
        constant = self.at(case, "constant")
        least = constant.sel(spread="least").values
        most = constant.sel(spread="most").values
        strength = self.results["strength"].values
        led = feature_share(self.study, strength, self.study.size) >= MAINLY
        found = [
            judge_bound(
                self.identity("B1", case, "no sample falls slower than 1/4 of the features' rate"),
                self.shares(least >= OMEGA),
                MOST,
                "at_least",
                note="share of cells; rate in units of eta m output_scale^2 |S||u|^2/n times "
                "(1 - 1/K)/(2 log K), the first step of features alone: 1/4 and 4 of that are "
                f"{self._in_lemma(OMEGA)} and {self._in_lemma(BIG_O)} without the constant; "
                f"slowest sample by |u|: {self._by_strength(least)}",
            )
        ]
        for there, where in ((led, "features lead"), (~led, "noise leads")):
            values = ", ".join(f"{u:g}" for u in strength[there])
            largest = most[:, :, there]
            note = f"|u| = {values}" if there.any() else "premise not met: no such |u| on the axis"
            if there.any():
                note += f"; fastest sample up to {largest.max():.3g} times"
                if where == "noise leads":
                    note += ": a sample's own noise adds |xi|^2 to |S||u|^2, which Lemma 1 leaves "
                    note += "out of its rate"
            found.append(
                judge_bound(
                    self.identity(
                        "B1", case, f"none falls faster than 4 times that, where {where}"
                    ),
                    self.shares(largest <= BIG_O),
                    MOST,
                    "at_least",
                    note=note,
                )
            )
        return found

    def _in_lemma(self, constant: float) -> str:
        """A multiple of the first step's rate as one of eta m output_scale^2 |S||u|^2/n."""
        return f"{constant * (1 - 1 / (k := self.study.classes)) / (2 * np.log(k)):.2g}"

    def _exponents(self) -> list[Verdict]:
        if not self.has("slow"):
            return []
        strength = self.results["strength"].values
        lr, rate = self.at("slow", "lr"), self.at("slow", "class_rate").mean("class")
        per_lr = (rate / lr).sel(gamma=self.results["gamma"].values.min()).values
        led = feature_share(self.study, strength, self.study.size) >= MAINLY
        found = []
        for there, where in (
            (led, "where features lead"),
            (np.ones_like(led), "over the whole axis"),
        ):
            slope = _slope_or_none(strength[there], per_lr[:, there])
            used = ", ".join(f"{u:g}" for u in strength[there])
            found.append(
                judge_slope(
                    self.identity("B1", "slow", f"exponent of the rate in |u|, {where}"),
                    slope,
                    2.0,
                    EXPONENT,
                    note=f"Gamma = {self.results['gamma'].values.min():g}, |u| = {used or 'none'}",
                )
            )
        found += self._in_size()
        found += self._in_filters_and_rate()
        return found

    def _in_size(self) -> list[Verdict]:
        """Classes of unequal size in one run: the number of samples n stays what it is."""
        if not self.has("slow uneven"):
            return []
        strength = self.results["strength"].values
        sizes = np.array(class_sizes(CASES["slow uneven"], self.study.classes, self.study.size))
        u = strength[-1]
        first = self.at("slow uneven", "class_rate").isel(strength=-1)
        rate = first.sel(gamma=self.results["gamma"].values.min()).values
        there = np.array([feature_share(self.study, u, float(each)) >= MAINLY for each in sizes])
        used = ", ".join(str(size) for size in sizes[there])
        return [
            judge_slope(
                self.identity("B1", "slow uneven", "exponent of the rate in |S_y|"),
                _slope_or_none(sizes[there].astype(float), rate[:, there]),
                1.0,
                EXPONENT,
                note=f"|u| = {u:g}, classes of {used or 'none'} samples in one training set, those "
                "where features lead; for classes of equal size |S_y|/n is fixed",
            )
        ]

    def _in_filters_and_rate(self) -> list[Verdict]:
        gamma = self.results["gamma"].values.min()
        found = []
        widths = [name for name in ("slow m/4", "slow", "slow 2m") if self.has(name)]
        m = np.array([self.study.at_case(CASES[name]).filters for name in widths], dtype=float)
        rates = []
        for name in widths:
            rate = self.at(name, "class_rate").mean("class") / self.at(name, "lr")
            rates.append(_geometric_mean(rate.sel(gamma=gamma).values))
        found.append(
            judge_slope(
                self.identity(
                    "B1", "slow", f"exponent of the rate in m, {self.study.combine} of filters"
                ),
                _slope_or_none(m, np.stack(rates, axis=1)),
                -1.0 if self.study.combine == "mean" else 1.0,
                PLAIN_EXPONENT,
                note=f"m = {', '.join(f'{value:g}' for value in m)}, all |u|",
            )
        )
        if self.has("slow 4eta"):
            quotients = []
            for name in ("slow", "slow 4eta"):
                rate = self.at(name, "class_rate").mean("class").sel(gamma=gamma)
                quotients.append(_geometric_mean(rate.values))
            found.append(
                judge_slope(
                    self.identity("B1", "slow", "exponent of the rate in eta"),
                    _slope_or_none(np.array([1.0, 4.0]), np.stack(quotients, axis=1)),
                    1.0,
                    PLAIN_EXPONENT,
                    note="two rates, one four times the other, all |u|",
                )
            )
        return found

    # ---------------------------------------------------------------------------------- Lemma 2

    def stage_2(self) -> list[Verdict]:
        found = self._printed()
        if not self.has("long"):
            return found
        worst = self.at("long", "bound_worst").values
        quotient = worst.reshape(len(worst), -1).max(axis=1)
        start = self.at("long", "start").values
        came = start[np.isfinite(start)]
        when = f"T_0 = {came.mean():.0f} on average" if came.size else "T_0 never came"
        strength = self.results["strength"].values
        found.append(
            judge_bound(
                self.identity("B2", "long", "average loss since T_0 within Lemma 2's bound"),
                quotient,
                1.0,
                "at_most",
                note=f"largest average over bound of a seed's cells and steps; eps = "
                f"{self.study.stop_loss:g}, |W(T_0) - W*| measured, {when}; "
                f"largest by |u|: {_listed(strength, worst.max(axis=(0, 1)))}",
            )
        )
        for name, what, note in (
            (
                "average_slope",
                "exponent in t of the loss averaged since T_0",
                "; a loss that falls like 1/t has an average like log(t)/t, whose exponent comes "
                "to -1 only with log t",
            ),
            ("loss_slope", "exponent in t of the training loss itself", ""),
        ):
            values = self.at("long", name).values
            found.append(
                judge_equal(
                    self.identity("B2", "long", what),
                    _seed_means(values),
                    -1.0,
                    LIKE_1_OVER_T,
                    note=f"last three quarters of {self.study.long_steps} steps, all Gamma and |u|"
                    + note,
                )
            )
        return found

    def _printed(self) -> list[Verdict]:
        if not self.has("printed"):
            return []
        loss = self.at("printed", "train_loss").values
        level = OMEGA * np.log(self.study.classes)
        note = f"premise not met: T_0 has a training loss of log(K)/4 = {level:.3g}, the least "
        note += f"after {self.study.steps} steps is {loss.min():.3g}"
        if (loss <= level).any():
            note = f"{(loss <= level).mean():.0%} of the cells reach T_0, too late to see a slope"
        return [
            judge_equal(
                self.identity("B2", "printed", "exponent in t of the loss averaged since T_0"),
                np.empty(0),
                -1.0,
                LIKE_1_OVER_T,
                note=note,
            )
        ]


def _seed_means(values: np.ndarray) -> np.ndarray:
    """Means over a seed's cells: (seed,). Missing if any of its cells is."""
    return np.asarray(values.reshape(len(values), -1).mean(axis=1))


def _geometric_mean(rate: np.ndarray) -> np.ndarray:
    """Over |u|: (seed,). Losses that rise have no logarithm: missing."""
    return np.asarray(np.exp(np.log(np.where(rate > 0, rate, np.nan)).mean(axis=1)))


def _slope_or_none(x: np.ndarray, y: np.ndarray) -> Slope:
    """Slope of logarithms with its interval over seeds; none from fewer than two points."""
    if len(x) < 2:
        return Slope(np.nan, np.nan, np.nan, len(y), len(x))
    return loglog_slope(x, y)


def _listed(strength: np.ndarray, values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g} at {u:g}" for u, value in zip(strength, values, strict=True))
