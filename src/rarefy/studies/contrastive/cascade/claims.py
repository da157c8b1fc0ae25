"""Verdicts of ``contrast-cascade``: P7, sentence by sentence.

A run's *meeting* is that of the rarest level with the next. What pruning does is told by the
unpruned twin, which has the same dictionary, weights and samples: without it every rise would count
for pruning, though ordinary training makes rare levels rise as well. What is special about a level
is told by the most frequent one, which the remark leaves alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.phases import Phase, growth
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed, known
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

NEARLY_ALL, MOSTLY = 0.95, 0.5
"""Shares of runs and of pruned neurons that a statement needs; fixed before looking."""
RAREST, NEXT, MOST = -1, -2, 0
"""Places of the two rarest levels and of the most frequent, which is first."""


def begin_name(begin: object) -> str:
    return {"theorem": "theorem's state", "random": "trained from random"}[str(begin)]


def conditions(experiment: CascadeExperiment) -> Iterator[tuple[str, str, float, float]]:
    """(words, begin, bias, alpha), the first of which decides: the theorem's state, its bias, and
    no more neurons pruned than one feature has."""
    few, *_, many = (alpha for alpha in (*experiment.alpha, experiment.alpha[-1]) if alpha > 0)
    begin, bias = experiment.begin[0], experiment.bias_scale[-1]
    yield "", begin, bias, few
    if many != few:
        yield f"alpha={many:g}", begin, bias, many
    for other in experiment.bias_scale[:-1]:
        yield bias_name(other), begin, other, few
    for start in experiment.begin[1:]:
        yield begin_name(start), start, bias, few


def verdicts(experiment: CascadeExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for words, begin, bias, alpha in conditions(experiment):
        here = results.sel(begin=begin, bias_scale=bias)
        pruned, twin = here.sel(alpha=alpha), here.sel(alpha=0.0)
        where = f", {begin_name(begin)}, {bias_name(bias)}, alpha={alpha:g}, {experiment.setting}"
        name = Naming(experiment, scale, f"{words}: " if words else "", where)
        numbers = ["P7" if words else f"P7.{number}" for number in (1, 2, 3)]
        why = _unmet(pruned, twin)
        judged = _sentences(experiment, pruned, twin, numbers, name)
        if not words and len(experiment.levels) > 2:
            judged.append(_upward(pruned, twin, name))
        if begin == "random":
            judged = judged[:1]
        found += [undecided(verdict, why) for verdict in judged]
    return found


def _unmet(pruned: xr.Dataset, twin: xr.Dataset) -> str:
    """Remark 1 begins with levels that are apart and with the rarest one's neurons pruned."""
    met = twin["met"].isel(meeting=0)
    apart = float(known(met != 0, met).mean())
    share = float(pruned["pruned"].isel(read=0, level=RAREST).mean())
    if apart < NEARLY_ALL:
        return f"levels apart when pruning begins in {apart:.0%} of the runs"
    if share < MOSTLY:
        return f"{share:.2g} of the neurons pruned at first are of the rarest level"
    return ""


def _sentences(
    experiment: CascadeExperiment,
    pruned: xr.Dataset,
    twin: xr.Dataset,
    numbers: list[str],
    name: Naming,
) -> list[Verdict]:
    met, met_unpruned = (by_seed(at["met"], "meeting")[:, 0] for at in (pruned, twin))
    wait, wait_unpruned = (
        np.where(time < 0, experiment.horizon, time) for time in (met, met_unpruned)
    )
    earlier = name(numbers[0], "rarest level meets the next: steps earlier than without pruning")
    note = f"a meeting later than {experiment.horizon} counts as that"
    read, phase = pruned["read"].values, Phase.of(met, experiment.horizon)
    own, other = (np.log(by_seed(at["strength"], "read", "level")) for at in (pruned, twin))
    added = own - other  # what pruning itself does
    before, after = (
        [growth(read, added[:, :, level], *ends) for level in (RAREST, NEXT, MOST)]
        for ends in ((np.zeros_like(phase.end), phase.end), (phase.end, phase.later))
    )
    per_step = f"growth of log strength a step beyond the unpruned twin{phase.who_met}"
    first = name(numbers[1], "before the meeting pruning speeds the rarest more than the next")
    then = name(numbers[2], "after the meeting pruning speeds the next more than the most frequent")
    return [
        st.judge_difference(earlier, wait_unpruned - wait, "positive", note=note),
        st.judge_difference(first, before[0] - before[1], "positive", note=per_step),
        st.judge_difference(then, after[1] - after[2], "positive", note=per_step),
    ]


def _upward(pruned: xr.Dataset, twin: xr.Dataset, name: Naming) -> Verdict:
    order, unpruned = (_in_order(by_seed(at["met"], "meeting")) for at in (pruned, twin))
    note = f"in this order without pruning: {int(unpruned.sum())} of {len(unpruned)}"
    upward = name("P7", "meetings from the rarest upward")
    return st.judge_fraction(upward, int(order.sum()), len(order), NEARLY_ALL, note=note)


def _in_order(met: np.ndarray) -> np.ndarray:
    """Each meeting happens before the next one up, which may be never; of the runs there are."""
    met = met[np.isfinite(met).all(axis=1)]
    time = np.where(met < 0, np.inf, met)
    return np.asarray(np.isfinite(time[:, 0]) & (time[:, :-1] < time[:, 1:]).all(axis=1))
