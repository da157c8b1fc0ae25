"""Verdicts of ``granularity-ablation``: App. B.2, remark 3 (G13) and App. G.4 (G14)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity._ablation_arms import PAPER, rate_of
from rarefy.studies.granularity._common import SMALL, by_seed, judge_worst, undecided
from rarefy.studies.granularity._premises import least_load, noise_load
from rarefy.studies.granularity._variations import AS_CHOSEN

if TYPE_CHECKING:
    from rarefy.studies.granularity.granularity_ablation import GranularityAblation

KEPT = 0.95
"""Share of detectors that must not weaken: the paper's "with high probability", read as usual."""


def ablation_verdicts(study: GranularityAblation, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    judge = _Judge(study, here, scale)
    found: list[Verdict] = []
    for world in (str(word) for word in here["world"].values):
        found += judge.linear(world) + judge.schedules(world)
    return [*found, *judge.tuning()]


class _Judge:
    def __init__(self, study: GranularityAblation, here: xr.Dataset, scale: str) -> None:
        self.study, self.here, self.scale = study, here, scale
        self.end = here.isel(read=-1).sel(labels="fine")
        self.arms = [str(word) for word in here["arm"].values]

    def identity(self, claim: str, what: str) -> Identity:
        return (claim, self.study.name, self.scale, f"{self.study.setting}: {what}")

    def error(self, world: str, arm: str, name: str = "hard_error") -> np.ndarray:
        """Of fine labels at the end, (seed,)."""
        return by_seed(self.end[name].sel(world=world, arm=arm))

    def words(self, world: str) -> str:
        there = self.study.in_world(world)
        return f"{world} (P={there.patches}, sigma={there.sigma:g})"

    # ----------------------------------------------------------------------------- App. B.2.3, G13

    def linear(self, world: str) -> list[Verdict]:
        """Lost: an error that is not small where the standard learner's is, at every learning rate
        that was tried."""
        there = self.study.in_world(world)
        load, least = noise_load(there), least_load(there.d)
        names = [word for word in self.arms if word.startswith("linear")]
        found = []
        for name, kind in (("easy_error", "easy"), ("hard_error", "hard")):
            verdict = self._lost(
                f"{self.words(world)}, without ReLU, {kind} error with fine labels",
                world,
                names,
                f"following-{self.study.main_rate}",
                name,
            )
            if load < least:
                why = f"P sigma = {load:.2g}, the remark speaks of at least polylog(d), {least:.2g}"
                verdict = undecided(verdict, why)
            found.append(verdict)
        return found

    def schedules(self, world: str) -> list[Verdict]:
        found = []
        for arm in self.arms:
            rate = rate_of(arm)
            standard = f"following-{rate}"
            if not arm.startswith("scheduled") or standard not in self.arms:
                continue
            shown = "1/log^5(d)" if rate == PAPER else rate
            found.append(
                self._lost(
                    f"{self.words(world)}, hard-coded bias at rate {shown}, hard error with fine "
                    "labels",
                    world,
                    [arm],
                    standard,
                    "hard_error",
                )
            )
        return found

    def _lost(self, what: str, world: str, arms: list[str], standard: str, name: str) -> Verdict:
        reference = mean_interval(self.error(world, standard, name))
        verdict = judge_worst(
            self.identity("G13", what),
            {arm: self.error(world, arm, name) for arm in arms},
            SMALL,
            "at_least",
            note=f"{standard}: {reference.mean:.3f}",
        )
        if reference.high <= SMALL:
            return verdict
        return undecided(verdict, f"error of {standard} not certainly at most {SMALL:g}: none lost")

    # ------------------------------------------------------------------------------- App. G.4, G14

    def tuning(self) -> list[Verdict]:
        if "quiet" not in self.here["world"].values:
            empty = judge_bound(
                self.identity("G14", "fine-tuning"), [], KEPT, "at_least", note="needs world quiet"
            )
            return [empty]
        here = self.here.sel(world="quiet", arm="tuned")
        fine = here.sel(labels="fine")
        start, end = fine.isel(tuned=0), fine.isel(tuned=-1)
        steps = self.study.tune_steps
        after = f"after {steps} updates of coarse fine-tuning"
        control = by_seed(here["tuned_hard_error"].sel(labels="coarse").isel(tuned=-1))
        hard = by_seed(end["tuned_hard_error"])
        found = [
            judge_difference(
                self.identity("G14", f"{words} {after} minus before"),
                by_seed(end[name]) - by_seed(start[name]),
                "positive",
                note=f"from {float(start[name].mean()):.3g} to {float(end[name].mean()):.3g}",
            )
            for name, words in (
                ("own_weight", "weight of subclass detectors on their feature"),
                ("own_response", "response to subclass features"),
            )
        ]
        found += [
            judge_bound(
                self.identity("G14", f"share of subclass detectors no weaker {after}"),
                by_seed(fine["kept"]),
                KEPT,
                "at_least",
            ),
            judge_bound(
                self.identity("G14", f"hard error of the fine network {after}"),
                hard,
                SMALL,
                "at_most",
                note=f"before: {float(start['tuned_hard_error'].mean()):.3f}",
            ),
            judge_difference(
                self.identity(
                    "G14",
                    f"hard error of a coarse network trained on minus fine-tuned one, {after}",
                ),
                control - hard,
                "positive",
                note="same samples, as many updates in all",
            ),
        ]
        return found
