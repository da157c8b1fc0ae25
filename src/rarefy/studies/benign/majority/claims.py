"""Verdicts of ``benign-majority`` (B9): do the small classes lose their tail, and why."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import finite_mean, judge_bound, judge_trend, spearman_trend
from rarefy.studies.benign.constants import MOST, premise, share_of, small_mean_loss
from rarefy.studies.benign.majority.experiment import MajorityExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.theory.benign import noise_correlation_ratio

CASES: tuple[tuple[str, str, Literal["at_least", "at_most"], str], ...] = (
    ("ratio held", "clear", "at_most", "samples grow, Gamma held as far as it can be"),
    ("size held", "as stated", "at_least", "Gamma changes, samples do not grow"),
)
"""Control, what it is compared with, its share of that fall, and what it changes. The theorem puts
the fall down to Gamma: it must be there whenever Gamma falls as it does as stated, and must not
when Gamma is held."""
Tail = tuple[str, float]
"""Criterion and L."""


def minority_accuracy(results: xr.Dataset, tail: Tail) -> xr.DataArray:
    """Mean over the small classes (all but the last, which are alike)."""
    chosen = results["accuracy"].sel(criterion=tail[0], length=tail[1])
    return chosen.isel({"class": slice(0, -1)}).mean("class")


def tails_of(results: xr.Dataset) -> list[Tail]:
    """What is looked at: Definition 1 and |zeta| at the first L, and all data."""
    lengths = [float(value) for value in results["length"].values]
    return [("definition", lengths[1]), ("special", lengths[1]), ("special", lengths[0])]


def in_words(tail: Tail) -> str:
    criterion, length = tail
    if length == 0:
        return "all data"
    return f"Def. 1, L = {length:g}" if criterion == "definition" else f"|zeta| >= {length:g}"


def verdicts(study: MajorityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The paper concludes this from Theorem 1, and shows no experiment: without a small training
    loss nothing is decided."""
    found: list[Verdict] = []
    controls = texts(results, "control")
    for schedule in texts(results, "schedule") if "as stated" in controls else ():
        named, here = Naming(study, scale), results.sel(schedule=schedule)
        first, *others = tails_of(results)
        primary = schedule == "trained"
        found.append(_trend(study, here, named, first, schedule, primary))
        if primary:
            found += [_trend(study, here, named, tail, schedule, False) for tail in others]
            there = [case for case in CASES if set(case[:2]) <= set(controls)]
            found += [_part(study, here, named, first, schedule, *case) for case in there]
    return found


def _trend(
    study: MajorityExperiment,
    results: xr.Dataset,
    named: Naming,
    tail: Tail,
    schedule: str,
    primary: bool,
) -> Verdict:
    """Accuracy of the small classes falls as the last class grows, mean over Gamma."""
    stated = results.sel(control="as stated").sortby("majority")
    sizes = stated["majority"].values.astype(float)
    accuracy = by_seed(minority_accuracy(stated, tail).mean("gamma", skipna=False), "majority")
    means = finite_mean(accuracy)
    before = "" if primary else f"{schedule}, {in_words(tail)}: "
    verdict = judge_trend(
        named("B9.1" if primary else "B9", f"{before}accuracy of the small classes"),
        spearman_trend(sizes, accuracy, within_rows=True),
        "decreasing",
        note=f"{in_words(tail)}, mean over Gamma: {means[0]:.3f} at |S_j| = {sizes[0]:g}, "
        f"{means[-1]:.3f} at {sizes[-1]:g}; chance {1 / study.classes:.2g}",
    )
    return undecided(verdict, premise(study, stated["train_loss"].values))


def _trained_up_to(loss: xr.DataArray, small: float) -> int:
    """Number of the largest majority with which the training loss is at most ``small`` in all
    controls: only there the theorem speaks of them. The last, if there is none."""
    worst = loss.mean(["gamma", "seed"]).max(["control", "class"]).values
    there = np.flatnonzero(worst <= small)
    return int(there[-1]) if there.size and there[-1] > 0 else len(worst) - 1


def _part(
    study: MajorityExperiment,
    results: xr.Dataset,
    named: Naming,
    tail: Tail,
    schedule: str,
    control: str,
    reference: str,
    side: Literal["at_least", "at_most"],
    what: str,
) -> Verdict:
    loss = results["train_loss"].sel(control=[reference, control])
    last = _trained_up_to(loss, small_mean_loss(study))
    accuracy = minority_accuracy(results, tail)
    fall = accuracy.isel(majority=0) - accuracy.isel(majority=last)
    whole, part = (
        fall.sel(control=word).mean("gamma", skipna=False).values for word in (reference, control)
    )
    share = share_of(part, whole)
    largest = int(results["majority"].values[last])
    told = _held(study, results["gamma"].values, largest) if control == "ratio held" else ""
    note = joined(
        f"fall {finite_mean(whole):.3f} when {reference}, {finite_mean(part):.3f} here, mean over "
        f"Gamma, majority up to {largest:g}",
        told,
        "" if share.n else "no certain fall to take a share of",
    )
    identity = named("", f"{schedule}, {control} ({what}): share of the fall when {reference}")
    verdict = judge_bound(identity, share, MOST, side, note=note)
    return undecided(verdict, premise(study, loss.isel(majority=last).values))


def _held(study: MajorityExperiment, gammas: np.ndarray, majority: int) -> str:
    """What is left of Gamma towards the class that grows, while it is to be held."""
    left = [
        f"{gamma_towards(study, float(gamma), 'ratio held', majority):.3g} at {gamma:g}"
        for gamma in gammas
    ]
    return f"Gamma towards it is left {', '.join(left)}"


def gamma_towards(study: MajorityExperiment, gamma: float, control: str, majority: int) -> float:
    """Gamma of a small class towards the one that grows."""
    gram = study.noise(gamma, control, majority).gram()[0].numpy()
    return float(noise_correlation_ratio(gram, study.sizes(control, majority))[0, -1])
