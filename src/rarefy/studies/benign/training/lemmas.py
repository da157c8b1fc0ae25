"""Verdicts of ``benign-training`` about trained filters: B10 (Lemmas 3-7).

Condition 1 asks for more filters than samples, (b), and for initial weights both large enough for
Lemma 4, (118), and small enough for Lemmas 5 and 6, (c): at no size that can be run are both met.
So Lemma 4 is judged where the first, Lemmas 5 and 7 where the second is met; Lemma 6 needs both.
The worst |u| counts, at the smallest Gamma: for a large one Condition 1 (a) is not met.
"""

from __future__ import annotations

import math
from typing import Literal

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, OMEGA, judge_bound
from rarefy.studies.benign.constants import premise
from rarefy.studies.benign.training.experiment import TrainingExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.theory import benign

EXPONENT_IN_PROOF = 0.07
"""(48): fewer than a tenth are active with probability at most exp(-0.07 m)."""
PRIMARY = {
    ("wide large start", "Lemma 4"): "B10.1",
    ("wide", "Lemma 5"): "B10.2",
    ("wide", "Lemma 7"): "B10.3",
}
FURTHER = {
    "trained": ("Lemma 4", "Lemma 5", "Lemma 7"),
    "carried on": ("Lemma 4", "Lemma 5", "Lemma 7"),
    "wide": ("Lemma 3", "Lemma 6", "Lemma 6, others"),
    "wide large start": ("Lemma 6", "Lemma 6, others"),
}
"""What is looked at besides, by case."""
BOTH = "Lemma 6 needs initial weights as large as (118) and as small as (c) asks"
Side = Literal["at_least", "at_most"]


def lemma_verdicts(study: TrainingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for case, further in FURTHER.items():
        if case not in texts(results, "case"):
            continue
        there, here = study.at_case(case), results.sel(case=case)
        statements = _statements(there, here)
        why = joined(_outside(there), premise(study, here["train_loss"].values))
        for name, (what, output, bound, side, note) in statements.items():
            claim = PRIMARY.get((case, name), "B10" if name in further else "")
            if not claim:
                continue
            before = "" if claim in PRIMARY.values() else f"{case}: "
            named = Naming(study, scale, f"{before}{name}, ")
            values = by_seed(output.sel(gamma=output["gamma"].values.min()), "strength")
            worst = values.min(axis=1) if side == "at_least" else values.max(axis=1)
            verdict = judge_bound(named(claim, what), worst, bound, side, note=note)
            found.append(undecided(verdict, joined(why, BOTH if "Lemma 6" in name else "")))
    return found


def _outside(there: TrainingExperiment) -> str:
    """Why a setting is none of Condition 1 (b); empty where it is."""
    n, m = there.classes * there.size, there.filters
    return f"n = {n}, Condition 1 (b) asks for at most 0.1 m = {m / 10:g}" if n > m / 10 else ""


def _statements(
    there: TrainingExperiment, results: xr.Dataset
) -> dict[str, tuple[str, xr.DataArray, float, Side, str]]:
    """What is said, of which output, and a note; ``there``: the study at its case."""
    least = float(results["active_least"].min())
    unit = "in units of (eta m output_scale/n) |A_y^T A_j|_F b(S_j)"
    return {
        "Lemma 3": (
            "rank(W_j A_j)/m at least 0.9",
            results["rank_share"],
            benign.rank_floor(there.filters) / there.filters,
            "at_least",
            "least over classes; singular values over max(m, d) float32 roundings count",
        ),
        "Lemma 4": (
            "share of fresh samples that activate a tenth of the filters",
            results["active_enough"],
            1 - math.exp(-EXPONENT_IN_PROOF * there.filters),
            "at_least",
            f"1 - exp(-0.07 m) by (48); the least active sample has {least:.3g} of m active",
        ),
        "Lemma 5": (
            "largest other over least own response to training noise, times C' = 4",
            BIG_O * worst_other(results["memory_worst"]),
            1.0,
            "at_most",
            f"own is larger in {float(results['memory_pairs'].mean()):.1%} of all pairs",
        ),
        "Lemma 6": (
            "own response to long-tailed noise at least 1/4 of its order",
            results["tail_own"].isel(quantile=0),
            OMEGA,
            "at_least",
            f"{unit}; 5 % quantile of the samples with L of at least 1",
        ),
        "Lemma 6, others": (
            "other classes' response at most 4 times its order",
            results["tail_other"],
            BIG_O,
            "at_most",
            f"{unit} E|zeta_1|; mean over fresh samples and classes",
        ),
        "Lemma 7": (
            "log10 of largest over smallest residual at most log10 4",
            results["log_kappa"],
            math.log10(BIG_O * benign.balance_order([1.0, 1.0], [1.0, 1.0])),
            "at_most",
            "largest in training; classes are alike, so that kappa's order (94) is 1",
        ),
    }


def worst_other(memory_worst: xr.DataArray) -> xr.DataArray:
    """Largest other over least own response; where a sample's own class does not see it at all, a
    million, since a value that is not finite would count as missing."""
    return 1 / memory_worst.clip(min=1e-6)
