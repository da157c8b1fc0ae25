"""Verdicts of ``granularity-errors``: Theorem 5.1 (G1), Theorems 5.2 and G.3 (G2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_bound, judge_difference
from rarefy.studies.granularity._common import ORDER_ONE, SMALL, by_seed, judge_worst
from rarefy.studies.granularity._premises import least_subclasses, most_subclasses
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_errors import GranularityErrors

FRESH = 0
"""The value of ``samples`` for fresh samples at every step."""


def errors_verdicts(study: GranularityErrors, results: xr.Dataset, scale: str) -> list[Verdict]:
    judge = _Judge(study, results, scale)
    return [*judge.coarse(), *judge.fine(), *judge.gain()]


class _Judge:
    def __init__(self, study: GranularityErrors, results: xr.Dataset, scale: str) -> None:
        self.study, self.scale = study, scale
        self.results = results.sel(variation=AS_CHOSEN)
        self.end = self.results.isel(read=-1)
        counts = [int(k) for k in results["subclasses"].values]
        self.enough = [k for k in counts if k >= least_subclasses(study.d)]
        self.window = [k for k in self.enough if k <= most_subclasses(study.d)]
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

    def coarse(self) -> list[Verdict]:
        known = self.enough if self.fresh else []
        few = f"needs k >= log(d) = {least_subclasses(self.study.d):.1f} and fresh samples"
        about = f"coarse labels, every k >= log(d), {{}} at most {SMALL:g} at the end"
        found = [
            judge_worst(
                self.identity("G1", about.format(words)),
                self._cases(name, "coarse", known),
                SMALL,
                "at_most",
                note="" if known else few,
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
                    note="" if cases else few,
                )
            )
        return found

    # ------------------------------------------------------------------------ Theorems 5.2, G.3, G2

    def fine(self) -> list[Verdict]:
        low, high = least_subclasses(self.study.d), most_subclasses(self.study.d)
        none = f"needs log(d) <= k <= d^0.4, {low:.1f} to {high:.1f}, and fresh samples"
        known = self.window if self.fresh else []
        said = (
            ("easy_error", "(6) error on easy samples"),
            ("hard_error", "(6) error on hard samples"),
            ("easy_label_error", "Theorem G.3, wrong labels of easy samples"),
            ("hard_label_error", "Theorem G.3, wrong labels of hard samples"),
        )
        found = [
            judge_worst(
                self.identity("G2", f"fine labels, log(d) <= k <= d^0.4, {words} at the end"),
                self._cases(name, "fine", known),
                SMALL,
                "at_most",
                note="" if known else none,
            )
            for name, words in said
        ]
        beyond = [k for k in self.enough if k > high] if self.fresh else []
        if beyond:
            found.append(
                judge_worst(
                    self.identity("G2", "fine labels, k > d^0.4, error on hard samples at the end"),
                    self._cases("hard_error", "fine", beyond),
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
