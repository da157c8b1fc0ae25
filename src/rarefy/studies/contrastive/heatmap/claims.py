"""Verdicts of ``contrast-heatmap``: C13, one statement of 000 App. A.2 or 001 section 4 each.

Neither paper says how rare its minority features are, so a statement is judged over all imbalanced
runs together (eps_min below 1). A difference between the groups is judged once more at the eps_min
where it is least, which the others cannot make up for; the study's table has all of them. What
balanced runs (eps_min 1) show as well says nothing about majority features: five features of nine
are in most mixtures by their number alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    judge_bound,
    judge_difference,
    judge_equal,
    judge_fraction,
    mean_interval,
)
from rarefy.studies.contrastive.heatmap.experiment import HeatmapExperiment
from rarefy.studies.contrastive.words import bias_name

IN_RUNS = 0.95
"""Share of runs in which something must be seen for 'there are such neurons'."""
NEARLY_EVERY = 0.9
"""Share of neurons read as 'nearly every neuron'."""
CHANCE_TOLERANCE = 0.1
"""How far the random level may be from 1/d1, as a share of it ('approximately' in 000)."""

Namer = Callable[[str], Identity]


def imbalanced(results: xr.Dataset) -> xr.Dataset:
    return results.sel(eps_min=results["eps_min"].values[results["eps_min"].values < 1])


def balanced(results: xr.Dataset) -> xr.Dataset | None:
    """Runs whose features are all equally frequent; None where eps_min=1 was not asked for."""
    return results.sel(eps_min=1.0) if 1.0 in results["eps_min"].values else None


def pooled(values: xr.DataArray) -> np.ndarray:
    """(run,) array of all seeds and eps_min."""
    return values.transpose("seed", "eps_min").values.ravel()


def heatmap_verdicts(study: HeatmapExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    uneven = imbalanced(results)
    for variant in results["variant"].values:
        found.append(_chance(study, results.sel(variant=variant), scale))
        for scale_of_bias in results["bias_scale"].values:
            for read in sorted({study.figure_read, study.reads[-1]}):
                at = uneven.sel(variant=variant, bias_scale=scale_of_bias, read=read)
                where = f"{bias_name(scale_of_bias)}, step {read}, {_size(study, variant)}"

                def identity(what: str, where: str = where) -> Identity:
                    return ("C13", study.name, scale, f"{what}, {where}")

                if variant == "000":
                    found += _of_000(at, identity)
                    continue
                even = results.sel(variant=variant, bias_scale=scale_of_bias, read=read)
                found += _of_001(study, at, balanced(even), identity)
    return found


def _size(study: HeatmapExperiment, variant: str) -> str:
    if variant == "000":
        return f"000: d={study.d} m={study.neurons}"
    return f"001: d={study.d} m={study.neurons_001}, {study.shown_001} shown"


def _chance(study: HeatmapExperiment, here: xr.Dataset, scale: str) -> Verdict:
    # runs with and without a bias begin with the same weights: count them once
    initial = here["initial"].isel(bias_scale=0)
    return judge_equal(
        (
            "C13",
            study.name,
            scale,
            f"random level 1/d1, {_size(study, str(here['variant'].values))}",
        ),
        pooled(initial) * study.d1,
        predicted=1.0,
        tolerance=CHANCE_TOLERANCE,
        note=f"squared cosine before training times d1={study.d1}, mean over the map",
    )


def _seen(identity: Identity, counts: np.ndarray, note: str) -> Verdict:
    there = np.isfinite(counts)
    return judge_fraction(
        identity, int((counts[there] > 0).sum()), int(there.sum()), IN_RUNS, note=note
    )


def _mean(values: np.ndarray) -> str:
    values = values[np.isfinite(values)]
    return f"{values.mean():.3g}" if values.size else "undefined"


def _positive(what: str, gap: xr.DataArray, note: str, identity: Namer) -> list[Verdict]:
    """A difference within a run, (seed, eps_min): over all eps_min, and where it is least."""
    over_all = judge_difference(identity(what), pooled(gap), "positive", note=note)
    return [over_all, *_least(what, gap, note, identity)]


def _least(what: str, gap: xr.DataArray, note: str, identity: Namer) -> list[Verdict]:
    """The same difference at the eps_min where its mean is least; nothing without a mean."""
    means = gap.mean("seed").values
    if not np.isfinite(means).any():
        return []
    least = gap.isel(eps_min=int(np.nanargmin(means)))
    return [
        judge_difference(
            identity(f"{what} where they are least so"),
            least.values,
            "positive",
            note=f"{note}; at eps_min={float(least['eps_min']):g}",
        )
    ]


def _of_000(at: xr.Dataset, identity: Namer) -> list[Verdict]:
    lucky, mixed = pooled(at["lucky"]), pooled(at["mixed"].sum("group"))
    return [
        _seen(
            identity("lucky neurons exist"),
            lucky,
            f"runs with a pure neuron of squared cosine >= 0.3; mean number {_mean(lucky)}, mean "
            f"of the largest entry {_mean(pooled(at['largest']))} (0.3: one neuron of the paper)",
        ),
        _seen(
            identity("mixed neurons exist"),
            mixed,
            f"runs with a neuron in which two or more features carry a tenth of the squared norm "
            f"and none dominates; mean number {_mean(mixed)}",
        ),
        *_stronger(at, identity),
    ]


def _of_001(
    study: HeatmapExperiment, at: xr.Dataset, even: xr.Dataset | None, identity: Namer
) -> list[Verdict]:
    covered, anywhere = pooled(at["covered"]), pooled(at["covered_all"])
    return [
        *_stronger(at, identity),
        *_associated(study, at, even, identity),
        *(
            _seen(
                identity(f"every majority feature dominates one of the {count} neurons {which}"),
                np.where(np.isfinite(number), (number >= study.majority).astype(float), np.nan),
                f"runs in which each of the {study.majority} has a neuron that is pure in it; mean "
                f"number of features that have {_mean(number)}",
            )
            for number, count, which in (
                (covered, study.shown_001, "shown"),
                (anywhere, study.neurons_001, "there are"),
            )
        ),
        *_positive(
            "majority features have more neurons",
            at["carriers"].sel(group="majority") - at["carriers"].sel(group="minority"),
            "neurons that carry a feature, mean over a group; paired within a run",
            identity,
        ),
    ]


def _associated(
    study: HeatmapExperiment, at: xr.Dataset, even: xr.Dataset | None, identity: Namer
) -> list[Verdict]:
    """The share itself, which must not be that of balanced data, and how much it is above it."""
    share = at["associated"] / study.shown_001
    what = "share of neurons in which a majority feature carries a tenth of the squared norm"
    control = np.array([]) if even is None else even["associated"].values / study.shown_001
    beside = f"{_mean(control)} on balanced data" if control.size else "no balanced data beside it"
    literal = judge_bound(
        identity("nearly every neuron has a majority feature"),
        pooled(share),
        NEARLY_EVERY,
        "at_least",
        note=f"{what}; {beside}",
    )
    if literal.outcome == "holds" and not mean_interval(control).high < NEARLY_EVERY:
        why = "where frequencies do not differ it may be as many: it could hardly fail"
        literal = replace(literal, outcome="inconclusive", note=f"{literal.note}; {why}")
    beyond = "neurons with a majority feature, beyond balanced data"
    note = f"{what}, {_mean(pooled(share))}, less that of the balanced run of the same seed"
    if even is None or share.sizes["eps_min"] == 0:
        return [literal, judge_difference(identity(beyond), [], "positive", note=what)]
    gap = share - even["associated"] / study.shown_001
    return [
        literal,
        # one value a seed: the balanced run is the same one for every eps_min
        judge_difference(identity(beyond), gap.mean("eps_min").values, "positive", note=note),
        *_least(beyond, gap, note, identity),
    ]


def _stronger(at: xr.Dataset, identity: Namer) -> list[Verdict]:
    return _positive(
        "majority columns are stronger",
        at["column"].sel(group="majority") - at["column"].sel(group="minority"),
        "mean squared cosine of a group's columns; paired within a run",
        identity,
    )
