"""Numbers of ``granularity-detectors`` as its verdicts, tables and pictures take them; the judge of
what must lie in a range for every number of subclasses."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.detectors import STDS
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    Interval,
    bootstrap_interval,
    judge_slope,
    judge_upper_exponent,
    loglog_slope,
    mean_interval,
)
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.worst import SLACK, corrected_level, worst_of
from rarefy.theory.granularity import (
    InitialSets,
    Rates,
    first_rates,
    initial_sets,
    phase_1_steps,
)

OWN = ("common", "subclass")
"""The two kinds of features an output should answer to."""

STOP = math.log(1.5)
"""B of Def. G.2."""

RATE = 0.1
"""Relative tolerance of closed forms without free constants: initial scores are not exactly equal,
and the first updates already move them."""
LATE = 0.25
"""Tolerance of exponents in k and of slopes that are exact only for many subclasses: with 1/(k + 1)
in place of 1/k (``late_slope``) an exponent of -1 becomes -0.83 over k = 2..16, and k/(2k - 1) in
place of 1/2 gives -0.12 in place of 0."""
THETA = (OMEGA, BIG_O)
"""What is of order 1."""
IN_THETA = f"between {OMEGA:g} and {BIG_O:g}"

Cases = Mapping[str, np.ndarray]
"""Samples, (seed,), of each case; or (seed, 2), of which the ratio of means is meant."""


@dataclass(frozen=True)
class Readings:
    """The results of one variation. Arrays are (seed, ...)."""

    study: DetectorsExperiment
    results: xr.Dataset
    variation: str = AS_CHOSEN

    @property
    def subclasses(self) -> list[int]:
        return [int(each) for each in self.results["subclasses"].values]

    def of(self, name: str, labels: str, subclasses: int) -> np.ndarray:
        """One output, (seed, read) or (seed,)."""
        at = {"variation": self.variation, "labels": labels, "subclasses": subclasses}
        found = self.results[name].sel(at).transpose("seed", ...)
        return np.asarray(found.values, dtype=float)

    def at(self, read: int, name: str, labels: str, subclasses: int) -> np.ndarray:
        """(seed,), after so many updates."""
        place = list(self.study.reads).index(read)
        return np.asarray(self.of(name, labels, subclasses)[:, place])

    def end(self, name: str, labels: str, subclasses: int) -> np.ndarray:
        return self.at(self.study.steps, name, labels, subclasses)

    def share(self, members: str, kind: str, labels: str, subclasses: int) -> np.ndarray:
        """The part of the response to a kind of feature that a set carries, (seed, read)."""
        part = self.of(f"{kind}_by_{members}", labels, subclasses)
        whole = self.of(f"{kind}_response", labels, subclasses)
        return part / np.where(whole > 0, whole, np.nan)

    def growth_ratio(self, read: int, labels: str, subclasses: int) -> np.ndarray:
        """Growth of common over that of subclass detectors, (seed,)."""
        common, own = (self.at(read, f"{kind}_growth", labels, subclasses) for kind in OWN)
        return common / np.where(own != 0, own, np.nan)

    def score(self, labels: str, subclasses: int) -> np.ndarray:
        """Of a sample's own output: s* patches of both kinds, (seed, read)."""
        both = [self.of(f"{kind}_response", labels, subclasses) for kind in OWN]
        return np.asarray(self.study.feature_patches * np.sum(both, axis=0))

    def stop(self, labels: str, subclasses: int) -> int:
        """Place of the first read at which the mean score of a sample's own output has reached B =
        log(3/2), where the theorem about fine labels stops (Def. G.2); -1: at none of them."""
        reached = np.flatnonzero(self.score(labels, subclasses).mean(axis=0) >= STOP)
        return int(reached[0]) if len(reached) else -1

    def before_stop(self, labels: str, subclasses: int) -> int:
        """Number of updates at the last read before that: 0 where none is in between."""
        stop = self.stop(labels, subclasses)
        return self.study.reads[stop - 1 if stop > 0 else stop]

    def stop_time(self, labels: str, subclasses: int) -> np.ndarray:
        """Updates until the score reaches B, straight lines between reads, (seed,); NaN: never."""
        reads, found = np.array(self.study.reads, dtype=float), []
        for score in self.score(labels, subclasses):
            reached = np.flatnonzero(score >= STOP)
            if not len(reached):
                found.append(np.nan)
                continue
            now, last = reached[0], max(reached[0] - 1, 0)
            part = (STOP - score[last]) / (score[now] - score[last]) if now > last else 0.0
            found.append(reads[last] + part * (reads[now] - reads[last]))
        return np.array(found)

    def response_ratio(self, read: int, labels: str, subclasses: int) -> np.ndarray:
        """Answers to common and to subclass features, (seed, 2): their ratio of means is meant."""
        both = [self.at(read, f"{kind}_response", labels, subclasses) for kind in OWN]
        return np.stack(both, axis=1)


@dataclass(frozen=True)
class Judge:
    """What the verdicts of one claim have in common."""

    claim: ClassVar[str]
    read: Readings
    scale: str

    def identity(self, what: str) -> Identity:
        study = self.read.study
        return (self.claim, study.name, self.scale, f"{study.setting}: {what}")

    def cases(self, make: Callable[[int], np.ndarray]) -> Cases:
        """Samples for every number of subclasses."""
        return {f"k={k}": make(k) for k in self.read.subclasses}

    def at_every_read(self, make: Callable[[int], np.ndarray], later: bool = False) -> Cases:
        """Samples for every number of subclasses and every read, of (seed, read); ``later``: not
        for the start."""
        return {
            f"k={k} at update {read}": values
            for k in self.read.subclasses
            for read, values in zip(self.read.study.reads, make(k).T, strict=True)
            if read or not later
        }


def predicted_rates(study: DetectorsExperiment, labels: str, subclasses: int) -> Rates:
    """Growth a step at the start (004 eq. 33, 35, 202, 205), with the mean strength in it."""
    return first_rates(
        lr=study.lr,
        feature_patches=study.feature_patches,
        patches=study.patches,
        plus=subclasses,
        minus=subclasses,
        per_side=1 if labels == "coarse" else subclasses,
        spread=study.spread,
    )


def predicted_stop(study: DetectorsExperiment, labels: str, subclasses: int) -> float:
    """Updates until B if the |S*| that are expected grow at those rates."""
    rates = predicted_rates(study, labels, subclasses)
    detectors = expected_sets(study, True).detectors
    return phase_1_steps(rates, detectors, study.feature_patches, STOP)


def margin_noise(study: DetectorsExperiment) -> float:
    """What ``rarefy.measure.detectors`` reckons with, in units of sigma_0: |w| is near its root
    mean square at the start."""
    return STDS * study.sigma * math.sqrt(study.d)


def expected_sets(study: DetectorsExperiment, printed: bool) -> InitialSets:
    """Exact, with the margins printed in 004 or with those that strengths and noise need."""
    wide = {} if printed else {"spread": study.spread, "noise": margin_noise(study)}
    return initial_sets(study.d, study.neurons, study.threshold, **wide)


def estimate(samples: np.ndarray, level: float = 0.95) -> Interval:
    """Mean of (seed,), or ratio of the means of (seed, 2)."""
    if samples.ndim == 1:
        return mean_interval(samples, level)
    return bootstrap_interval(samples, ratio_of_means, level)


def ratio_of_means(samples: np.ndarray) -> float:
    first, second = samples.mean(axis=0)
    return float(first / second) if second else float("nan")


def judge_range(
    identity: Identity,
    cases: Cases,
    low: float,
    high: float,
    predicted: str,
    tolerance: str,
    note: str = "",
) -> Verdict:
    """Every case lies in [low, high]: judged by the one on which that stands or falls, with
    intervals that cover all together. Holds: all of its interval inside; fails: all outside."""
    level = corrected_level(len(cases))
    found = {name: estimate(samples, level) for name, samples in cases.items()}
    known = {name: each for name, each in found.items() if np.isfinite([each.low, each.high]).all()}
    missing = [name for name in found if name not in known]
    if not known:
        why = "no interval: too few values" if cases else "no such cases were run"
        return Verdict(
            *identity,
            predicted,
            "undefined",
            None,
            0,
            tolerance,
            "inconclusive",
            joined(note, why),
        )
    lows, highs = ([each[place] for each in known.values()] for place in (1, 2))
    name = list(known)[worst_of(lows, highs, low, high)]
    worst = known[name]
    outcome = "inconclusive"
    if worst.low >= low - SLACK and worst.high <= high + SLACK:
        outcome = "inconclusive" if missing else "holds"
    elif worst.high < low or worst.low > high:
        outcome = "fails"
    said = f"decided at {name}, the worst of {len(cases)} cases" if len(cases) > 1 else ""
    left = f"no interval at {', '.join(missing)}" if missing else ""
    lost = left_out({name: cases[name] for name in known})
    return Verdict(
        *identity,
        predicted=predicted,
        measured=f"{worst.mean:.3g} [{worst.low:.3g}, {worst.high:.3g}]",
        interval=(worst.low, worst.high),
        n=worst.n,
        tolerance=tolerance,
        outcome=outcome,
        note=joined(said, left, lost, note),
    )


def left_out(cases: Cases) -> str:
    """Which cases have seeds without a value, such as networks without a detector, in words."""
    found = []
    for name, samples in cases.items():
        lost = int((~np.isfinite(samples.reshape(len(samples), -1))).any(axis=1).sum())
        if lost:
            found.append(f"{lost} of {len(samples)} at {name}")
    return f"seeds without a value: {', '.join(found)}" if found else ""


def judge_exponent(
    identity: Identity,
    columns: Mapping[int, np.ndarray],
    predicted: float,
    tolerance: float,
    note: str = "",
    at_most: bool = False,
) -> Verdict:
    """How samples (seed,) fall or rise with k, as a power of it; ``at_most``: an upper bound. A
    number of subclasses without any value keeps the exponent from holding."""
    many = list(columns)
    slope = loglog_slope(many, np.stack(list(columns.values()), axis=1))
    judge = judge_upper_exponent if at_most else judge_slope
    lost = left_out({f"k={k}": samples for k, samples in columns.items()})
    verdict = judge(identity, slope, predicted, tolerance, joined(note, lost))
    missing = [f"k={k}" for k in many if not np.isfinite(columns[k]).any()]
    if not missing:
        return verdict
    outcome = "inconclusive" if verdict.outcome == "holds" else verdict.outcome
    why = joined(verdict.note, f"no value at {', '.join(missing)}")
    return dataclasses.replace(verdict, outcome=outcome, note=why)


def joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
