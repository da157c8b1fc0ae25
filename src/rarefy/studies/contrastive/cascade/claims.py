"""Verdicts of ``contrast-cascade``: P7, sentence by sentence.

A run's *meeting* is that of the rarest level with the next. What pruning does is told by the
unpruned twin, which has the same dictionary, weights and samples: without it every rise would count
for pruning, though ordinary training makes rare levels rise as well. What is special about a level
is told by the most frequent one, which the remark leaves alone, and by pruning at random, which
takes neurons of every level.
"""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.levels import random_minimum
from rarefy.measure.phases import Phase, growth, mean_between, reads_between
from rarefy.pruning.masks import kept_count
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment
from rarefy.studies.contrastive.pruned_pairs import pruned_alphas
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.premise import inconclusive
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every

NEARLY_ALL, MOSTLY = 0.95, 0.5
"""Shares of runs and of pruned neurons that a statement needs; fixed before looking."""
ENOUGH_RUNS = 5
"""Fewer runs decide nothing, whichever way they point; fixed before looking."""
EVEN = " if every feature has as many neurons"
"""What neurons drawn at random are compared under: how many a level has is not recorded."""
RAREST, NEXT, MOST = -1, -2, 0
"""Places of the two rarest levels and of the most frequent, which is first."""


def begin_name(begin: object) -> str:
    return {"theorem": "theorem's state", "random": "trained from random"}[str(begin)]


def verdicts(experiment: CascadeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for (begin, bias), here in every(results, "begin", "bias_scale"):
        where = f", {begin_name(begin)}, {bias_name(bias)}"
        name = Naming(experiment, scale, after=f"{where}, {experiment.setting}")
        unpruned = here.sel(alpha=0.0)
        apart = by_seed(unpruned["met"], "meeting")[:, 0] != 0
        premise = "premise: the rarest level is over 5 % weaker than the next when pruning begins"
        note = f"{premise}; strength {_strengths(unpruned)}"
        found.append(_in_nearly_all(name("P7", "levels apart at first"), apart, note))
        if not apart.any():
            continue  # nothing can meet that has met: the premise above fails, no more to say
        runs = {"seed": np.flatnonzero(apart)}
        for alpha in pruned_alphas(results):
            there = f"{where}, alpha={alpha:g}, {experiment.setting}"
            pruned, twin = here.sel(alpha=alpha).isel(runs), unpruned.isel(runs)
            found += _one_share(experiment, pruned, twin, Naming(experiment, scale, after=there))
    return [_with_enough_runs(verdict) for verdict in found]


def _in_nearly_all(identity: st.Identity, runs: np.ndarray, note: str) -> Verdict:
    return st.judge_fraction(identity, int(runs.sum()), runs.size, NEARLY_ALL, note=note)


def _with_enough_runs(verdict: Verdict) -> Verdict:
    if verdict.n >= ENOUGH_RUNS or verdict.outcome == "inconclusive":
        return verdict
    return inconclusive(verdict, f"fewer than {ENOUGH_RUNS} runs decide nothing")


def _strengths(at: xr.Dataset) -> str:
    mean = at["strength"].isel(read=0).mean("seed")
    return ", ".join(f"{float(mean.sel(level=v)):.2g} at eps={v:g}" for v in at["level"].values)


def _in_order(met: np.ndarray) -> np.ndarray:
    """Each meeting happens before the next one up, which may be never."""
    time = np.where(met < 0, np.inf, met)
    return np.asarray(np.isfinite(time[:, 0]) & (time[:, :-1] < time[:, 1:]).all(axis=1))


def _one_share(
    experiment: CascadeExperiment, pruned: xr.Dataset, twin: xr.Dataset, name: Naming
) -> list[Verdict]:
    met, met_unpruned = (by_seed(at["met"], "meeting") for at in (pruned, twin))
    found = []
    if met.shape[1] > 1:
        order = _in_order(met)
        note = (
            f"{int((met[:, 0] < 0).sum())} runs without the first meeting in "
            f"{experiment.horizon} steps; in this order without pruning: "
            f"{int(_in_order(met_unpruned).sum())} of {order.size}"
        )
        found.append(_in_nearly_all(name("P7", "meetings from the rarest upward"), order, note))
    wait, wait_unpruned = (
        np.where(times[:, 0] < 0, experiment.horizon, times[:, 0]) for times in (met, met_unpruned)
    )
    note = f"steps; paired; a meeting later than {experiment.horizon} counts as that"
    earlier = name("P7", "first meeting earlier than unpruned")
    found.append(st.judge_difference(earlier, wait_unpruned - wait, "positive", note=note))
    phase = Phase.of(met[:, 0], experiment.horizon)
    found += _pruned_set(experiment, pruned, phase, name)
    return found + _growth(pruned, twin, phase, name)


def _pruned_set(
    experiment: CascadeExperiment, pruned: xr.Dataset, phase: Phase, name: Naming
) -> list[Verdict]:
    read, share = pruned["read"].values, by_seed(pruned["pruned"], "read", "level")
    early = mean_between(read, share, np.zeros_like(phase.end), phase.end)
    first = name("P7", "pruned before the meeting: the rarest")
    note = "share of pruned neurons whose strongest feature is of the rarest level"
    before = st.judge_bound(first, early[:, RAREST], MOSTLY, "at_least", note=note)
    if not phase.any_after:
        return [before]
    late = mean_between(read, share, phase.end, phase.later)
    both = np.minimum(late[:, RAREST], late[:, NEXT])
    reads = reads_between(read, phase.end, phase.later).sum(axis=1)
    chance = minimum_at_random(experiment, float(pruned["alpha"]), reads)
    note = (
        "the smaller of the two rarest levels' shares, over as many steps after the meeting as "
        f"before it; as many neurons drawn at random would give {mean_of(chance)}{EVEN}"
    )
    second, note = name("P7", "pruned after the meeting: both"), f"{note}{phase.who_met}"
    literal = st.judge_bound(second, both, st.OMEGA, "at_least", note=note)
    if literal.outcome == "holds" and not st.mean_interval(both - chance).low > 0:
        literal = inconclusive(literal, "no more than at random: it could hardly fail")
    if late.shape[1] <= 2:
        return [before, literal]
    # copies of a feature's neurons are pruned together, which makes the smaller of two shares
    # smaller than single neurons at random would have it; their sum does not mind
    together = late[:, RAREST] + late[:, NEXT]
    of_level = neurons_of_levels(experiment)
    expected = (of_level[RAREST] + of_level[NEXT]) / experiment.neurons
    more = name("P7", "pruned after the meeting: the two rarest more than at random")
    note = (
        f"share of pruned neurons of the two rarest levels, {mean_of(together)}, over as many "
        "steps after the meeting as before it, less that of neurons drawn at random, "
        f"{expected:.2g}{EVEN}{phase.who_met}"
    )
    beyond = st.judge_difference(more, together - expected, "positive", note=note)
    return [before, literal, beyond]


def mean_of(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    return f"{values.mean():.2g}" if values.size else "undefined"


def _growth(pruned: xr.Dataset, twin: xr.Dataset, phase: Phase, name: Naming) -> list[Verdict]:
    read = pruned["read"].values
    own, other = (
        np.log(at["strength"].transpose("seed", "read", "level").values) for at in (pruned, twin)
    )
    added, per_step = own - other, "growth of log strength a step"

    def before(values: np.ndarray, level: int) -> np.ndarray:
        return growth(read, values[:, :, level], np.zeros_like(phase.end), phase.end)

    def after(values: np.ndarray, level: int) -> np.ndarray:
        return growth(read, values[:, :, level], phase.end, phase.later)

    def judged(what: str, values: np.ndarray, note: str) -> Verdict:
        return st.judge_difference(name("P7", what), values, "positive", note=f"{per_step}{note}")

    what, speed = "before the meeting pruning speeds the rarest more", before(added, RAREST)
    note = " beyond the unpruned twin, rarest minus next level"
    found = [judged(what, speed - before(added, NEXT), note)]
    if not phase.any_after:
        return found
    what, speed = "next level grows faster after the meeting", after(own, NEXT)
    note = f", over as many steps after as before; ordinary growth included{phase.who_met}"
    found.append(judged(what, speed - before(own, NEXT), note))
    if added.shape[2] <= 2:
        return found
    # after the meeting pruning should act on the next level and not on all of them alike
    late = {level: after(added, level) for level in (NEXT, MOST)}
    change = {level: late[level] - before(added, level) for level in late}
    more = "pruning speeds the next more than the most frequent after the meeting"
    adds = "the meeting adds more to the next than to the most frequent"
    for what, values, how in (
        (more, late, "over as many steps after as before"),
        (adds, change, "after the meeting minus before it"),
    ):
        note = (
            f" beyond the unpruned twin, {how}: {mean_of(values[NEXT])} for the next level, "
            f"{mean_of(values[MOST])} for the most frequent; paired within a run{phase.who_met}"
        )
        found.append(judged(what, values[NEXT] - values[MOST], note))
    return found


def neurons_of_levels(experiment: CascadeExperiment) -> list[int]:
    """Neurons of each level when every feature has as many, as the theorem's state has it."""
    level = np.arange(experiment.neurons) % experiment.d // experiment.per_level
    return [int(count) for count in np.bincount(level, minlength=len(experiment.levels))]


def minimum_at_random(experiment: CascadeExperiment, alpha: float, reads: np.ndarray) -> np.ndarray:
    """``random_minimum`` for runs with that many ``reads`` after the meeting, NaN without: (seed,).

    Neurons are taken to be spread over the features evenly, as the theorem's state has them.
    """
    *_, next_, rarest = neurons_of_levels(experiment)
    pruned = experiment.neurons - int(kept_count(torch.tensor([alpha]), experiment.neurons))
    if pruned == 0:
        return np.full(len(reads), np.nan)
    others = experiment.neurons - rarest - next_
    found = [random_minimum(rarest, next_, others, pruned, int(n)) if n else np.nan for n in reads]
    return np.array(found, dtype=float)
