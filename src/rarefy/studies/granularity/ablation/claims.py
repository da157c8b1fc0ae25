"""Verdicts of ``granularity-ablation``: App. B.2, remark 3 (G13) and App. G.4 (G14)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import Identity, judge_bound, judge_difference, mean_interval
from rarefy.studies.granularity.ablation.arms import PAPER, linear_readout, rate_of
from rarefy.studies.granularity.ablation.experiment import AblationExperiment
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import SMALL, noise_load, polylog
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import noted, undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, judge_worst, worst_of

KEPT = 0.95
"""Share of detectors that must not weaken: the paper's "with high probability", read as usual."""
DETECTORS_ARE = "detectors: all neurons that the feature wakes at the start, S(v), not only S*(v)"
GROWING = {
    "own_weight": "(234) weight of subclass detectors on their feature",
    "own_response": "(234) response to subclass features",
    "common_weight": "(235) weight of common detectors on their feature",
    "common_response": "(235) response to common features",
}


def verdicts(experiment: AblationExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for world in texts(here, "world"):
        there, end = experiment.in_world(world), here.sel(world=world).isel(read=-1)
        words = f"{world} (P={there.patches}, sigma={there.sigma:g})"
        named = partial(Naming(experiment, scale, f"{there.setting}: {words}, "), "G13")
        found += [*_linear(there, end, named), *_schedule(there, end, named)]
    named = partial(Naming(experiment, scale, f"{experiment.setting}: "), "G14")
    return [*found, *_tuning(experiment, here, named)]


def _error(end: xr.Dataset, arm: str, name: str = "hard_error", labels: str = "fine") -> np.ndarray:
    """At the end, (seed,)."""
    return by_seed(end[name].sel(arm=arm, labels=labels))


# --------------------------------------------------------------------------------- App. B.2.3, G13


def _linear(there: AblationExperiment, end: xr.Dataset, named: partial[Identity]) -> list[Verdict]:
    """Lost: an error that is not small where the standard learner's is, at every learning rate
    that was tried."""
    load, least = noise_load(there), polylog(there.d)
    why = f"P sigma = {load:.2g}, the remark speaks of at least polylog(d), {least:.2g}"
    names = [word for word in texts(end, "arm") if word.startswith("linear")]
    best = linear_readout(there)
    found = []
    for kind in ("easy", "hard"):
        identity = named(f"without ReLU, {kind} error with fine labels")
        verdict = _lost(there, end, identity, names, f"{kind}_error")
        if best is not None:
            # of one sum per side, as the remark has it; a maximum over outputs can beat it
            least_error = best.easy_error() if kind == "easy" else best.hard_floor
            said = f"best readout by one sum a side, closed form: {least_error:.3g}"
            verdict = noted(verdict, said)
        found.append(undecided(verdict, why if load < least else ""))
    return found


def _schedule(
    there: AblationExperiment, end: xr.Dataset, named: partial[Identity]
) -> list[Verdict]:
    """Fine labels: lost at every rate that was tried. Rates are not compared one by one: with fine
    labels detectors move k times more slowly than the schedule has it.

    The remark's reason is about coarse labels: detectors of common features outrun those of
    subclasses, and a schedule that suits the first silences the second. At every rate then the hard
    error is larger than with a bias that follows at the same rate, for which the schedule is made.
    """
    arms = texts(end, "arm")
    pairs = {arm: f"following-{rate_of(arm)}" for arm in arms if arm.startswith("scheduled")}
    pairs = {arm: standard for arm, standard in pairs.items() if standard in arms}
    if not pairs:
        return []
    about = "coarse labels, hard error with hard-coded minus following bias"
    differences = {
        arm: _error(end, arm, labels="coarse") - _error(end, standard, labels="coarse")
        for arm, standard in pairs.items()
    }
    identity = named("hard-coded bias, every rate, hard error with fine labels")
    found = [
        _lost(there, end, identity, list(pairs), "hard_error"),
        _all_positive(named(f"{about}, every rate"), differences),
    ]
    for arm, difference in differences.items():
        rate = "1/log^5(d)" if rate_of(arm) == PAPER else rate_of(arm)
        hard, easy = (
            " and ".join(
                f"{np.nanmean(_error(end, each, name, 'coarse')):.3f}" for each in (arm, pairs[arm])
            )
            for name in ("hard_error", "easy_error")
        )
        note = f"hard errors {hard}, easy errors {easy}; paired by seed"
        identity = named(f"{about} at rate {rate}")
        found.append(judge_difference(identity, difference, "positive", note=note))
    return found


def _all_positive(identity: Identity, differences: Mapping[str, np.ndarray]) -> Verdict:
    """Judged by the difference on which that stands or falls."""
    level = corrected_level(len(differences))
    means = {arm: mean_interval(values, level) for arm, values in differences.items()}
    low, high = ([getattr(each, end) for each in means.values()] for end in ("low", "high"))
    arm = list(means)[worst_of(low, high, floor=0.0)]
    note = f"decided at {arm}, the worst of {len(means)} rates" if len(means) > 1 else arm
    return judge_difference(identity, means[arm], "positive", note=note)


def _lost(
    there: AblationExperiment, end: xr.Dataset, identity: Identity, arms: list[str], name: str
) -> Verdict:
    """Every one of the arms errs where the standard learner at our main rate does not. What
    certainly errs little has lost nothing, whatever the standard learner does."""
    standard, paper = f"following-{there.main_rate}", f"following-{PAPER}"
    reference = mean_interval(_error(end, standard, name))
    said = f"{standard}: {reference.mean:.3f}"
    if paper in end["arm"].values and paper != standard:
        said += f", at the paper's rate: {np.nanmean(_error(end, paper, name)):.3f}"
    cases = {arm: _error(end, arm, name) for arm in arms}
    verdict = judge_worst(identity, cases, SMALL, "at_least", note=said)
    if reference.high <= SMALL or verdict.outcome == "fails":
        return verdict
    return undecided(verdict, f"error of {standard} not certainly at most {SMALL:g}: none lost")


# ----------------------------------------------------------------------------------- App. G.4, G14


def _tuning(
    experiment: AblationExperiment, here: xr.Dataset, named: partial[Identity]
) -> list[Verdict]:
    if "quiet" not in here["world"].values:
        return [judge_bound(named("fine-tuning"), [], KEPT, "at_least", note="needs world quiet")]
    here = here.sel(world="quiet", arm="tuned")
    fine = here.sel(labels="fine")
    start, end = fine.isel(tuned=0), fine.isel(tuned=-1)
    after = f"after {experiment.tune_steps} updates of coarse fine-tuning"
    grown = []
    for name, words in GROWING.items():
        identity, more = named(f"{words} {after} minus before"), by_seed(end[name] - start[name])
        moved = f"from {float(start[name].mean()):.3g} to {float(end[name].mean()):.3g}"
        note = joined(moved, DETECTORS_ARE if name.endswith("weight") else "")
        grown.append(judge_difference(identity, more, "positive", note=note))
    coarse, own = (here["tuned_hard_error"].isel(tuned=-1).sel(labels=each) for each in LABELS)
    kept = named(f"share of subclass detectors no weaker {after}")
    awake = f"{DETECTORS_ARE}; of these the ones awake before fine-tuning"
    error = named(f"hard error of the fine network {after}")
    before = f"before: {float(start['tuned_hard_error'].mean()):.3f}"
    gain = named(f"hard error of a coarse network trained on minus fine-tuned one, {after}")
    same = "same samples, as many updates in all"
    return [
        *grown,
        judge_bound(kept, by_seed(fine["kept"]), KEPT, "at_least", note=awake),
        judge_bound(error, by_seed(own), SMALL, "at_most", note=before),
        judge_difference(gain, by_seed(coarse - own), "positive", note=same),
    ]
