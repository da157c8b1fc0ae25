"""Verdicts of ``granularity-detectors`` on G5: what has been learnt in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, OMEGA, judge_slope, linear_slope, loglog_slope
from rarefy.studies.granularity._detectors_judging import (
    IN_THETA,
    LATE,
    OWN,
    THETA,
    Judge,
    judge_range,
)
from rarefy.theory.granularity import coarse_common_order, coarse_subclass_order, late_slope

SMALL_LOSS = 0.05
"""Training loss from which on the late law can be read: residuals are then near exp(-score)."""


@dataclass(frozen=True)
class EndJudge(Judge):
    """(10), (11), (13), Lemma E.4, Corollary G.2.1."""

    claim: ClassVar[str] = "G5"

    def verdicts(self) -> list[Verdict]:
        study, read = self.read.study, self.read
        log, s = coarse_common_order(study.d), study.feature_patches
        found = [
            judge_range(
                self.identity("coarse labels, final score from common patches over log d"),
                self.cases(lambda k: s * read.end("common_response", "coarse", k) / log),
                *THETA,
                "of order 1 (Lemma E.4)",
                IN_THETA,
                note=f"s* = {s} patches a sample",
            ),
            judge_range(
                self.identity("coarse labels, final response to one common patch over log d"),
                self.cases(lambda k: read.end("common_response", "coarse", k) / log),
                *THETA,
                "of order 1 (10)",
                IN_THETA,
                note="(10) has for one patch what Lemma E.4 has for all s* of a sample",
            ),
            *self._late_growth(),
            judge_range(
                self.identity("coarse labels, final response to a subclass patch k/log d"),
                self.cases(
                    lambda k: (
                        read.end("subclass_response", "coarse", k)
                        / coarse_subclass_order(study.d, k)
                    )
                ),
                -math.inf,
                BIG_O,
                "at most O(1) (11)",
                f"constant {BIG_O:g}",
            ),
            judge_slope(
                self.identity("coarse labels, final response to a subclass patch against k"),
                loglog_slope(
                    read.subclasses,
                    np.stack(
                        [read.end("subclass_response", "coarse", k) for k in read.subclasses],
                        axis=1,
                    ),
                ),
                -1.0,
                LATE,
                note="exponent (11)",
            ),
        ]
        return [*found, *self._fine_ends()]

    def _fine_ends(self) -> list[Verdict]:
        """(13), where the theorem stops (Def. G.2, Corollary G.2.1) and at the end."""
        study, read = self.read.study, self.read
        last = len(study.reads) - 1
        places = {
            "when own scores reach log(3/2)": {k: read.stop("fine", k) for k in read.subclasses},
            "at the end": dict.fromkeys(read.subclasses, last),
        }
        found = []
        for when, place in places.items():
            reads = ", ".join(f"{study.reads[place[k]]} (k={k})" for k in place if place[k] >= 0)
            note = f"updates: {reads}" if when != "at the end" else ""
            ratios = {
                f"k={k}": read.response_ratio(study.reads[at], "fine", k)
                for k, at in place.items()
                if at >= 0
            }
            found.append(
                judge_range(
                    self.identity(f"fine labels, response ratio common/subclass {when}"),
                    ratios,
                    *THETA,
                    "of order 1 (13)",
                    IN_THETA,
                    note=note,
                )
            )
        for kind in OWN:

            def final(k: int, kind: str = kind) -> np.ndarray:
                return read.end(f"{kind}_response", "fine", k)

            found.append(
                judge_range(
                    self.identity(f"fine labels, response to a {kind} patch at the end"),
                    self.cases(final),
                    OMEGA,
                    math.inf,
                    "at least of order 1 (13)",
                    f"at least {OMEGA:g}",
                )
            )
        return found

    def _late_growth(self) -> list[Verdict]:
        """Slopes in log t once the loss is small (Lemma E.4, E.5)."""
        study, read = self.read.study, self.read
        s, reads = study.feature_patches, np.array(study.reads)
        loss = np.array([read.of("loss", "coarse", k).mean(axis=0) for k in read.subclasses])
        large = np.flatnonzero(~np.all(loss <= SMALL_LOSS, axis=0))  # the first read has no loss
        late = np.arange(large[-1] + 1, len(reads))

        def slopes(values: np.ndarray) -> np.ndarray:
            if len(late) < 3:
                return np.empty(0)
            x = np.log(reads[late])
            return np.array([linear_slope(x, row[late], resamples=0).slope for row in values])

        def score(k: int) -> np.ndarray:
            both = [read.of(f"{kind}_response", "coarse", k) for kind in OWN]
            return slopes(s * np.sum(both, axis=0))

        def common(k: int) -> np.ndarray:
            return slopes(read.of("common_response", "coarse", k)) / late_slope(k, s)

        since = f"from {reads[late[0]]} updates on" if len(late) else "never"
        note = f"reads at which the loss is at most {SMALL_LOSS:g}: {since}"
        return [
            judge_range(
                self.identity(f"coarse labels, late growth of {what} with log t"),
                self.cases(make),
                1 - LATE,
                1 + LATE,
                predicted,
                f"±{LATE:g}, no free constant",
                note=note,
            )
            for what, make, predicted in (
                ("a sample's own score", score, "1 (Lemma E.4)"),
                ("the common response", common, "1 times k/((k + 1) s*) (Lemma E.4, E.5)"),
            )
        ]
