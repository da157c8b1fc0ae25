"""Verdicts of ``benign-training`` about trained filters: B10 (Lemmas 3-7).

Each statement is judged for one training at a time, at the Gamma for which it comes out worst;
the note has all of them. Within a Gamma the worst |u| counts: the lemmas speak of all. They speak
of W(T), whose training loss is small: where it is not, what is seen is shown and decides nothing.
"""

from __future__ import annotations

import math
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
Side = Literal["at_least", "at_most"]
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
            # filters that have hardly moved have full rank, active neurons, equal residuals anyway
            why = premise(study, here["train_loss"].values)
            for each in (*_spectra(study.at_case(case), here), *_responses(here)):
                found.append(undecided(_judge(named, *each), why if each[1] is not None else ""))
        if case == "long":
            found.append(_growth(here, named))
    return found


Statement = tuple[str, xr.DataArray | None, float, Side, str]
"""What is said of values (gamma, strength, seed), None where it says nothing, and a note."""


def _judge(
    named: Naming, what: str, values: xr.DataArray | None, bound: float, side: Side, note: str
) -> Verdict:
    """The worst |u| of each seed, then the worst Gamma."""
    identity = named("B10", what)
    if values is None:
        return judge_bound(identity, np.empty(0), bound, side, note=note)
    at_least = side == "at_least"
    table = values.transpose("gamma", "strength", "seed").values
    rows = (np.min if at_least else np.max)(table, axis=1)
    level = corrected_level(len(rows))
    spans = [mean_interval(row, level) for row in rows]
    floor, ceiling = (bound, np.inf) if at_least else (-np.inf, bound)
    place = worst_of([s.low for s in spans], [s.high for s in spans], floor, ceiling)
    gammas = values["gamma"].values
    if len(gammas) > 1:
        listed = ", ".join(f"{s.mean:.3g}" for s in spans)
        note = joined(note, f"at Gamma {', '.join(f'{g:g}' for g in gammas)}: {listed}")
    return judge_bound(identity, spans[place], bound, side, note=note)


def _spectra(there: TrainingExperiment, results: xr.Dataset) -> list[Statement]:
    """Lemmas 3 and 4 at the end of one training; ``there``: the study at its case."""
    m, n = there.filters, there.classes * there.size
    number = benign.rank_in_proof(m, there.d, there.d - there.classes, n)
    numbered = results["numbered_over_floor"] if number >= 1 else None
    unit = "in units of the bound"
    if numbered is None:
        unit = f"premise not met: number {number} of m={m} filters and n={n} samples"
    least = float(results["active_least"].min())
    return [
        (
            "Lemma 3: rank(W_j A_j)/m at least 0.9",
            results["rank_share"],
            benign.rank_floor(m) / m,
            "at_least",
            "least over classes; singular values over max(m, d) float32 roundings count",
        ),
        (
            "Lemma 3: largest singular value at most 4 sqrt(m) log T",
            results["largest_over_order"],
            BIG_O,
            "at_most",
            "in units of sqrt(m) log T",
        ),
        (
            "Lemma 3: singular value min{m,d,rank A}-n at least 0.1 sqrt(m) sigma_0",
            numbered,
            1.0,
            "at_least",
            unit,
        ),
        (
            "Lemma 4: share of fresh samples that activate a tenth of the filters",
            results["active_enough"],
            1 - math.exp(-EXPONENT_IN_PROOF * m),
            "at_least",
            f"1 - exp(-0.07 m) by (48); the least active sample has {least:.3g} of m active",
        ),
        (
            "(86): training noise that activates a filter goes on doing so",
            results["still_active"],
            ALMOST_ALL,
            "at_least",
            "share of (sample, filter of its class) active at the start still active at the end",
        ),
    ]


def _responses(results: xr.Dataset) -> list[Statement]:
    """Lemmas 5 to 7."""
    other, own = worst_other(results["memory_worst"]), results["tail_own"]
    share = float(results["tail_share"].mean())
    unit = "in units of (eta m output_scale/n) |A_y^T A_j|_F b(S_j)"
    note = f"{unit}, L measured by Definition 1 and at least 1 ({share:.0%} of fresh samples)"
    pairs = ((1.0, "memory_pairs"), (BIG_O, "memory_pairs_strong"))
    memories: list[Statement] = [
        (
            f"Lemma 5: no other class's noise is remembered better than own, C' = {factor:g}",
            other * factor,
            1.0,
            "at_most",
            "largest other over least own response, times C'; of all pairs "
            f"{float(results[name].mean()):.1%} hold",
        )
        for factor, name in pairs
    ]
    return [
        *memories,
        (
            "Lemma 6: own response to long-tailed noise at least 1/4 of its order",
            own.isel(quantile=0),
            OMEGA,
            "at_least",
            f"{note}; 5 % quantile of the samples",
        ),
        (
            "Lemma 6: own response at most 4 times its order",
            own.isel(quantile=-1),
            BIG_O,
            "at_most",
            f"{note}; 95 % quantile of the samples",
        ),
        (
            "Lemma 6: other classes' response at most 4 times its order",
            results["tail_other"],
            BIG_O,
            "at_most",
            f"{unit} E|zeta_1|; mean over fresh samples and classes",
        ),
        (
            "Lemma 7: log10 of largest over smallest residual at most log10 4",
            results["log_kappa"],
            math.log10(BIG_O * benign.balance_order([1.0, 1.0], [1.0, 1.0])),
            "at_most",
            "largest in training; classes are alike, so that kappa's order (94) is 1",
        ),
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
