"""Verdicts of ``granularity-errors``: Theorem 5.1 (G1), Theorems 5.2 and G.3 (G2).

The primary cell is the one nearest to App. B: patch counts drawn, the largest s*, widths in the
paper's ratio. All others are the same question under another choice.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import finite_mean, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity.errors.experiment import (
    FIXED,
    IN_ALL,
    OTHER_HARD,
    PER_OUTPUT,
    ErrorsExperiment,
)
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import ORDER_ONE, SMALL, polylog
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import judge_worst

OWN_SCORE = math.log(1.5)
"""Score of a sample's own label that ends phase 1 (Def. G.2, the largest B it allows)."""


def verdicts(experiment: ErrorsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found, main = [], experiment.main
    for variation in texts(results, "variation"):
        for s in experiment.s_star:
            if not experiment._wanted(variation, s):
                continue
            cell = Cell(experiment, results.sel(variation=variation, s_star=s), scale)
            is_main = variation == AS_CHOSEN and s == main
            found += [*cell.coarse(is_main), *cell.fine(is_main)]
    return found


class Cell:
    """One place of the grid, (seed, read) per output and labels."""

    def __init__(self, study: ErrorsExperiment, here: xr.Dataset, scale: str) -> None:
        self.s, self.variation = int(here["s_star"]), str(here["variation"].values)
        self.study, self.here, self.k = study, here, study.subclasses_at(self.s)
        changed = "" if self.variation == AS_CHOSEN else f"{self.variation}, "
        counts = "" if self.variation == FIXED or study.counts == "fixed" else "drawn counts, "
        where = f"{changed}{counts}s*={self.s}, k={self.k}, {study.setting}: "
        self.named = Naming(study, scale, where)

    def of(self, name: str, labels: str) -> np.ndarray:
        return by_seed(self.here[name].sel(labels=labels), "read")

    def _premise(self, verdict: Verdict) -> Verdict:
        """Theorem 5.1 needs polylog(d) subclasses, and traces of the other side that can outweigh
        what a subclass's feature is learnt: s^dagger iota^dagger > s*/k, from (133)."""
        traces = self.study.distractors * self.study.distraction
        few = f"k={self.k} below log(d)={polylog(self.study.d):.1f}"
        weak = f"traces of {traces:g} below s*/k = {self.s / self.k:.2g} (133)"
        return undecided(
            verdict,
            joined(
                few if self.k < polylog(self.study.d) else "",
                weak if traces <= self.s / self.k else "",
            ),
        )

    # ------------------------------------------------------------------------------ Theorem 5.1, G1

    def coarse(self, main: bool) -> list[Verdict]:
        loss, easy = self.of("loss", "coarse")[:, -1], self.of("easy_error", "coarse")[:, -1]
        end = f"after {self.study.steps} updates"
        trained = f"training loss {finite_mean(loss):.3f}, easy error {finite_mean(easy):.3f} {end}"
        if not main:
            return [self._hard("G1", "hard_error", "error on hard samples", trained)]
        first = self.named("G1.1", f"coarse labels, (3) training loss {end}")
        second = self.named("G1.2", f"coarse labels, (4) error on easy samples {end}")
        return [
            self._premise(judge_bound(first, loss, SMALL, "at_most")),
            self._premise(judge_bound(second, easy, SMALL, "at_most")),
            self._hard("G1.3", "hard_error", "(5) error on hard samples", trained),
            *(self._hard("G1", name, words, "") for name, words in OTHER_HARD.items()),
        ]

    def _hard(self, claim: str, name: str, words: str, note: str) -> Verdict:
        values = self.of(name, "coarse")
        identity = self.named(claim, f"coarse labels, {words} at every read")
        first, *_, last = finite_mean(values)
        said = f"{first:.3f} before training, {last:.3f} at the end"
        verdict = judge_worst(
            identity, {"least mean over reads": values}, ORDER_ONE, "at_least", joined(said, note)
        )
        return self._premise(verdict)

    # ------------------------------------------------------------------------ Theorems 5.2, G.3, G2

    def fine(self, main: bool) -> list[Verdict]:
        if self.variation in (IN_ALL, PER_OUTPUT):  # the same network with fine labels
            return self._gain()
        place, when = self.end_of_phase_1(), "at the first read after T_0"
        note = self._when(place)
        hard = _at(self.of("hard_error", "fine"), place)
        if not main:
            identity = self.named("G2", f"fine labels, error on hard samples {when}")
            return [judge_bound(identity, hard, SMALL, "at_most", note=note)]
        easy = _at(self.of("easy_error", "fine"), place)
        names = {"easy samples": "easy_label_error", "hard samples": "hard_label_error"}
        wrong = {kind: _at(self.of(name, "fine"), place) for kind, name in names.items()}
        first = self.named("G2.1", f"fine labels, (6) error on hard samples {when}")
        second = self.named("G2.2", f"fine labels, (6) error on easy samples {when}")
        third = self.named("G2.3", f"fine labels, Theorem G.3, wrong labels {when}")
        last = self.named("G2", f"fine labels, error on hard samples after {self.study.steps}")
        return [
            judge_bound(first, hard, SMALL, "at_most", note=note),
            judge_bound(second, easy, SMALL, "at_most", note=note),
            judge_worst(third, wrong, SMALL, "at_most", note=note),
            judge_bound(last, self.of("hard_error", "fine")[:, -1], SMALL, "at_most"),
            *self._gain(),
        ]

    def _gain(self) -> list[Verdict]:
        """What the comparison of the two theorems comes to."""
        identity = self.named("", "hard error of coarse minus that of fine labels at the end")
        lost = (self.of("hard_error", labels)[:, -1] for labels in ("coarse", "fine"))
        return [judge_difference(identity, np.subtract(*lost), "positive")]

    def end_of_phase_1(self) -> np.ndarray:
        """Of every seed the place of the first read at or after T_0, or -1. T_0 is over where the
        loss is at most that of an own score of log(3/2), or where easy samples have that margin:
        scores are not negative, so that an own score is at least the margin."""
        over = self.of("loss", "fine") <= loss_at_own_score(self.k)
        over |= self.of("easy_margin", "fine") >= OWN_SCORE
        return np.where(over.any(axis=1), over.argmax(axis=1), -1)

    def _when(self, place: np.ndarray) -> str:
        """When T_0 was reached, in words."""
        reads, there = self.here["read"].values, place[place >= 0]
        seeds = int(np.isfinite(self.of("loss", "fine")).any(axis=1).sum())
        reached = f"T_0 reached by {len(there)} of {seeds} seeds"
        if not len(there):
            return reached
        first, last = (int(reads[each]) for each in (there.min(), there.max()))
        when = f"update {first}" if first == last else f"updates {first} to {last}"
        loss = mean_interval(_at(self.of("loss", "fine"), place)).mean
        return f"{reached}, read at {when}, loss there {loss:.2f}"


def loss_at_own_score(subclasses: int) -> float:
    """Loss of fine labels when a sample's own score is log(3/2) and all others are 0."""
    return math.log(2 * subclasses - 1 + math.exp(OWN_SCORE)) - OWN_SCORE


def _at(values: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The value of every seed at its own read, NaN without one."""
    return np.where(place >= 0, values[np.arange(len(values)), place], np.nan)
