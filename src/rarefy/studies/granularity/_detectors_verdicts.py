"""Verdicts of ``granularity-detectors``; here G3, how fast detectors grow. All tolerances were set
before looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Slope, bootstrap_interval, judge_slope, loglog_slope
from rarefy.studies.granularity._common import LABELS
from rarefy.studies.granularity._detectors_end_verdicts import EndJudge
from rarefy.studies.granularity._detectors_judging import (
    IN_THETA,
    LATE,
    OWN,
    RATE,
    THETA,
    Judge,
    Readings,
    judge_range,
    predicted_rates,
    ratio_of_means,
)
from rarefy.studies.granularity._detectors_set_verdicts import SetJudge

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_detectors import GranularityDetectors

FIRST_SLOPE = 0.1
"""Tolerance of the exponent 1 in k of the growth ratio under coarse labels."""


def detectors_verdicts(
    study: GranularityDetectors, results: xr.Dataset, scale: str
) -> list[Verdict]:
    read = Readings(study, results)
    judges = (GrowthJudge(read, scale), SetJudge(read, scale), EndJudge(read, scale))
    return [verdict for judge in judges for verdict in judge.verdicts()]


@dataclass(frozen=True)
class GrowthJudge(Judge):
    """(9), (12), Theorem D.1, Lemma G.2."""

    claim: ClassVar[str] = "G3"

    def verdicts(self) -> list[Verdict]:
        return [
            *(self._rate(labels, kind) for labels in LABELS for kind in OWN),
            self._ratio_slope("coarse", 1.0, FIRST_SLOPE),
            self._ratio_slope("fine", 0.0, LATE),
            self._fine_ratio(),
            *self._late_ratio(),
        ]

    def _rate(self, labels: str, kind: str) -> Verdict:
        study, first = self.read.study, self.read.study.first

        def relative(k: int) -> np.ndarray:
            predicted = getattr(predicted_rates(study, labels, k), kind)
            return self.read.at(first, f"{kind}_growth", labels, k) / (first * predicted)

        formula = {
            ("coarse", "common"): "eta s*/(4P) (33)",
            ("coarse", "subclass"): "eta s*/(4 k P) (35)",
            ("fine", "common"): "eta s*/(4 k P), in (202)",
            ("fine", "subclass"): "eta s*/(2 k P) (1 - 1/(2k)), in (205)",
        }[labels, kind]
        return judge_range(
            self.identity(f"{labels} labels, growth a step of {kind} detectors at the start"),
            self.cases(relative),
            1 - RATE,
            1 + RATE,
            f"1 times {formula}",
            f"±{RATE:g}, no free constant",
            note=f"over the first {first} updates",
        )

    def _ratio_slope(self, labels: str, predicted: float, tolerance: float) -> Verdict:
        first = self.read.study.first
        ratios = [self.read.growth_ratio(first, labels, k) for k in self.read.subclasses]
        return judge_slope(
            self.identity(f"{labels} labels, growth ratio common/subclass against k"),
            loglog_slope(self.read.subclasses, np.stack(ratios, axis=1)),
            predicted,
            tolerance,
            note=f"exponent; over the first {first} updates (9), (12)",
        )

    def _fine_ratio(self) -> Verdict:
        first = self.read.study.first
        return judge_range(
            self.identity("fine labels, growth ratio common/subclass is of order 1"),
            self.cases(lambda k: self.read.growth_ratio(first, "fine", k)),
            *THETA,
            "about 1 (12)",
            IN_THETA,
            note="k/(2k - 1), nearly 1/2, follows from the update; (202) allows 1/4 to 2/3",
        )

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
