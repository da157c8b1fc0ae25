"""Verdicts of ``benign-training`` about trained filters: B10 (Lemmas 3-7).

Each statement is judged for one training at a time, at the Gamma for which it comes out worst;
the note has all of them. Within a Gamma the worst |u| counts: the lemmas speak of all. They speak
of W(T), whose training loss is small: where it is not, what is seen is shown and decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, OMEGA, judge_bound, mean_interval
from rarefy.studies.benign.constants import premise
from rarefy.studies.benign.training.cases import CASES, ENDS
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory import benign

ALMOST_ALL = 0.99
"""Share of pairs (sample, filter) that must stay active: (86) says all, rounding aside."""
EXPONENT_IN_PROOF = 0.07
"""(48): fewer than a tenth are active with probability at most exp(-0.07 m)."""
GROWTH = 0.1
"""Exponent in t up to which kappa counts as a constant in stage 2."""


def naming(study: TrainingExperiment, scale: str, case: str) -> Naming:
    there = study.at_case(case)
    return Naming(study, scale, f"{there.setting} |S|={there.size}, {CASES[case].text}: ")


def lemma_verdicts(study: TrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for case in texts(results, "case"):
        named, here = naming(study, scale, case), results.sel(case=case)
        if case in ENDS:
            found += _Lemmas(study, study.at_case(case), here, named).all()
        if case == "long":
            found.append(_growth(here, named))
    return found


@dataclass(frozen=True)
class _Lemmas:
    """The verdicts about the end of one training; ``there``: the study at its case."""

    study: TrainingExperiment
    there: TrainingExperiment
    results: xr.Dataset
    named: Naming

    def all(self) -> list[Verdict]:
        return [*self.ranks(), *self.activity(), *self.memories(), *self.sizes(), *self.balance()]

    def judge(
        self, what: str, values: xr.DataArray, bound: float, at_least: bool, note: str = ""
    ) -> Verdict:
        """``values`` (gamma, strength, seed), the worst |u| of each seed, then the worst Gamma."""
        table = values.transpose("gamma", "strength", "seed").values
        rows = (np.min if at_least else np.max)(table, axis=1)
        level = corrected_level(len(rows))
        spans = [mean_interval(row, level) for row in rows]
        floor, ceiling = (bound, np.inf) if at_least else (-np.inf, bound)
        place = worst_of([s.low for s in spans], [s.high for s in spans], floor, ceiling)
        gammas = self.results["gamma"].values
        if len(gammas) > 1:
            listed = ", ".join(f"{s.mean:.3g}" for s in spans)
            note = joined(note, f"at Gamma {', '.join(f'{g:g}' for g in gammas)}: {listed}")
        side: Literal["at_least", "at_most"] = "at_least" if at_least else "at_most"
        verdict = judge_bound(self.named("B10", what), spans[place], bound, side, note=note)
        # filters that have hardly moved have full rank, active neurons and equal residuals anyway
        return undecided(verdict, premise(self.study, self.results["train_loss"].values))

    def ranks(self) -> list[Verdict]:
        small = self.there
        n = small.classes * small.size
        number = benign.rank_in_proof(small.filters, small.d, small.d - small.classes, n)
        found = [
            self.judge(
                "Lemma 3: rank(W_j A_j)/m at least 0.9",
                self.results["rank_share"],
                benign.rank_floor(small.filters) / small.filters,
                True,
                "least over classes; singular values over max(m, d) float32 roundings count",
            ),
            self.judge(
                "Lemma 3: largest singular value at most 4 sqrt(m) log T",
                self.results["largest_over_order"],
                BIG_O,
                False,
                "in units of sqrt(m) log T",
            ),
        ]
        what = "Lemma 3: singular value min{m,d,rank A}-n at least 0.1 sqrt(m) sigma_0"
        if number < 1:
            why = f"premise not met: number {number} of m={small.filters} filters and n={n} samples"
            none = judge_bound(self.named("B10", what), np.empty(0), 1.0, "at_least", note=why)
            return [*found, none]
        value = self.results["numbered_over_floor"]
        return [*found, self.judge(what, value, 1.0, True, "in units of the bound")]

    def activity(self) -> list[Verdict]:
        promised = 1 - math.exp(-EXPONENT_IN_PROOF * self.there.filters)
        least = float(self.results["active_least"].min())
        return [
            self.judge(
                "Lemma 4: share of fresh samples that activate a tenth of the filters",
                self.results["active_enough"],
                promised,
                True,
                f"1 - exp(-0.07 m) by (48); the least active sample has {least:.3g} of m active",
            ),
            self.judge(
                "(86): training noise that activates a filter goes on doing so",
                self.results["still_active"],
                ALMOST_ALL,
                True,
                "share of (sample, filter of its class) active at the start still active at the "
                "end",
            ),
        ]

    def memories(self) -> list[Verdict]:
        other = worst_other(self.results["memory_worst"])
        pairs = float(self.results["memory_pairs"].mean())
        strong = float(self.results["memory_pairs_strong"].mean())
        return [
            self.judge(
                f"Lemma 5: no other class's noise is remembered better than own, C' = {factor:g}",
                other * factor,
                1.0,
                False,
                f"largest other over least own response, times C'; of all pairs {share:.1%} hold",
            )
            for factor, share in ((1.0, pairs), (BIG_O, strong))
        ]

    def sizes(self) -> list[Verdict]:
        own = self.results["tail_own"]
        share = float(self.results["tail_share"].mean())
        unit = "in units of (eta m output_scale/n) |A_y^T A_j|_F b(S_j)"
        note = f"{unit}, L measured by Definition 1 and at least 1 ({share:.0%} of fresh samples)"
        return [
            self.judge(
                "Lemma 6: own response to long-tailed noise at least 1/4 of its order",
                own.isel(quantile=0),
                OMEGA,
                True,
                f"{note}; 5 % quantile of the samples",
            ),
            self.judge(
                "Lemma 6: own response at most 4 times its order",
                own.isel(quantile=-1),
                BIG_O,
                False,
                f"{note}; 95 % quantile of the samples",
            ),
            self.judge(
                "Lemma 6: other classes' response at most 4 times its order",
                self.results["tail_other"],
                BIG_O,
                False,
                f"{unit} E|zeta_1|; mean over fresh samples and classes",
            ),
        ]

    def balance(self) -> list[Verdict]:
        return [
            self.judge(
                "Lemma 7: log10 of largest over smallest residual at most log10 4",
                self.results["log_kappa"],
                math.log10(BIG_O * benign.balance_order([1.0, 1.0], [1.0, 1.0])),
                False,
                "largest in training; classes are alike, so that kappa's order (94) is 1",
            )
        ]


def worst_other(memory_worst: xr.DataArray) -> xr.DataArray:
    """Largest other over least own response; where a sample's own class does not see it at all, a
    million, since a value that is not finite would count as missing."""
    return 1 / memory_worst.clip(min=1e-6)


def _growth(results: xr.Dataset, named: Naming) -> Verdict:
    """A constant does not grow with t."""
    slopes = results["kappa_slope"].transpose("seed", "gamma", "strength")
    by_gamma = ", ".join(f"{float(v):.2f}" for v in slopes.mean(("seed", "strength")))
    return judge_bound(
        named("B10", "Lemma 7: kappa does not grow in stage 2"),
        slopes.values.max(axis=(1, 2)),
        GROWTH,
        "at_most",
        note="exponent of kappa in t, largest of a seed's cells; mean by Gamma: " + by_gamma,
    )
