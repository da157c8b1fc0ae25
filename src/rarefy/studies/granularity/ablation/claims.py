"""Verdicts of ``granularity-ablation``: App. B.2, remark 3 (G13) and App. G.4 (G14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Identity, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity.ablation.arms import PAPER, linear_readout, rate_of
from rarefy.studies.granularity.ablation.experiment import AblationExperiment
from rarefy.studies.granularity.common import SMALL
from rarefy.studies.granularity.premises import least_load, noise_load
from rarefy.studies.granularity.variations import AS_CHOSEN
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.worst import corrected_level, judge_worst, worst_of

KEPT = 0.95
"""Share of detectors that must not weaken: the paper's "with high probability", read as usual."""
DETECTORS_ARE = "detectors: all neurons that the feature wakes at the start, S(v), not only S*(v)"


def ablation_verdicts(study: AblationExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    judge = _Judge(study, here, scale)
    found: list[Verdict] = []
    for world in (str(word) for word in here["world"].values):
        found += [*judge.linear(world), *judge.schedule(world), *judge.coarse_schedule(world)]
    return [*found, *judge.tuning()]


class _Judge:
    def __init__(self, study: AblationExperiment, here: xr.Dataset, scale: str) -> None:
        self.study, self.here, self.scale = study, here, scale
        self.end = here.isel(read=-1)
        self.arms = [str(word) for word in here["arm"].values]

    def identity(self, claim: str, what: str) -> Identity:
        return (claim, self.study.name, self.scale, f"{self.study.setting}: {what}")

    def error(
        self, world: str, arm: str, name: str = "hard_error", labels: str = "fine"
    ) -> np.ndarray:
        """At the end, (seed,)."""
        return by_seed(self.end[name].sel(world=world, arm=arm, labels=labels))

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
        best = linear_readout(there, self.study.subclasses)
        found = []
        for name, kind in (("easy_error", "easy"), ("hard_error", "hard")):
            verdict = self._lost(
                f"{self.words(world)}, without ReLU, {kind} error with fine labels",
                world,
                names,
                name,
            )
            if best is not None:
                # of one sum a side, as the remark has it; a maximum over outputs can beat it
                least_error = best.easy_error() if kind == "easy" else best.hard_floor
                said = f"best readout by one sum a side, closed form: {least_error:.3g}"
                verdict = _noted(verdict, said)
            if load < least:
                why = f"P sigma = {load:.2g}, the remark speaks of at least polylog(d), {least:.2g}"
                verdict = undecided(verdict, why)
            found.append(verdict)
        return found

    def _scheduled(self) -> dict[str, str]:
        """Arms with a hard-coded bias, and the one with a following bias at the same rate."""
        pairs = {
            arm: f"following-{rate_of(arm)}" for arm in self.arms if arm.startswith("scheduled")
        }
        return {arm: standard for arm, standard in pairs.items() if standard in self.arms}

    def schedule(self, world: str) -> list[Verdict]:
        """Lost at every rate that was tried. Rates are not compared one by one: with fine labels
        detectors move k times more slowly than the schedule has it."""
        names = list(self._scheduled())
        what = f"{self.words(world)}, hard-coded bias, every rate, hard error with fine labels"
        return [self._lost(what, world, names, "hard_error")] if names else []

    def coarse_schedule(self, world: str) -> list[Verdict]:
        """The remark's reason is about coarse labels: detectors of common features outrun those of
        subclasses, and a schedule that suits the first silences the second. At every rate then the
        hard error is larger than with a bias that follows at the same rate, for which the schedule
        is made."""
        pairs = self._scheduled()
        if not pairs:
            return []
        about = f"{self.words(world)}, coarse labels, hard error with hard-coded minus following"
        differences = {
            arm: self.error(world, arm, labels="coarse")
            - self.error(world, standard, labels="coarse")
            for arm, standard in pairs.items()
        }
        found = [self._worst_difference(f"{about} bias, every rate", differences)]
        for arm, difference in differences.items():
            rate = rate_of(arm)
            shown = "1/log^5(d)" if rate == PAPER else rate
            easy, hard = (
                " and ".join(
                    f"{np.nanmean(self.error(world, each, name, 'coarse')):.3f}"
                    for each in (arm, pairs[arm])
                )
                for name in ("easy_error", "hard_error")
            )
            found.append(
                judge_difference(
                    self.identity("G13", f"{about} bias at rate {shown}"),
                    difference,
                    "positive",
                    note=f"hard errors {hard}, easy errors {easy}; paired by seed",
                )
            )
        return found

    def _worst_difference(self, what: str, differences: Mapping[str, np.ndarray]) -> Verdict:
        """All differences are positive, judged by the one on which that stands or falls."""
        level = corrected_level(len(differences))
        means = {arm: mean_interval(values, level) for arm, values in differences.items()}
        low, high = ([getattr(each, end) for each in means.values()] for end in ("low", "high"))
        arm = list(means)[worst_of(low, high, floor=0.0)]
        note = f"decided at {arm}, the worst of {len(means)} rates" if len(means) > 1 else arm
        return judge_difference(self.identity("G13", what), means[arm], "positive", note=note)

    def _lost(self, what: str, world: str, arms: list[str], name: str) -> Verdict:
        """Every one of the arms errs where the standard learner at our main rate does not. What
        certainly errs little has lost nothing, whatever the standard learner does."""
        standard = f"following-{self.study.main_rate}"
        reference = mean_interval(self.error(world, standard, name))
        said = f"{standard}: {reference.mean:.3f}"
        paper = f"following-{PAPER}"
        if paper in self.arms and paper != standard:
            said += f", at the paper's rate: {np.nanmean(self.error(world, paper, name)):.3f}"
        verdict = judge_worst(
            self.identity("G13", what),
            {arm: self.error(world, arm, name) for arm in arms},
            SMALL,
            "at_least",
            note=said,
        )
        if reference.high <= SMALL or verdict.outcome == "fails":
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
                note=f"from {float(start[name].mean()):.3g} to {float(end[name].mean()):.3g}"
                + (f"; {DETECTORS_ARE}" if name.endswith("weight") else ""),
            )
            for name, words in (
                ("own_weight", "(234) weight of subclass detectors on their feature"),
                ("own_response", "(234) response to subclass features"),
                ("common_weight", "(235) weight of common detectors on their feature"),
                ("common_response", "(235) response to common features"),
            )
        ]
        found += [
            judge_bound(
                self.identity("G14", f"share of subclass detectors no weaker {after}"),
                by_seed(fine["kept"]),
                KEPT,
                "at_least",
                note=f"{DETECTORS_ARE}; of these the ones awake before fine-tuning",
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


def _noted(verdict: Verdict, said: str) -> Verdict:
    note = f"{verdict.note}; {said}" if verdict.note else said
    return replace(verdict, note=note)
