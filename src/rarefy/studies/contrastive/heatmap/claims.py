"""Verdicts of ``contrast-heatmap``: C13, statements of 000 App. A.2 and 001 section 4.

Neither paper says how rare its minority features are: whether a kind of neuron is there is judged
over all imbalanced runs (eps_min below 1), a difference between the groups at the eps_min where it
is least. The primary readings are with the paper's bias, at the step of the map.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.contrastive.heatmap.experiment import HeatmapExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.reading import Naming

IN_RUNS = 0.95
"""Share of runs in which something must be seen for 'there are such neurons'."""
NEARLY_EVERY = 0.9
"""Share of neurons read as 'nearly every neuron'."""


def verdicts(experiment: HeatmapExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    biased, shown = max(experiment.bias_scale), experiment.figure_read
    rare = [eps for eps in experiment.eps_min if eps < 1]
    known = [str(variant) for variant in results["variant"].values]
    first = results.sel(bias_scale=biased, read=shown)
    found = []
    for before, bias, read in (
        ("", biased, shown),
        ("no bias: ", 0.0, shown),
        ("read late: ", biased, experiment.reads[-1]),
    ):
        if before and ((bias, read) == (biased, shown) or bias not in experiment.bias_scale):
            continue
        size = f", step {read}, {bias_name(bias)}, d={experiment.d}"
        name = Naming(experiment, scale, before, size)
        at = results.sel(bias_scale=bias, read=read, eps_min=rare)
        lucky, stronger = ("C13", "C13") if before else ("C13.1", "C13.3")
        if "000" in known:
            found.append(_lucky(at.sel(variant="000"), name, lucky))
        if "001" in known:
            found.append(_stronger(at.sel(variant="001"), name, stronger))
    name = Naming(experiment, scale, after=f", step {shown}, {bias_name(biased)}, d={experiment.d}")
    if "000" in known:
        found.append(_mixed(first.sel(variant="000", eps_min=rare), name))
    if "001" in known:
        found += _of_001(experiment, first.sel(variant="001"), rare, name)
    return found


def pooled(values: xr.DataArray) -> np.ndarray:
    """(run,) array of all seeds and eps_min."""
    return values.transpose("seed", "eps_min").values.ravel()


def _seen(identity: st.Identity, values: xr.DataArray, note: str, least: float = 1) -> Verdict:
    """Runs in which there are at least so many."""
    counts = pooled(values)
    counts = counts[np.isfinite(counts)]
    seen = int((counts >= least).sum())
    said = f"runs; mean number {counts.mean():.3g}" if counts.size else ""
    return st.judge_fraction(identity, seen, counts.size, IN_RUNS, note=f"{said}; {note}")


def _lucky(at: xr.Dataset, name: Naming, claim: str) -> Verdict:
    largest = pooled(at["largest"])
    note = "pure neurons of squared cosine >= 0.3"
    if np.isfinite(largest).any():
        note += f"; largest entry of a map {np.nanmean(largest):.2g}"
    return _seen(name(claim, "lucky neurons exist, 24 neurons (Fig. 6)"), at["lucky"], note)


def _mixed(at: xr.Dataset, name: Naming) -> Verdict:
    note = (
        "neurons that two or more features share, a tenth of the squared norm each, none dominant"
    )
    identity = name("C13.2", "mixed neurons exist, 24 neurons (Fig. 6)")
    return _seen(identity, at["mixed"].sum("group", skipna=False), note)


def _stronger(at: xr.Dataset, name: Naming, claim: str) -> Verdict:
    identity = name(claim, "majority columns are stronger, 13 neurons (workshop paper, Fig. 1)")
    return _positive(identity, at["column"], "mean squared cosine of a group's columns")


def _positive(identity: st.Identity, values: xr.DataArray, what: str) -> Verdict:
    """Majority minus minority within a run, at the eps_min where it is least."""
    gap = values.sel(group="majority") - values.sel(group="minority")
    means = gap.mean("seed").values
    if not np.isfinite(means).any():
        return st.judge_difference(identity, [], "positive", note=what)
    least = gap.isel(eps_min=int(np.nanargmin(means)))
    note = f"{what}; at eps_min={float(least['eps_min']):g}, where it is least"
    return st.judge_difference(identity, least.values, "positive", note=note)


def _of_001(
    experiment: HeatmapExperiment, at: xr.Dataset, rare: list[float], name: Naming
) -> list[Verdict]:
    count, uneven = experiment.shown_001, at.sel(eps_min=rare)
    share, least = at["associated"] / count, NEARLY_EVERY
    note = "a majority feature carries a tenth of the squared norm"
    if 1.0 in at["eps_min"].values:
        note += f"; {float(share.sel(eps_min=1.0).mean()):.3g} on balanced data"
    nearly = name(
        "C13", f"workshop paper: nearly every one of {count} neurons has a majority feature"
    )
    every = name("C13", f"workshop paper: every majority feature dominates one of {count} neurons")
    more = name("C13", "workshop paper: majority features have more neurons")
    of = f"the {experiment.majority} majority features that dominate a neuron"
    return [
        st.judge_bound(nearly, pooled(share.sel(eps_min=rare)), least, "at_least", note=note),
        _seen(every, uneven["covered"], of, experiment.majority),
        _positive(more, uneven["carriers"], "neurons that carry a feature, mean over a group"),
    ]
