"""How the results of ``contrast-pruning`` are read: which cells, step and quantity, and all points
of a grid together."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.pruning.masks import kept_count
from rarefy.studies.contrastive.pruning.experiment import PruningExperiment
from rarefy.theory.contrastive_pruning import minority_rate_order, other_rate_order

Side = Literal["at_least", "at_most"]
RESTLESS = 10.0
"""A pruned run whose frequent features have this many times the squared weight of its unpruned twin
does not come to rest; fixed before looking at claims."""


def pruned_alphas(results: xr.Dataset) -> np.ndarray:
    return results["alpha"].values[results["alpha"].values > 0]


def pruned_number(experiment: PruningExperiment, alpha: xr.DataArray) -> xr.DataArray:
    """Neurons left out."""
    kept = kept_count(torch.tensor(alpha.values.tolist(), dtype=torch.float64), experiment.neurons)
    return alpha.copy(data=experiment.neurons - kept.numpy())


def permitted(experiment: PruningExperiment, here: xr.Dataset) -> xr.Dataset:
    """The cells of which Theorem 3.2 speaks: pruned, with a feature that is rare, and in the
    theorem's state no more neurons pruned than rare features have (Remark 1). All pruned ones
    where none is left."""
    alphas = pruned_alphas(here)
    if str(here["begin"].values) == "theorem":
        within = alphas * experiment.d <= experiment.minority * (1 + 1e-9)
        alphas = alphas[within] if within.any() else alphas
    eps = here["eps_min"].values
    return here.sel(alpha=alphas, eps_min=eps[eps < 1] if (eps < 1).any() else eps)


def state_read(experiment: PruningExperiment, here: xr.Dataset) -> int:
    """The read whose state is judged before and after masking: where pruning begins (the first
    read after it when none is there), but never untrained random weights."""
    start = int(here["start"])
    trained = 0 if str(here["begin"].values) == "theorem" else 1
    later = (read for read in experiment.reads if read >= max(start, trained))
    return min(later, default=max(experiment.reads))


def early_read(experiment: PruningExperiment, start: int) -> int:
    """The first read at which pruning has acted."""
    return min((read for read in experiment.reads if read > start), default=experiment.reads[-1])


def at_rest(here: xr.Dataset, alpha: float) -> xr.DataArray:
    """Which runs pruned by ``alpha`` have not outgrown their unpruned twins: (..., read)."""
    energy = here["energy"].sel(group="majority", drop=True)
    return energy.sel(alpha=alpha, drop=True) <= RESTLESS * energy.sel(alpha=0.0, drop=True)


def judged_quantity(begin: str) -> tuple[str, str, int]:
    """Output, words and power of eps that (13) gives it. In the theorem's state each neuron has a
    feature and its weight is read; elsewhere the feature's energy."""
    if begin == "theorem":
        return "weight", "weight of own neurons", 1
    return "energy", "energy", 2


def rate_ratios(
    experiment: PruningExperiment, here: xr.Dataset
) -> tuple[xr.DataArray, xr.DataArray]:
    """Measured over (15) and over (16), for every permitted alpha and eps_min."""
    at = permitted(experiment, here.sel(read=state_read(experiment, here)))
    alpha, eps = xr.broadcast(at["alpha"], at["eps_min"])
    lr, constant, growth = experiment.lr, experiment.growth_constant, at["extra_growth"]
    rare = alpha.copy(data=minority_rate_order(eps.values, alpha.values, lr, constant))
    most = other_rate_order(eps.values, alpha.values, lr, constant, experiment.d)
    others = alpha.copy(data=most)
    return growth.sel(group="minority") / rare, growth.sel(group="majority") / others


def seed_means(values: xr.DataArray) -> np.ndarray:
    """Mean over all but the seed: one number per seed."""
    return values.mean([dim for dim in values.dims if dim != "seed"]).values


def used(values: xr.DataArray) -> str:
    """Says at which eps_min there was something to average."""
    others = [dim for dim in values.dims if dim != "eps_min"]
    there = values.notnull().any(others).values
    return "mean over eps_min " + ", ".join(f"{v:g}" for v in values["eps_min"].values[there])


def judge_worst(
    identity: st.Identity, ratio: xr.DataArray, bound: float, side: Side, reading: str
) -> Verdict:
    """A bound judged at the point of the grid where it is tightest."""
    mean = ratio.mean("seed")
    if not bool(np.isfinite(mean).any()):
        return st.judge_bound(identity, np.empty(0), bound, side, note="no neuron of that kind")
    there = ratio.isel(mean.argmin(...) if side == "at_least" else mean.argmax(...))
    where = ", ".join(f"{dim}={float(there[dim]):g}" for dim in mean.dims)
    note = f"at {where}, where it is tightest; {reading}"
    return st.judge_bound(identity, there.values, bound, side, note=note)


def judge_paired(
    identity: st.Identity, gap: xr.DataArray, direction: Literal["positive", "negative"], note: str
) -> Verdict:
    """The sign of a difference, mean over the grid."""
    return st.judge_difference(identity, seed_means(gap), direction, note=note)
