"""Verdicts of ``benign-majority`` (B9): do the small classes lose their tail, and why."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import judge_bound, judge_trend, spearman_trend
from rarefy.studies.benign.constants import MOST, premise, share_of, small_mean_loss
from rarefy.studies.benign.majority.experiment import MajorityExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.theory.benign import noise_correlation_ratio

KAPPA = "which the theorem counts as a constant (kappa of Lemma 7)"
CASES = (
    ("clear", "as stated", "at_least", "same Gamma, noise off their special directions"),
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
    """What is looked at: all data, Definition 1 at every L, |zeta| at the first L."""
    lengths = [float(value) for value in results["length"].values]
    return [
        ("special", lengths[0]),
        *(("definition", length) for length in lengths[1:]),
        ("special", lengths[1]),
    ]


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
        named = Naming(study, scale, f"{study.setting}, {schedule}: ")
        here = results.sel(schedule=schedule)
        found += _trends(study, here.sel(control="as stated"), named)
        for tail in tails_of(results)[1:]:
            if tail[1] == results["length"].values[1]:
                found += [
                    _part(study, here, named, tail, *case)
                    for case in CASES
                    if set(case[:2]) <= set(controls)
                ]
    return found


def _trends(study: MajorityExperiment, stated: xr.Dataset, named: Naming) -> list[Verdict]:
    """Accuracy of the small classes falls as the last class grows."""
    found = []
    sizes = stated["majority"].values.astype(float)
    for gamma in stated["gamma"].values:
        at = stated.sel(gamma=gamma)
        for tail in tails_of(stated):
            accuracy = by_seed(minority_accuracy(at, tail), "majority")
            means = np.nanmean(accuracy, axis=0)
            verdict = judge_trend(
                named("B9", f"Gamma = {gamma:g}, accuracy of small classes, {in_words(tail)}"),
                spearman_trend(sizes, accuracy, within_rows=True),
                "decreasing",
                note=f"mean {means[0]:.3f} at |S| = {sizes[0]:g}, {means[-1]:.3f} at "
                f"{sizes[-1]:g}; chance {1 / study.classes:.2g}",
            )
            found.append(undecided(verdict, premise(study, at["train_loss"].values)))
    return found


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
    control: str,
    reference: str,
    side: str,
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
    smallest, largest = (int(results["majority"].values[place]) for place in (0, last))
    told = ""
    if control == "size held":
        told = f"the traces differ {largest / study.minority:g} times, {KAPPA}"
    if control == "ratio held":
        told = _held(study, results["gamma"].values, largest)
    note = joined(
        f"fall {np.nanmean(whole):.3f} when {reference}, {np.nanmean(part):.3f} here, mean over "
        f"Gamma, majority {smallest:g} to {largest:g}",
        told,
        "" if share.n else "no certain fall to take a share of",
    )
    identity = named(
        "B9", f"{control} ({what}), share of the fall when {reference}, {in_words(tail)}"
    )
    verdict = judge_bound(
        identity, share, MOST, "at_least" if side == "at_least" else "at_most", note=note
    )
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
