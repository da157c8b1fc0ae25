"""Verdicts of ``benign-majority`` (B9): do the small classes lose their tail, and why."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    Interval,
    bootstrap_interval,
    judge_bound,
    judge_trend,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.benign.constants import small_mean_loss
from rarefy.studies.benign.majority.experiment import MajorityExperiment
from rarefy.studies.benign.premise import with_premise
from rarefy.theory.benign import noise_correlation_ratio

MOST = 0.5
"""What explains a fall makes more than half of it."""
KAPPA = "which the theorem counts as a constant (kappa of Lemma 7)"


def minority_accuracy(
    results: xr.Dataset,
    schedule: str,
    gamma: float,
    control: str,
    tail: tuple[str, float],
) -> np.ndarray:
    """Mean accuracy of the small classes (all but the last, which are alike), (seed, majority)."""
    criterion, length = tail
    chosen = results["accuracy"].sel(
        schedule=schedule, gamma=gamma, control=control, criterion=criterion, length=length
    )
    small = chosen.isel({"class": slice(0, -1)}).mean("class")
    return np.asarray(small.transpose("seed", "majority").values)


def tails_of(results: xr.Dataset) -> list[tuple[str, float]]:
    """What is looked at: all data, Definition 1 at every L, |zeta| at the first L."""
    lengths = [float(value) for value in results["length"].values]
    return [
        ("special", lengths[0]),
        *(("definition", length) for length in lengths[1:]),
        ("special", lengths[1]),
    ]


def in_words(tail: tuple[str, float]) -> str:
    criterion, length = tail
    if length == 0:
        return "all data"
    return f"Def. 1, L = {length:g}" if criterion == "definition" else f"|zeta| >= {length:g}"


def falls(
    results: xr.Dataset, schedule: str, control: str, tail: tuple[str, float], last: int = -1
) -> np.ndarray:
    """Accuracy lost from the smallest majority to number ``last``, mean over Gamma: (seed,)."""
    lost = []
    for gamma in results["gamma"].values:
        accuracy = minority_accuracy(results, schedule, gamma, control, tail)
        lost.append(accuracy[:, 0] - accuracy[:, last])
    return np.mean(lost, axis=0)


def trained_up_to(results: xr.Dataset, schedule: str, controls: list[str], small: float) -> int:
    """Number of the largest majority with which the training loss is at most ``small`` in all
    ``controls``: only there the theorem speaks of them. The last, if there is none."""
    loss = results["train_loss"].sel(schedule=schedule, control=controls)
    worst = loss.mean(["gamma", "seed"]).max(["control", "class"]).values
    there = np.flatnonzero(worst <= small)
    return int(there[-1]) if there.size and there[-1] > 0 else len(worst) - 1


def majority_verdicts(study: MajorityExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for schedule in (str(word) for word in results["schedule"].values):
        judge = _Judge(study, results, scale, schedule)
        if "as stated" in results["control"].values:
            found += judge.trends() + judge.controls()
    return found


class _Judge:
    """The verdicts about one way of training."""

    def __init__(
        self, study: MajorityExperiment, results: xr.Dataset, scale: str, schedule: str
    ) -> None:
        self.study, self.results, self.scale, self.schedule = study, results, scale, schedule
        self.sizes = results["majority"].values.astype(float)
        self.small = small_mean_loss(study)

    def identity(self, what: str) -> Identity:
        setting = f"{self.study.setting}, {self.schedule}: {what}"
        return ("B9", self.study.name, self.scale, setting)

    def trends(self) -> list[Verdict]:
        """Accuracy of the small classes falls as the last class grows. The paper concludes it from
        Theorem 1, and shows no experiment: without a small training loss nothing is decided."""
        found = []
        for gamma in self.results["gamma"].values:
            loss = self.results["train_loss"].sel(schedule=self.schedule, control="as stated")
            for tail in tails_of(self.results):
                accuracy = minority_accuracy(self.results, self.schedule, gamma, "as stated", tail)
                means = np.nanmean(accuracy, axis=0)
                verdict = judge_trend(
                    self.identity(
                        f"Gamma = {gamma:g}, accuracy of small classes, {in_words(tail)}"
                    ),
                    spearman_trend(self.sizes, accuracy, within_rows=True),
                    "decreasing",
                    note=f"mean {means[0]:.3f} at |S| = {self.sizes[0]:g}, "
                    f"{means[-1]:.3f} at {self.sizes[-1]:g}; chance {1 / self.study.classes:.2g}",
                )
                found.append(with_premise(verdict, loss.sel(gamma=gamma).values, self.small))
        return found

    def controls(self) -> list[Verdict]:
        """The theorem puts the fall down to Gamma: it must be there whenever Gamma falls as it does
        as stated, and must not when Gamma is held."""
        cases = (
            ("clear", "as stated", "at_least", "same Gamma, noise off their special directions"),
            ("ratio held", "clear", "at_most", "samples grow, Gamma held as far as it can be"),
            ("size held", "as stated", "at_least", "Gamma changes, samples do not grow"),
        )
        found = []
        for tail in tails_of(self.results)[1:]:
            if tail[1] != self.results["length"].values[1]:
                continue
            found += [
                self._part(control, reference, tail, side == "at_least", what)
                for control, reference, side, what in cases
                if {control, reference} <= set(self.results["control"].values)
            ]
        return found

    def _part(
        self, control: str, reference: str, tail: tuple[str, float], most: bool, what: str
    ) -> Verdict:
        both = [reference, control]
        last = trained_up_to(self.results, self.schedule, both, self.small)
        whole, part = (falls(self.results, self.schedule, word, tail, last) for word in both)
        note = (
            f"fall {np.nanmean(whole):.3f} when {reference}, {np.nanmean(part):.3f} here, mean "
            f"over Gamma, majority {self.sizes[0]:g} to {self.sizes[last]:g}"
        )
        if control == "size held":
            traces = self.sizes[last] / self.study.minority
            note += f"; the traces differ {traces:g} times, {KAPPA}"
        if control == "ratio held":
            note += f"; {self._held(int(self.sizes[last]))}"
        share = Interval(np.nan, np.nan, np.nan, 0)
        if mean_interval(whole).low > 0:
            share = bootstrap_interval(
                np.stack([part, whole], axis=1),
                lambda pair: float(np.nanmean(pair[:, 0]) / np.nanmean(pair[:, 1])),
            )
        else:
            note += "; no certain fall to take a share of"
        verdict = judge_bound(
            self.identity(
                f"{control} ({what}), share of the fall when {reference}, {in_words(tail)}"
            ),
            share,
            MOST,
            "at_least" if most else "at_most",
            note=note,
        )
        loss = self.results["train_loss"].sel(schedule=self.schedule, control=both)
        return with_premise(verdict, loss.isel(majority=last).values, self.small)

    def _held(self, majority: int) -> str:
        """What is left of Gamma towards the class that grows, while it is to be held."""
        left = []
        for gamma in self.results["gamma"].values:
            gram = self.study.spectrum(float(gamma), "ratio held", majority).gram()[0].numpy()
            sizes = self.study.sizes("ratio held", majority)
            ratio = noise_correlation_ratio(gram, sizes)[0, -1]
            left.append(f"{ratio:.3g} at {gamma:g}")
        return f"Gamma towards it is left {', '.join(left)}"
