"""Verdicts of ``granularity-errors``: Theorem 5.1 (G1), Theorems 5.2 and G.3 (G2)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity.common import ORDER_ONE, SMALL
from rarefy.studies.granularity.errors.experiment import ErrorsExperiment
from rarefy.studies.granularity.premises import least_subclasses, most_subclasses, premises
from rarefy.studies.granularity.variations import AS_CHOSEN, CHANGES, varied
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.worst import corrected_level, judge_worst

FRESH = 0
"""The value of ``samples`` for fresh samples at every step."""
RECIPES = tuple(word for word in CHANGES if word.startswith("hard:"))
"""Other kinds of hard samples than the chosen one."""
RECIPE_LINES = ("iota_lower", "s_dagger iota_upper", "s_dagger", "sigma_strong")
"""Lines of App. B.3 that hard samples must keep to."""
OWN_SCORE = math.log(1.5)
"""Score of a sample's own label that ends phase 1 (Def. G.2, the largest B it allows)."""
ERRORS = (
    ("easy_error", "(6) error on easy samples"),
    ("hard_error", "(6) error on hard samples"),
    ("easy_label_error", "Theorem G.3, wrong labels of easy samples"),
    ("hard_label_error", "Theorem G.3, wrong labels of hard samples"),
)


def errors_verdicts(study: ErrorsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    judge = _Judge(study, results, scale)
    return [*judge.coarse(), *judge.recipes(), *judge.fine(), *judge.gain()]


def loss_at_own_score(subclasses: int) -> float:
    """Loss of fine labels when a sample's own score is log(3/2) and all others are 0."""
    return math.log(2 * subclasses - 1 + math.exp(OWN_SCORE)) - OWN_SCORE


class Reached(NamedTuple):
    """Of every seed the first read at or after T_0, or -1, and the mean loss there."""

    place: np.ndarray
    loss: float


def first_after_phase_1(here: xr.Dataset, subclasses: int) -> Reached:
    """``here``: fine labels, one number of subclasses, (seed, read). T_0 is over where the loss is
    at most that of an own score of log(3/2), or where easy samples have that margin: scores are
    not negative, so that an own score is at least the margin."""
    loss, margin = by_seed(here["loss"]), by_seed(here["easy_margin"])
    over = (loss <= loss_at_own_score(subclasses)) | (margin >= OWN_SCORE)
    place = np.where(over.any(axis=1), over.argmax(axis=1), -1)
    known = np.flatnonzero(place >= 0)
    at = loss[known, place[known]]
    at = at[np.isfinite(at)]
    return Reached(place, float(at.mean()) if len(at) else math.nan)


class _Judge:
    def __init__(self, study: ErrorsExperiment, results: xr.Dataset, scale: str) -> None:
        self.study, self.scale, self.everything = study, scale, results
        self.results = results.sel(variation=AS_CHOSEN)
        self.end = self.results.isel(read=-1)
        counts = [int(k) for k in results["subclasses"].values]
        self.enough = [k for k in counts if k >= least_subclasses(study.d)]
        self.window = [k for k in self.enough if k <= most_subclasses(study.d)]
        self.beyond = [k for k in self.enough if k > most_subclasses(study.d)]
        self.stored = [int(n) for n in results["samples"].values if n != FRESH]
        self.fresh = FRESH in results["samples"].values

    def identity(self, claim: str, what: str) -> Identity:
        return (claim, self.study.name, self.scale, f"{self.study.setting}: {what}")

    def _cases(self, name: str, labels: str, counts: list[int]) -> dict[str, np.ndarray]:
        """At the end, fresh samples: one case a number of subclasses."""
        if not self.fresh:
            return {}
        here = self.end[name].sel(labels=labels, samples=FRESH)
        return {f"k={k}": by_seed(here.sel(subclasses=k)) for k in counts}

    def _since_small(self, name: str) -> dict[str, np.ndarray]:
        """Coarse labels, fresh samples: (seed, read) from the first read on at which the mean is
        certainly small, T* of Theorem 5.1; the end where there is none."""
        if not self.fresh:
            return {}
        here = self.results[name].sel(labels="coarse", samples=FRESH)
        level = corrected_level(len(self.enough))
        cases = {}
        for k in self.enough:
            values = by_seed(here.sel(subclasses=k))
            small = [mean_interval(column, level).high <= SMALL for column in values.T]
            first = small.index(True) if any(small) else len(small) - 1
            since = f"from update {int(here['read'].values[first])} on"
            cases[f"k={k}, {since}"] = values[:, first:]
        return cases

    def _at_all_times(self, samples: list[int]) -> dict[str, np.ndarray]:
        """Hard error after coarse labels, (seed, read), one case a number of subclasses and set."""
        here = self.results["hard_error"].sel(labels="coarse")
        return {
            f"k={k}" + (f", {n} a subclass" if n else ""): by_seed(
                here.sel(subclasses=k, samples=n)
            )
            for n in samples
            for k in self.enough
        }

    # ------------------------------------------------------------------------------ Theorem 5.1, G1

    @property
    def few(self) -> str:
        return f"needs k >= log(d) = {least_subclasses(self.study.d):.1f} and fresh samples"

    @property
    def too_many(self) -> str:
        """Line 4 of App. B.3 is about coarse labels too."""
        if not self.beyond:
            return ""
        named = ", ".join(str(k) for k in self.beyond)
        most = most_subclasses(self.study.d)
        return f"k={named} above d^0.4 = {most:.1f}, the most that line 4 of App. B.3 allows"

    def outside(self, variation: str) -> str:
        """Lines of App. B.3 that hard samples do not keep to."""
        found = premises(varied(self.study, variation), self.study.main)
        broken = [
            f"{each.name} = {each.value:.2g}, line {each.formula.partition(':')[0]} of App. B.3 "
            f"has {each.sense} {each.limit:.2g}"
            for each in found
            if each.name in RECIPE_LINES and not each.holds
        ]
        return "; ".join(broken)

    def coarse(self) -> list[Verdict]:
        known = bool(self.enough) and self.fresh
        about = (
            f"coarse labels, every k >= log(d), {{}} at most {SMALL:g} from the first such read on"
        )
        found = [
            judge_worst(
                self.identity("G1", about.format(words)),
                self._since_small(name),
                SMALL,
                "at_most",
                note=self.too_many if known else self.few,
            )
            for name, words in (
                ("loss", "(3) training loss"),
                ("easy_error", "(4) error on easy samples"),
            )
        ]
        always = f"at least {ORDER_ONE:g} at every read"
        for words, samples in (
            ("fresh samples", [FRESH] if self.fresh else []),
            ("stored sets", self.stored),
        ):
            if words == "stored sets" and not samples:
                continue
            cases = self._at_all_times(samples)
            note = _joined(self.outside(AS_CHOSEN), self.too_many) if cases else self.few
            found.append(
                judge_worst(
                    self.identity(
                        "G1",
                        f"coarse labels, every k >= log(d), {words}, (5) error on hard samples "
                        f"{always}",
                    ),
                    cases,
                    ORDER_ONE,
                    "at_least",
                    note=note,
                )
            )
        return found

    def recipes(self) -> list[Verdict]:
        """(5) with other hard samples: how much of it is due to the chosen ones."""
        main = self.study.main
        there = [str(word) for word in self.everything["variation"].values]
        found = []
        for recipe in (word for word in RECIPES if word in there):
            cases = {}
            if self.fresh and main in self.enough:
                here = self.everything["hard_error"].sel(
                    variation=recipe, labels="coarse", subclasses=main, samples=FRESH
                )
                cases = {f"k={main}": by_seed(here)}
            found.append(
                judge_worst(
                    self.identity(
                        "G1",
                        f"coarse labels, k={main}, other hard samples ({recipe[6:]}), (5) error "
                        f"on hard samples at least {ORDER_ONE:g} at every read",
                    ),
                    cases,
                    ORDER_ONE,
                    "at_least",
                    note=self.outside(recipe) if cases else self.few,
                )
            )
        return found

    # ------------------------------------------------------------------------ Theorems 5.2, G.3, G2

    def fine(self) -> list[Verdict]:
        low, high = least_subclasses(self.study.d), most_subclasses(self.study.d)
        none = f"needs log(d) <= k <= d^0.4, {low:.1f} to {high:.1f}, and fresh samples"
        known = self.window if self.fresh else []
        held = f"of the k run, {low:.1f} to {high:.1f} holds {', '.join(map(str, known))}"
        found = []
        about = "fine labels, log(d) <= k <= d^0.4"
        for name, words in ERRORS:
            cases, when = self._after_phase_1(name, known)
            found.append(
                judge_worst(
                    self.identity("G2", f"{about}, {words} at the first read after T_0"),
                    cases,
                    SMALL,
                    "at_most",
                    note=_joined(when, held) if known else none,
                )
            )
        found += [
            judge_worst(
                self.identity("G2", f"{about}, {words} at the end, long after T_0"),
                self._cases(name, "fine", known),
                SMALL,
                "at_most",
                note=f"Theorem G.3 speaks of T_0; {held}" if known else none,
            )
            for name, words in ERRORS
        ]
        if self.beyond and self.fresh:
            found.append(
                judge_worst(
                    self.identity("G2", "fine labels, k > d^0.4, error on hard samples at the end"),
                    self._cases("hard_error", "fine", self.beyond),
                    SMALL,
                    "at_most",
                    note="beyond what Theorem 5.2 covers",
                )
            )
        here = self.end["hard_error"].sel(labels="fine", subclasses=self.study.main)
        for n in self.stored:
            found.append(
                judge_bound(
                    self.identity(
                        "G2",
                        f"fine labels, k={self.study.main}, a stored set of {n} a subclass, error "
                        "on hard samples at the end",
                    ),
                    by_seed(here.sel(samples=n)),
                    SMALL,
                    "at_most",
                    note="the theorem is about fresh samples",
                )
            )
        return found

    def _after_phase_1(self, name: str, counts: list[int]) -> tuple[dict[str, np.ndarray], str]:
        """Error of every seed at its first read at or after T_0, NaN without one; and when that
        was."""
        cases: dict[str, np.ndarray] = {}
        said = []
        for k in counts:
            here = self.results.sel(labels="fine", samples=FRESH, subclasses=k)
            found = first_after_phase_1(here, k)
            values = by_seed(here[name])
            picked = values[np.arange(len(values)), found.place]
            cases[f"k={k}"] = np.where(found.place >= 0, picked, np.nan)
            said.append(self._when(k, found))
        return cases, "; ".join(said)

    def _when(self, k: int, found: Reached) -> str:
        reads = self.results["read"].values
        there = found.place[found.place >= 0]
        reached = f"k={k}: T_0 reached by {len(there)} of {len(found.place)} seeds"
        if not len(there):
            return reached
        first, last = (int(reads[place]) for place in (there.min(), there.max()))
        when = f"update {first}" if first == last else f"updates {first} to {last}"
        before = max(int(there.min()) - 1, 0)
        return (
            f"{reached}, read at {when} (the read before: {int(reads[before])}), loss there "
            f"{found.loss:.2f}, at T_0 {loss_at_own_score(k):.2f}"
        )

    def gain(self) -> list[Verdict]:
        """What the comparison of the two theorems comes to, and for whom."""
        main = self.study.main
        if not self.fresh:
            return []
        here = self.end.sel(subclasses=main, samples=FRESH)
        error = here["hard_error"]
        gained = by_seed(error.sel(labels="coarse")) - by_seed(error.sel(labels="fine"))
        hardest = here["stratum_error"].isel(stratum=0)
        coarse = float(hardest.sel(labels="coarse").mean())
        return [
            judge_difference(
                self.identity("G2", f"k={main}, hard error of coarse minus that of fine labels"),
                gained,
                "positive",
                note="same samples, same test; paired by seed",
            ),
            judge_bound(
                self.identity(
                    "G2",
                    f"fine labels, k={main}, error on the 1/{self.study.strata} of hard samples "
                    "that the coarse network gets most wrong",
                ),
                by_seed(hardest.sel(labels="fine")),
                SMALL,
                "at_most",
                note=f"error of the coarse network there {coarse:.3f}, by selection",
            ),
        ]


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
