"""Verdicts of ``granularity-detectors``; here G3, how fast detectors grow. All tolerances were set
before looking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, Slope, bootstrap_interval, judge_slope
from rarefy.studies.granularity.common import LABELS
from rarefy.studies.granularity.detectors.end_claims import EndJudge
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.judging import (
    IN_THETA,
    LATE,
    OWN,
    RATE,
    THETA,
    Judge,
    Readings,
    joined,
    judge_exponent,
    judge_range,
    predicted_rates,
    predicted_stop,
    ratio_of_means,
)
from rarefy.studies.granularity.detectors.set_claims import SetJudge
from rarefy.theory.granularity import FINE_COMMON, LEAST_RESIDUAL

FIRST_SLOPE = 0.1
"""Tolerance of the exponent 1 in k of the growth ratio under coarse labels, in phase 1."""
FIRST = "at the first step"
BEFORE = "just before own scores reach log(3/2)"
END = "at the end"
FORMULAS = {
    ("coarse", "common"): "eta s*/(4P) (33)",
    ("coarse", "subclass"): "eta s*/(4 k P) (35)",
    ("fine", "common"): "eta s*/(4 k P), in (202)",
    ("fine", "subclass"): "eta s*/(2 k P) (1 - 1/(2k)), in (205)",
}
"""Growth a step while all scores are equal, by labels and kind of feature."""


def detectors_verdicts(
    study: DetectorsExperiment, results: xr.Dataset, scale: str
) -> list[Verdict]:
    read = Readings(study, results)
    judges = (GrowthJudge(read, scale), SetJudge(read, scale), EndJudge(read, scale))
    return [verdict for judge in judges for verdict in judge.verdicts()]


@dataclass(frozen=True)
class GrowthJudge(Judge):
    """(9), (12), Theorem D.1, Lemma E.5, G.2."""

    claim: ClassVar[str] = "G3"

    def verdicts(self) -> list[Verdict]:
        return [
            *(self._first_rate(labels, kind) for labels in LABELS for kind in OWN),
            *(self._rate(labels, kind) for labels in LABELS for kind in OWN),
            *(self._time(labels) for labels in LABELS),
            *(
                make(labels, when)
                for when in (FIRST, BEFORE, END)
                for labels in LABELS
                for make in (self._ratio_slope, self._ratio)
            ),
            *self._late_ratio(),
        ]

    def _updates(self, when: str) -> Callable[[str, int], int]:
        """How many there have been, for labels and k."""
        if when == BEFORE:
            return self.read.before_stop
        count = self.read.study.first if when == FIRST else self.read.study.steps
        return lambda labels, k: count

    def _when(self, labels: str, when: str) -> str:
        """In words, with what the paper says of that time."""
        study, read = self.read.study, self.read
        if when == FIRST:
            return f"over the first {study.first} update{'s' if study.first > 1 else ''}"
        if when == END:
            beyond = "beyond the theorem, which stops at log(3/2)"
            return f"after {study.steps} updates" + (f"; {beyond}" if labels == "fine" else "")
        counts = {k: read.before_stop(labels, k) for k in read.subclasses}
        reads = ", ".join(f"{count} (k={k})" for k, count in counts.items())
        if study.first in counts.values():
            reads += f", where {study.first} is the first step again"
        if labels == "fine":
            return f"updates: {reads}"
        start = min(float(read.score(labels, k)[:, 0].mean()) for k in read.subclasses)
        limit = 1 / study.d
        is_over = "is over at the start, where they are" if start >= limit else "is shorter; at 0:"
        return (
            f"updates: {reads}; phase 1 of Def. D.1, scores below 1/d = {limit:.2g}, {is_over} "
            f"{start:.2g}: read with log(3/2), as Def. G.2 has it for fine labels"
        )

    # ------------------------------------------------------------------------------------ rates

    def _grown(self, labels: str, kind: str, k: int, updates: int) -> np.ndarray:
        """A step, over the rate while all scores are equal; NaN if there was none."""
        predicted = getattr(predicted_rates(self.read.study, labels, k), kind)
        grown = self.read.at(updates, f"{kind}_growth", labels, k)
        return grown / (updates * predicted) if updates else np.full_like(grown, np.nan)

    def _first_rate(self, labels: str, kind: str) -> Verdict:
        first = self.read.study.first
        return judge_range(
            self.identity(f"{labels} labels, growth a step of {kind} detectors {FIRST}"),
            self.cases(lambda k: self._grown(labels, kind, k, first)),
            1 - RATE,
            1 + RATE,
            f"1 times {FORMULAS[labels, kind]}",
            f"±{RATE:g}, no free constant",
            note=joined(self._when(labels, FIRST), "nearly arithmetic on (16)"),
        )

    def _rate(self, labels: str, kind: str) -> Verdict:
        """Theorem D.1 and Lemma G.2 are about every step until T_0."""

        def relative(k: int) -> np.ndarray:
            updates = self.read.before_stop(labels, k)
            found = self._grown(labels, kind, k, updates)
            if labels == "coarse":
                return found
            # in units of eta s*/(2 k P), as (202) and (205)
            found = found * (0.5 if kind == "common" else 1 - 1 / (2 * k))
            return found if kind == "common" else (found - 1) * k

        predicted, bounds, tolerance = {
            "coarse": (
                f"1 times {FORMULAS[labels, kind]}, or down to {LEAST_RESIDUAL:g} of it",
                (LEAST_RESIDUAL - RATE, 1 + RATE),
                f"±{RATE:g}, no free constant",
            ),
            "fine common": (
                "1/4 to 2/3 times eta s*/(2 k P) (202)",
                FINE_COMMON,
                "none",
            ),
            "fine subclass": (
                "k times its distance from eta s*/(2 k P), over that: O(1) (205)",
                (-BIG_O, BIG_O),
                f"constant {BIG_O:g}",
            ),
        }["coarse" if labels == "coarse" else f"fine {kind}"]
        return judge_range(
            self.identity(
                f"{labels} labels, mean growth a step of {kind} detectors until own scores reach "
                "log(3/2)"
            ),
            self.cases(relative),
            *bounds,
            predicted,
            tolerance,
            note=self._when(labels, BEFORE),
        )

    def _time(self, labels: str) -> Verdict:
        study, read = self.read.study, self.read
        said = "Corollary D.1.1" if labels == "coarse" else "Corollary G.2.1"
        expected = ", ".join(f"{predicted_stop(study, labels, k):.3g}" for k in read.subclasses)
        return judge_range(
            self.identity(f"{labels} labels, updates until own scores reach log(3/2)"),
            self.cases(lambda k: read.stop_time(labels, k) / predicted_stop(study, labels, k)),
            *THETA,
            f"order 1 times log(3/2)/(s* |S*| (sum of both rates)) ({said})",
            IN_THETA,
            note=f"expected updates: {expected}; scores begin above 0, and more than S* grow",
        )

    # ----------------------------------------------------------------------------------- ratios

    def _ratio_at(self, labels: str, when: str, k: int) -> np.ndarray:
        return self.read.growth_ratio(self._updates(when)(labels, k), labels, k)

    def _ratio_slope(self, labels: str, when: str) -> Verdict:
        coarse = labels == "coarse"
        return judge_exponent(
            self.identity(f"{labels} labels, growth ratio common/subclass against k {when}"),
            {k: self._ratio_at(labels, when, k) for k in self.read.subclasses},
            1.0 if coarse else 0.0,
            FIRST_SLOPE if coarse and when != END else LATE,
            note=joined(f"exponent {self._source(labels, when)}", self._when(labels, when)),
        )

    def _ratio(self, labels: str, when: str) -> Verdict:
        coarse = labels == "coarse"
        exact = "k/(2k - 1), nearly 1/2, follows from the update at equal scores"
        return judge_range(
            self.identity(
                f"{labels} labels, growth ratio common/subclass{' over k' if coarse else ''} {when}"
            ),
            self.cases(lambda k: self._ratio_at(labels, when, k) / (k if coarse else 1)),
            *THETA,
            f"of order 1 {self._source(labels, when)}",
            IN_THETA,
            note=joined(self._when(labels, when), "" if coarse or when == END else exact),
        )

    def _source(self, labels: str, when: str) -> str:
        if labels == "fine":
            return "(12)" if when == END else "(12), (202), (205)"
        return "(Lemma E.5)" if when == END else "(33), (35)"

    def _late_ratio(self) -> list[Verdict]:
        """(9): responses at the end."""
        steps, many = self.read.study.steps, self.read.subclasses
        both = np.stack([self.read.response_ratio(steps, "coarse", k) for k in many], axis=1)

        def exponent(samples: np.ndarray) -> float:
            with np.errstate(divide="ignore", invalid="ignore"):
                log = np.log([ratio_of_means(samples[:, place]) for place in range(len(many))])
            return float(np.polyfit(np.log(many), log, 1)[0]) if len(many) > 1 else np.nan

        found = bootstrap_interval(both, exponent)
        return [
            judge_slope(
                self.identity("coarse labels, final response ratio common/subclass against k"),
                Slope(found.mean, found.low, found.high, found.n, len(many)),
                1.0,
                LATE,
                note="exponent of the ratio of means (9)",
            ),
            judge_range(
                self.identity("coarse labels, final response ratio common/subclass over k"),
                self.cases(lambda k: self.read.response_ratio(steps, "coarse", k) / [k, 1]),
                *THETA,
                "of order 1 (9)",
                IN_THETA,
            ),
        ]
