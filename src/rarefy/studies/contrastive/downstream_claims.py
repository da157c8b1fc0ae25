"""Trends in eps_min of a downstream quantity, judged beside their controls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import judge_trend
from rarefy.measure.trends import spearman_trend
from rarefy.studies.contrastive.downstream import DownstreamExperiment
from rarefy.studies.contrastive.words import bias_name, rows


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


def judged_reads(study: DownstreamExperiment) -> list[int]:
    """Every read of a trained network: a trend may hold at one and be reversed at another, and the
    paper does not say how long it trained."""
    return [read for read in study.reads if read > 0] or [study.reads[-1]]


def trend_verdicts(
    study: DownstreamExperiment,
    scale: str,
    claim: str,
    quantities: Sequence[Quantity],
    direction: Literal["increasing", "decreasing"],
) -> list[Verdict]:
    found = []
    for quantity in quantities:
        eps = quantity.values["eps_min"].values
        for bias in quantity.values["bias_scale"].values:
            for sigma in quantity.values["sigma"].values:
                here = {"bias_scale": bias, "sigma": sigma}
                for read in judged_reads(study):
                    where = f"sigma={sigma:g}, step {read}, {bias_name(bias)}, {study.setting}"
                    found.append(
                        judge_trend(
                            (claim, study.name, scale, f"{quantity.what}, {where}"),
                            spearman_trend(eps, rows(quantity.values.sel(here).sel(read=read))),
                            direction,
                            note=_note(quantity, here, read),
                        )
                    )
    return found


def _note(quantity: Quantity, here: dict[str, float], read: int) -> str:
    values, parts = quantity.values.sel(here), [quantity.note] if quantity.note else []
    if 0 in values["read"].values:
        parts.append(f"untrained network: rho {_rho(values.sel(read=0))}")
    if quantity.reference is not None:
        parts.append(f"ideal encoder: rho {_rho(quantity.reference.sel(here))}")
    if quantity.beside is not None:
        what, share = quantity.beside
        mean = share.sel(here).sel(read=read).mean("seed").values
        parts.append(
            f"{what}: {mean[0]:.3g} at the smallest eps_min, {mean[-1]:.3g} at the largest"
        )
    return "; ".join(parts)


def _rho(values: xr.DataArray) -> str:
    rho = spearman_trend(values["eps_min"].values, rows(values), permutations=0).rho
    return f"{rho:.2f}" if np.isfinite(rho) else "undefined"
