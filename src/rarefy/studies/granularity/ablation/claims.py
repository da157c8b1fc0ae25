"""Verdicts of ``granularity-ablation``: App. B.2, remark 3 (G13) and App. G.4 (G14).

The remark is about noise that adds up over patches, P sigma >= polylog(d): primary is the noisy
world, and the bias at the paper's rate, 1/log^5(d).
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    finite_mean,
    judge_bound,
    judge_difference,
    mean_interval,
)
from rarefy.studies.granularity.ablation.arms import PAPER, linear_readout, rate_of
from rarefy.studies.granularity.ablation.experiment import AblationExperiment
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.premises import SMALL, noise_load, polylog
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import noted, undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import judge_worst

KEPT = 0.95
"""Share of detectors that must not weaken: the paper's "with high probability", read as usual."""
FOLLOWING, SCHEDULED = f"following-{PAPER}", f"scheduled-{PAPER}"
"""The paper's learner, and the one it warns of at the same rate."""
GROWING = {
    "common_weight": "(235) weight of common detectors on their feature",
    "own_response": "(234) response to subclass features",
    "common_response": "(235) response to common features",
}


def verdicts(experiment: AblationExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    here = results.sel(variation=AS_CHOSEN)
    found: list[Verdict] = []
    for world in texts(here, "world"):
        there, end = experiment.in_world(world), here.sel(world=world).isel(read=-1)
        where = f"{world} (P={there.patches}, sigma={there.sigma:g}), {there.setting}: "
        named, main = Naming(experiment, scale, where), world == "noisy"
        found += _linear(there, end, named, "G13.1" if main else "G13")
        found += _schedule(end, named, main)
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    return [*found, *_tuning(experiment, here, named)]


def _error(end: xr.Dataset, arm: str, name: str = "hard_error", labels: str = "fine") -> np.ndarray:
    """At the end, (seed,)."""
    return by_seed(end[name].sel(arm=arm, labels=labels))


# --------------------------------------------------------------------------------- App. B.2.3, G13


def _linear(there: AblationExperiment, end: xr.Dataset, named: Naming, role: str) -> list[Verdict]:
    """Lost: an error that is not small where the paper's learner's is, at every learning rate that
    was tried. The remark is about the samples trained on, which are easy."""
    names = [word for word in texts(end, "arm") if word.startswith("linear")]
    best, found = linear_readout(there), []
    for kind, claim in (("easy", role), ("hard", "G13")):
        identity = named(claim, f"without ReLU, {kind} error with fine labels")
        verdict = _lost(end, identity, names, f"{kind}_error")
        if best is not None:
            # of one sum per side, as the remark has it; a maximum over outputs can beat it
            least = best.easy_error() if kind == "easy" else best.hard_floor
            verdict = noted(verdict, f"best readout by one sum a side, closed form: {least:.3g}")
        load, needed = noise_load(there), polylog(there.d)
        why = f"P sigma = {load:.2g}, the remark speaks of at least polylog(d), {needed:.2g}"
        found.append(undecided(verdict, why if load < needed else ""))
    return found


def _lost(end: xr.Dataset, identity: Identity, arms: list[str], name: str) -> Verdict:
    """Every one of the arms errs where the paper's learner does not. What certainly errs little
    has lost nothing, whatever that one does."""
    reference = mean_interval(_error(end, FOLLOWING, name))
    cases = {arm: _error(end, arm, name) for arm in arms}
    note = f"the paper's learner: {reference.mean:.3f}"
    verdict = judge_worst(identity, cases, SMALL, "at_least", note=note)
    if reference.high <= SMALL or verdict.outcome == "fails":
        return verdict
    return undecided(verdict, f"the paper's learner not certainly at most {SMALL:g}: none lost")


def _schedule(end: xr.Dataset, named: Naming, main: bool) -> list[Verdict]:
    """The remark's reason is about coarse labels: detectors of common features outrun those of
    subclasses, and a schedule that suits the first silences the second. So the hard error is larger
    than with a bias that follows its neuron at the rate for which the schedule is made."""
    arms, found = texts(end, "arm"), []
    for arm in arms:
        standard = f"following-{rate_of(arm)}"
        if not arm.startswith("scheduled") or standard not in arms:
            continue
        if not main and arm != SCHEDULED:
            continue
        rate = "1/log^5(d)" if arm == SCHEDULED else rate_of(arm)
        hard, easy = (
            " and ".join(
                f"{finite_mean(_error(end, each, name, 'coarse')):.3f}" for each in (arm, standard)
            )
            for name in ("hard_error", "easy_error")
        )
        what = f"rate {rate}, coarse labels, hard error with hard-coded minus following bias"
        identity = named("G13.2" if main and arm == SCHEDULED else "G13", what)
        lost = _error(end, arm, labels="coarse") - _error(end, standard, labels="coarse")
        note = f"hard errors {hard}, easy errors {easy}; paired by seed"
        found.append(judge_difference(identity, lost, "positive", note=note))
    return found


# ----------------------------------------------------------------------------------- App. G.4, G14


def _tuning(experiment: AblationExperiment, here: xr.Dataset, named: Naming) -> list[Verdict]:
    if "quiet" not in here["world"].values:
        return []
    here = here.sel(world="quiet", arm="tuned")
    fine = here.sel(labels="fine")
    start, end = fine.isel(tuned=0), fine.isel(tuned=-1)
    after = f"after {experiment.tune_steps} updates of coarse fine-tuning"

    def grown(claim: str, name: str, words: str) -> Verdict:
        moved = f"from {float(start[name].mean()):.3g} to {float(end[name].mean()):.3g}"
        identity = named(claim, f"{words} {after} minus before")
        return judge_difference(identity, by_seed(end[name] - start[name]), "positive", note=moved)

    coarse, own = (here["tuned_hard_error"].isel(tuned=-1).sel(labels=each) for each in LABELS)
    awake = "all neurons that the feature wakes at the start, S(v), and that are awake before it"
    before = f"before: {float(start['tuned_hard_error'].mean()):.3f}"
    kept = named("G14.2", f"share of subclass detectors no weaker {after}")
    error = named("G14.3", f"hard error of the fine network {after}")
    other = named("", f"hard error of a coarse network trained on minus fine-tuned one, {after}")
    return [
        grown("G14.1", "own_weight", "(234) weight of subclass detectors on their feature"),
        judge_bound(kept, by_seed(fine["kept"]), KEPT, "at_least", note=awake),
        judge_bound(error, by_seed(own), SMALL, "at_most", note=before),
        *(grown("G14", name, words) for name, words in GROWING.items()),
        judge_difference(other, by_seed(coarse - own), "positive"),
    ]
