"""Verdicts of ``contrast-cascade``: P7, sentence by sentence.

A run's *meeting* is that of the rarest level with the next. What pruning does is told by the
unpruned twin, which has the same dictionary, weights and samples: without it every rise would count
for pruning, though ordinary training makes rare levels rise as well. What is special about a level
is told by the most frequent one, which the remark leaves alone, and by pruning at random, which
takes neurons of every level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_fraction,
    mean_interval,
)
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment
from rarefy.studies.contrastive.cascade.phases import (
    Phase,
    growth,
    mean_between,
    minimum_at_random,
    neurons_of_levels,
    reads_between,
)
from rarefy.studies.contrastive.words import bias_name

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


def runs_of(values: xr.DataArray) -> np.ndarray:
    """(seed, read, level) array of one quantity."""
    return values.transpose("seed", "read", "level").values


def cascade_verdicts(study: CascadeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for begin in results["begin"].values:
        for scale_of_bias in results["bias_scale"].values:
            here = results.sel(begin=begin, bias_scale=scale_of_bias)
            where = f"{begin_name(begin)}, {bias_name(scale_of_bias)}"
            unpruned = here.sel(alpha=0.0)
            apart = _meetings(unpruned)[:, 0] != 0
            found.append(
                judge_fraction(
                    ("P7", study.name, scale, f"levels apart at first, {where}, {study.setting}"),
                    int(apart.sum()),
                    apart.size,
                    NEARLY_ALL,
                    note=f"premise: the rarest level is over 5 % weaker than the next when pruning "
                    f"begins; strength {_strengths(unpruned)}",
                )
            )
            if not apart.any():
                continue  # nothing can meet that has met: the premise above fails, no more to say
            for alpha in results["alpha"].values[results["alpha"].values > 0]:

                def identity(what: str, where: str = where, alpha: float = alpha) -> Identity:
                    setting = f"{what}, {where}, alpha={alpha:g}, {study.setting}"
                    return ("P7", study.name, scale, setting)

                runs = {"seed": np.flatnonzero(apart)}
                pruned, twin = here.sel(alpha=alpha).isel(runs), unpruned.isel(runs)
                found += _one_share(study, pruned, twin, identity)
    return [_with_enough_runs(verdict) for verdict in found]


def _with_enough_runs(verdict: Verdict) -> Verdict:
    if verdict.n >= ENOUGH_RUNS or verdict.outcome == "inconclusive":
        return verdict
    why = f"fewer than {ENOUGH_RUNS} runs decide nothing"
    return replace(verdict, outcome="inconclusive", note=f"{verdict.note}; {why}")


def _meetings(at: xr.Dataset) -> np.ndarray:
    return at["met"].transpose("seed", "meeting").values


def _strengths(at: xr.Dataset) -> str:
    mean = at["strength"].isel(read=0).mean("seed")
    return ", ".join(f"{float(mean.sel(level=v)):.2g} at eps={v:g}" for v in at["level"].values)


def _in_order(met: np.ndarray) -> np.ndarray:
    """Each meeting happens before the next one up, which may be never."""
    time = np.where(met < 0, np.inf, met)
    return np.asarray(np.isfinite(time[:, 0]) & (time[:, :-1] < time[:, 1:]).all(axis=1))


def _one_share(
    study: CascadeExperiment,
    pruned: xr.Dataset,
    twin: xr.Dataset,
    identity: Callable[[str], Identity],
) -> list[Verdict]:
    met, met_unpruned = _meetings(pruned), _meetings(twin)
    found = []
    if met.shape[1] > 1:
        order = _in_order(met)
        found.append(
            judge_fraction(
                identity("meetings from the rarest upward"),
                int(order.sum()),
                order.size,
                NEARLY_ALL,
                note=f"{int((met[:, 0] < 0).sum())} runs without the first meeting in "
                f"{study.horizon} steps; in this order without pruning: "
                f"{int(_in_order(met_unpruned).sum())} of {order.size}",
            )
        )
    wait, wait_unpruned = (
        np.where(m[:, 0] < 0, study.horizon, m[:, 0]).astype(float) for m in (met, met_unpruned)
    )
    found.append(
        judge_difference(
            identity("first meeting earlier than unpruned"),
            wait_unpruned - wait,
            "positive",
            note=f"steps; paired; a meeting later than {study.horizon} counts as that",
        )
    )
    phase = Phase.of(met[:, 0], study.horizon)
    found += _pruned_set(study, pruned, phase, identity)
    return found + _growth(pruned, twin, phase, identity)


def _pruned_set(
    study: CascadeExperiment,
    pruned: xr.Dataset,
    phase: Phase,
    identity: Callable[[str], Identity],
) -> list[Verdict]:
    read, share = pruned["read"].values, runs_of(pruned["pruned"])
    early = mean_between(read, share, np.zeros_like(phase.end), phase.end)
    found = [
        judge_bound(
            identity("pruned before the meeting: the rarest"),
            early[:, RAREST],
            MOSTLY,
            "at_least",
            note="share of pruned neurons whose strongest feature is of the rarest level",
        )
    ]
    if not phase.any_after:
        return found
    late = mean_between(read, share, phase.end, phase.later)
    both = np.minimum(late[:, RAREST], late[:, NEXT])
    reads = reads_between(read, phase.end, phase.later).sum(axis=1)
    chance = minimum_at_random(study, float(pruned["alpha"]), reads)
    literal = judge_bound(
        identity("pruned after the meeting: both"),
        both,
        OMEGA,
        "at_least",
        note="the smaller of the two rarest levels' shares, over as many steps after the meeting "
        f"as before it; as many neurons drawn at random would give {mean_of(chance)}"
        f"{EVEN}{phase.who_met}",
    )
    if literal.outcome == "holds" and not mean_interval(both - chance).low > 0:
        why = "no more than at random: it could hardly fail"
        literal = replace(literal, outcome="inconclusive", note=f"{literal.note}; {why}")
    found.append(literal)
    if late.shape[1] > 2:
        # copies of a feature's neurons are pruned together, which makes the smaller of two shares
        # smaller than single neurons at random would have it; their sum does not mind
        together = late[:, RAREST] + late[:, NEXT]
        of_level = neurons_of_levels(study)
        expected = (of_level[RAREST] + of_level[NEXT]) / study.neurons
        found.append(
            judge_difference(
                identity("pruned after the meeting: the two rarest more than at random"),
                together - expected,
                "positive",
                note=f"share of pruned neurons of the two rarest levels, {mean_of(together)}, over "
                f"as many steps after the meeting as before it, less that of neurons drawn at "
                f"random, {expected:.2g}{EVEN}{phase.who_met}",
            )
        )
    return found


def mean_of(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    return f"{values.mean():.2g}" if values.size else "undefined"


def _growth(
    pruned: xr.Dataset, twin: xr.Dataset, phase: Phase, identity: Callable[[str], Identity]
) -> list[Verdict]:
    read = pruned["read"].values
    own, other = (np.log(runs_of(at["strength"])) for at in (pruned, twin))
    added = own - other
    zero = np.zeros_like(phase.end)

    def difference(values: np.ndarray) -> np.ndarray:
        after = growth(read, values, phase.end, phase.later)
        return after - growth(read, values, zero, phase.end)

    early = [growth(read, added[:, :, level], zero, phase.end) for level in (RAREST, NEXT)]
    per_step = "growth of log strength a step"
    found = [
        judge_difference(
            identity("before the meeting pruning speeds the rarest more"),
            early[0] - early[1],
            "positive",
            note=f"{per_step} beyond the unpruned twin, rarest minus next level",
        )
    ]
    if not phase.any_after:
        return found
    return [
        *found,
        judge_difference(
            identity("next level grows faster after the meeting"),
            difference(own[:, :, NEXT]),
            "positive",
            note=f"{per_step}, over as many steps after as before; ordinary growth included"
            f"{phase.who_met}",
        ),
        *(_beyond_the_most_frequent(read, added, phase, identity) if added.shape[2] > 2 else ()),
    ]


def _beyond_the_most_frequent(
    read: np.ndarray, added: np.ndarray, phase: Phase, identity: Callable[[str], Identity]
) -> list[Verdict]:
    """After the meeting pruning should act on the next level and not on all of them alike."""
    zero = np.zeros_like(phase.end)
    after = {
        level: growth(read, added[:, :, level], phase.end, phase.later) for level in (NEXT, MOST)
    }
    change = {
        level: after[level] - growth(read, added[:, :, level], zero, phase.end) for level in after
    }

    def judged(what: str, values: dict[int, np.ndarray], how: str) -> Verdict:
        return judge_difference(
            identity(what),
            values[NEXT] - values[MOST],
            "positive",
            note=f"growth of log strength a step beyond the unpruned twin, {how}: "
            f"{mean_of(values[NEXT])} for the next level, {mean_of(values[MOST])} for the most "
            f"frequent; paired within a run{phase.who_met}",
        )

    return [
        judged(
            "pruning speeds the next more than the most frequent after the meeting",
            after,
            "over as many steps after as before",
        ),
        judged(
            "the meeting adds more to the next than to the most frequent",
            change,
            "after the meeting minus before it",
        ),
    ]
