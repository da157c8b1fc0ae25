"""Verdicts of ``granularity-detectors`` on G5: what has been learnt in the end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, OMEGA, linear_slope
from rarefy.studies.granularity.detectors.judging import (
    IN_THETA,
    LATE,
    OWN,
    STOP,
    THETA,
    Cases,
    Judge,
    Readings,
    expected_sets,
    joined,
    judge_exponent,
    judge_range,
)
from rarefy.theory.granularity import (
    coarse_common_order,
    coarse_subclass_order,
    late_gain,
    late_score,
    late_slope,
    printed_late_gain,
)

SMALL_LOSS = 0.05
"""Training loss from which on the late law can be read: residuals are then near exp(-score)."""
AT_STOP = "when own scores reach log(3/2)"
BEYOND = "at the end, beyond the theorem"
GAINS = {"follows from the update": False, "is printed": True}
"""C of (98): which, and whether it is the printed one."""


def late_places(read: Readings) -> np.ndarray:
    """Places of the reads from which on the coarse loss is small for every k."""
    loss = np.array([read.of("loss", "coarse", k).mean(axis=0) for k in read.subclasses])
    large = np.flatnonzero(~np.all(loss <= SMALL_LOSS, axis=0))  # the first read has no loss
    return np.arange(large[-1] + 1, loss.shape[1])


def gain_of(read: Readings, k: int, printed: bool) -> float:
    """C of (98), with the |S*| that are expected."""
    study = read.study
    setting = {"lr": study.lr, "feature_patches": study.feature_patches}
    if printed:
        return printed_late_gain(**setting, patches=study.patches, plus=k)
    detectors = expected_sets(study, True).detectors
    return late_gain(**setting, patches=study.patches, plus=k, detectors=detectors)


def late_growth(read: Readings, k: int, printed: bool = False) -> np.ndarray:
    """Of a sample's own score with coarse labels, from the first late read to the last, over what
    (98) gives from there; (seed,), empty where the loss stays large."""
    late = late_places(read)
    if len(late) < 2:
        return np.empty(0)
    score = read.score("coarse", k)
    first, last = (read.study.reads[place] for place in late[[0, -1]])
    start = score[:, late[0]]
    gain = gain_of(read, k, printed)
    by_law = np.array([float(late_score(last, first, each, gain)) for each in start]) - start
    return np.asarray((score[:, -1] - start) / np.where(by_law > 0, by_law, np.nan))


@dataclass(frozen=True)
class EndJudge(Judge):
    """(10), (11), (13), Lemma E.4, Corollary G.2.1."""

    claim: ClassVar[str] = "G5"

    def verdicts(self) -> list[Verdict]:
        return [
            *self._coarse_common(),
            *self._late_growth(),
            *self._late_score(),
            *self._coarse_subclass(),
            *self._fine_stop(),
            *self._fine_end(),
        ]

    # ----------------------------------------------------------------------------- coarse labels

    def _coarse_common(self) -> list[Verdict]:
        study, read = self.read.study, self.read
        log, s = coarse_common_order(study.d), study.feature_patches
        one_d = (
            f"at d={study.d} that is anything from {OMEGA * log:.3g} to {BIG_O * log:.3g}: how it "
            "depends on d is not tested"
        )
        return [
            judge_range(
                self.identity("coarse labels, final score from common patches over log d"),
                self.cases(lambda k: s * read.end("common_response", "coarse", k) / log),
                *THETA,
                "of order 1 (Lemma E.4)",
                IN_THETA,
                note=f"s* = {s} patches a sample; {one_d}",
            ),
            judge_range(
                self.identity("coarse labels, final response to one common patch over log d"),
                self.cases(lambda k: read.end("common_response", "coarse", k) / log),
                *THETA,
                "of order 1 (10)",
                IN_THETA,
                note=f"(10) has for one patch what Lemma E.4 has for all s* of a sample; {one_d}",
            ),
        ]

    def _coarse_subclass(self) -> list[Verdict]:
        """(11), an upper bound."""
        study, read = self.read.study, self.read
        s = study.feature_patches

        def response(k: int) -> np.ndarray:
            return read.end("subclass_response", "coarse", k)

        def over_limit(count: int) -> Cases:
            return self.cases(lambda k: count * response(k) / coarse_subclass_order(study.d, k))

        found = [
            judge_range(
                self.identity(f"coarse labels, final {what} k/log d"),
                over_limit(count),
                -math.inf,
                BIG_O,
                "at most O(1) (11)",
                f"constant {BIG_O:g}",
                note=joined(note, "one d: how it depends on d is not tested"),
            )
            for what, count, note in (
                ("response to a subclass patch", 1, ""),
                ("score from subclass patches", s, f"s* = {s} patches, as Lemma E.4 counts them"),
            )
        ]
        exponent = judge_exponent(
            self.identity("coarse labels, final response to a subclass patch against k"),
            {k: response(k) for k in read.subclasses},
            -1.0,
            LATE,
            note="exponent of an upper bound (11); 1/(k + 1) in place of 1/k is what the update "
            "gives",
            at_most=True,
        )
        return [*found, exponent]

    def _late_growth(self) -> list[Verdict]:
        """Slopes in log t once the loss is small (Lemma E.4, E.5)."""
        study, read = self.read.study, self.read
        s, reads, late = study.feature_patches, np.array(study.reads), late_places(read)

        def slopes(values: np.ndarray) -> np.ndarray:
            if len(late) < 3:
                return np.empty(0)
            x = np.log(reads[late])
            return np.array([linear_slope(x, row[late], resamples=0).slope for row in values])

        def score(k: int) -> np.ndarray:
            return slopes(read.score("coarse", k))

        def common(k: int) -> np.ndarray:
            return slopes(read.of("common_response", "coarse", k)) / late_slope(k, s)

        return [
            judge_range(
                self.identity(f"coarse labels, late growth of {what} with log t"),
                self.cases(make),
                1 - LATE,
                1 + LATE,
                predicted,
                f"±{LATE:g}, no free constant",
                note=self._since(late),
            )
            for what, make, predicted in (
                ("a sample's own score", score, "1 (Lemma E.4)"),
                ("the common response", common, "1 times k/((k + 1) s*) (Lemma E.4, E.5)"),
            )
        ]

    def _late_score(self) -> list[Verdict]:
        """(98) from the first late read on, with its constant C."""
        read = self.read
        error = BIG_O / math.log(read.study.d) ** 4

        def growth(printed: bool) -> Cases:
            return self.cases(lambda k: late_growth(read, k, printed))

        return [
            judge_range(
                self.identity(f"coarse labels, late growth of a sample's own score, C {words}"),
                growth(printed),
                1 - LATE,
                1 + LATE,
                "1 times log(C (t - T) exp(-A(T)) + 1) (98)",
                f"±{LATE:g}, no free constant",
                note=joined(
                    self._since(late_places(read)),
                    f"C = {', '.join(f'{gain_of(read, k, printed):.2g}' for k in read.subclasses)}"
                    f"; the error (98) allows, with constant {BIG_O:g}, is ±{error:.2g}",
                ),
            )
            for words, printed in GAINS.items()
        ]

    def _since(self, late: np.ndarray) -> str:
        since = f"from {self.read.study.reads[late[0]]} updates on" if len(late) else "never"
        return f"reads at which the loss is at most {SMALL_LOSS:g}: {since}"

    # ------------------------------------------------------------------------------- fine labels

    def _fine_stop(self) -> list[Verdict]:
        """(13) where the theorem stops (Def. G.2): Corollary G.2.1 has it for s* patches."""
        study, read = self.read.study, self.read
        stops = {k: read.stop("fine", k) for k in read.subclasses}
        reads = ", ".join(
            f"{study.reads[at]} (k={k})" if at >= 0 else f"never (k={k})" for k, at in stops.items()
        )

        def both(k: int) -> np.ndarray:
            found = read.response_ratio(study.reads[stops[k]], "fine", k)
            return found if stops[k] >= 0 else np.full_like(found, np.nan)

        def score(place: int) -> Cases:
            scale = study.feature_patches / STOP
            return self.cases(lambda k: scale * both(k)[:, place])

        judged = {
            f"fine labels, score from {kind} patches over log(3/2) {AT_STOP}": score(place)
            for place, kind in enumerate(OWN)
        }
        judged[f"fine labels, response ratio common/subclass {AT_STOP}"] = self.cases(both)
        return [
            judge_range(
                self.identity(what),
                cases,
                *THETA,
                "of order 1 (13), Corollary G.2.1",
                IN_THETA,
                note=f"updates: {reads}",
            )
            for what, cases in judged.items()
        ]

    def _fine_end(self) -> list[Verdict]:
        study, read = self.read.study, self.read
        note = f"after {study.steps} updates; the theorem stops at log(3/2)"

        def final(kind: str) -> Cases:
            return self.cases(lambda k: read.end(f"{kind}_response", "fine", k))

        ratio = judge_range(
            self.identity(f"fine labels, response ratio common/subclass {BEYOND}"),
            self.cases(lambda k: read.response_ratio(study.steps, "fine", k)),
            *THETA,
            "of order 1 (13)",
            IN_THETA,
            note=note,
        )
        responses = [
            judge_range(
                self.identity(f"fine labels, response to a {kind} patch {BEYOND}"),
                final(kind),
                OMEGA,
                math.inf,
                "at least of order 1 (13)",
                f"at least {OMEGA:g}",
                note=note,
            )
            for kind in OWN
        ]
        return [ratio, *responses]
