"""Verdicts of ``contrast-heatmap``: C13, one statement of 000 App. A.2 or 001 section 4 each.

Neither paper says how rare its minority features are, so a statement is judged over all imbalanced
runs together (eps_min below 1). A difference between the groups is judged once more at the eps_min
where it is least, which the others cannot make up for; the study's table has all of them. What
balanced runs (eps_min 1) show as well says nothing about majority features: five features of nine
are in most mixtures by their number alone.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.heatmap.experiment import HeatmapExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.premise import inconclusive
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every

IN_RUNS = 0.95
"""Share of runs in which something must be seen for 'there are such neurons'."""
NEARLY_EVERY = 0.9
"""Share of neurons read as 'nearly every neuron'."""
CHANCE_TOLERANCE = 0.1
"""How far the random level may be from 1/d1, as a share of it ('approximately' in 000)."""


def pooled(values: xr.DataArray) -> np.ndarray:
    """(run,) array of all seeds and eps_min."""
    return values.transpose("seed", "eps_min").values.ravel()


def verdicts(experiment: HeatmapExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    eps = results["eps_min"].values
    found = []
    for (variant,), here in every(results, "variant"):
        size = f"{variant}: d={experiment.d} m={experiment.neurons}"
        if variant == "001":
            shown = f"{experiment.shown_001} shown"
            size = f"001: d={experiment.d} m={experiment.neurons_001}, {shown}"
        found.append(_chance(experiment, here, Naming(experiment, scale, after=f", {size}")))
        for bias in results["bias_scale"].values:
            for read in sorted({experiment.figure_read, experiment.reads[-1]}):
                where = f", {bias_name(bias)}, step {read}, {size}"
                name = Naming(experiment, scale, after=where)
                at = here.sel(bias_scale=bias, read=read)
                uneven = at.sel(eps_min=eps[eps < 1])
                if variant == "000":
                    found += _of_000(uneven, name)
                else:
                    even = at.sel(eps_min=1.0) if 1.0 in eps else None
                    found += _of_001(experiment, uneven, even, name)
    return found


def _chance(experiment: HeatmapExperiment, here: xr.Dataset, name: Naming) -> Verdict:
    # runs with and without a bias begin with the same weights: count them once
    over = pooled(here["initial"].isel(bias_scale=0)) * experiment.d1
    note = f"squared cosine before training times d1={experiment.d1}, mean over the map"
    return st.judge_equal(name("C13", "random level 1/d1"), over, 1.0, CHANCE_TOLERANCE, note=note)


def _seen(identity: st.Identity, counts: np.ndarray, note: str) -> Verdict:
    there = counts[np.isfinite(counts)]
    return st.judge_fraction(identity, int((there > 0).sum()), there.size, IN_RUNS, note=note)


def _mean(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    return f"{values.mean():.3g}" if values.size else "undefined"


def _positive(what: str, gap: xr.DataArray, note: str, name: Naming) -> list[Verdict]:
    """A difference within a run, (seed, eps_min): over all eps_min, and where it is least."""
    over_all = st.judge_difference(name("C13", what), pooled(gap), "positive", note=note)
    return [over_all, *_least(what, gap, note, name)]


def _least(what: str, gap: xr.DataArray, note: str, name: Naming) -> list[Verdict]:
    """The same difference at the eps_min where its mean is least; nothing without a mean."""
    means = gap.mean("seed").values
    if not np.isfinite(means).any():
        return []
    least = gap.isel(eps_min=int(np.nanargmin(means)))
    identity = name("C13", f"{what} where they are least so")
    note = f"{note}; at eps_min={float(least['eps_min']):g}"
    return [st.judge_difference(identity, least.values, "positive", note=note)]


def _of_000(at: xr.Dataset, name: Naming) -> list[Verdict]:
    lucky, mixed = pooled(at["lucky"]), pooled(at["mixed"].sum("group"))
    pure = (
        f"runs with a pure neuron of squared cosine >= 0.3; mean number {_mean(lucky)}, mean of "
        f"the largest entry {_mean(pooled(at['largest']))} (0.3: one neuron of the paper)"
    )
    several = (
        "runs with a neuron in which two or more features carry a tenth of the squared norm and "
        f"none dominates; mean number {_mean(mixed)}"
    )
    return [
        _seen(name("C13", "lucky neurons exist"), lucky, pure),
        _seen(name("C13", "mixed neurons exist"), mixed, several),
        *_stronger(at, name),
    ]


def _of_001(
    experiment: HeatmapExperiment, at: xr.Dataset, even: xr.Dataset | None, name: Naming
) -> list[Verdict]:
    found = [*_stronger(at, name), *_associated(experiment, at, even, name)]
    for output, count, which in (
        ("covered", experiment.shown_001, "shown"),
        ("covered_all", experiment.neurons_001, "there are"),
    ):
        number = pooled(at[output])
        what = f"every majority feature dominates one of the {count} neurons {which}"
        note = (
            f"runs in which each of the {experiment.majority} has a neuron that is pure in it; "
            f"mean number of features that have {_mean(number)}"
        )
        every_one = np.where(np.isfinite(number), number >= experiment.majority, np.nan)
        found.append(_seen(name("C13", what), every_one, note))
    more, note = _gap(at["carriers"]), "neurons that carry a feature, mean over a group; paired"
    what = "majority features have more neurons"
    return found + _positive(what, more, f"{note} within a run", name)


def _gap(values: xr.DataArray) -> xr.DataArray:
    return values.sel(group="majority") - values.sel(group="minority")


def _associated(
    experiment: HeatmapExperiment, at: xr.Dataset, even: xr.Dataset | None, name: Naming
) -> list[Verdict]:
    """The share itself, which must not be that of balanced data, and how much it is above it."""
    share = at["associated"] / experiment.shown_001
    what = "share of neurons in which a majority feature carries a tenth of the squared norm"
    control = np.array([]) if even is None else even["associated"].values / experiment.shown_001
    beside = f"{_mean(control)} on balanced data" if control.size else "no balanced data beside it"
    nearly, note = name("C13", "nearly every neuron has a majority feature"), f"{what}; {beside}"
    literal = st.judge_bound(nearly, pooled(share), NEARLY_EVERY, "at_least", note=note)
    if literal.outcome == "holds" and not st.mean_interval(control).high < NEARLY_EVERY:
        why = "where frequencies do not differ it may be as many: it could hardly fail"
        literal = inconclusive(literal, why)
    beyond = "neurons with a majority feature, beyond balanced data"
    note = f"{what}, {_mean(pooled(share))}, less that of the balanced run of the same seed"
    if even is None or share.sizes["eps_min"] == 0:
        return [literal, st.judge_difference(name("C13", beyond), [], "positive", note=what)]
    gap = share - even["associated"] / experiment.shown_001
    # one value per seed: the balanced run is the same one for every eps_min
    mean = gap.mean("eps_min").values
    return [
        literal,
        st.judge_difference(name("C13", beyond), mean, "positive", note=note),
        *_least(beyond, gap, note, name),
    ]


def _stronger(at: xr.Dataset, name: Naming) -> list[Verdict]:
    note = "mean squared cosine of a group's columns; paired within a run"
    return _positive("majority columns are stronger", _gap(at["column"]), note, name)
