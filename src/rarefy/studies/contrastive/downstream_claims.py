"""Trends in eps_min of a downstream quantity, judged beside their controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.downstream import DownstreamExperiment
from rarefy.studies.contrastive.words import bias_name
from rarefy.studies.kit.arrays import by_seed
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.slices import every


@dataclass(frozen=True)
class Quantity:
    """What is judged: dimensions bias_scale, sigma, eps_min, seed and read.

    ``reference`` is the same quantity of an ideal encoder on the same test pairs (no ``read``):
    a trend it has too comes from the test pairs, not from learning. ``beside`` is something that
    may explain the trend: the note says how its mean changes from the first eps_min to the last.
    """

    what: str
    values: xr.DataArray
    reference: xr.DataArray | None = None
    note: str = ""
    beside: tuple[str, xr.DataArray] | None = None


def judged_reads(experiment: DownstreamExperiment) -> list[int]:
    """Every read of a trained network: a trend may hold at one and be reversed at another, and the
    paper does not say how long it trained."""
    return [read for read in experiment.reads if read > 0] or [experiment.reads[-1]]


def trend_verdicts(
    experiment: DownstreamExperiment,
    scale: str,
    claim: str,
    quantities: Sequence[Quantity],
    direction: Literal["increasing", "decreasing"],
) -> list[Verdict]:
    name = Naming(experiment, scale)
    found = []
    for quantity in quantities:
        for (bias, sigma), here in every(quantity.values, "bias_scale", "sigma"):
            for read in judged_reads(experiment):
                where = f"sigma={sigma:g}, step {read}, {bias_name(bias)}, {experiment.setting}"
                trend = spearman_trend(here["eps_min"].values, by_seed(here.sel(read=read)))
                note = _note(quantity, {"bias_scale": bias, "sigma": sigma}, read)
                identity = name(claim, f"{quantity.what}, {where}")
                found.append(judge_trend(identity, trend, direction, note=note))
    return found


def _note(quantity: Quantity, here: dict[str, float], read: int) -> str:
    values, parts = quantity.values.sel(here), [quantity.note]
    if 0 in values["read"].values:
        parts.append(f"untrained network: rho {_rho(values.sel(read=0))}")
    if quantity.reference is not None:
        parts.append(f"ideal encoder: rho {_rho(quantity.reference.sel(here))}")
    if quantity.beside is not None:
        what, share = quantity.beside
        mean = share.sel(here).sel(read=read).mean("seed").values
        ends = f"{mean[0]:.3g} at the smallest eps_min, {mean[-1]:.3g} at the largest"
        parts.append(f"{what}: {ends}")
    return joined(*parts)


def _rho(values: xr.DataArray) -> str:
    rho = spearman_trend(values["eps_min"].values, by_seed(values), permutations=0).rho
    return f"{rho:.2f}" if np.isfinite(rho) else "undefined"
