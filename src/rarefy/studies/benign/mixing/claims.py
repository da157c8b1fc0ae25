"""Verdicts of ``benign-mixing`` (B14): do long-tailed training samples help, and by what."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import Interval, finite_mean
from rarefy.studies.benign.constants import MOST, premise, share_of
from rarefy.studies.benign.mixing.experiment import MixingExperiment
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.reading import Reading, at_most, judge_all, rises


def verdicts(study: MixingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    """The paper concludes this from Theorem 1, and has no experiment."""

    def why(at: xr.Dataset) -> str:
        return premise(study, at["train_loss"].values)

    moments, found = texts(results, "moment"), []
    for schedule in texts(results, "schedule"):
        kinds = texts(results, "kind") if schedule == "trained" else ["all"]
        for kind in kinds if "free" in moments else ():
            primary = (schedule, kind) == ("trained", "all")
            before = "" if primary else f"{schedule}, {kind} test samples: "
            found.append(
                Reading(
                    "B14.1" if primary else "B14",
                    f"{before}accuracy rises with the share of long-tailed training samples",
                    lambda at: at["accuracy"].mean("gamma", skipna=False),
                    rises("share", shared=True),
                    at={"schedule": schedule, "moment": "free", "kind": kind},
                    note=_ends,
                    premise=why,
                )
            )
        if schedule == "trained" and {"free", "held"} <= set(moments):
            found.append(
                Reading(
                    "",
                    f"{schedule}: share of the gain left with the second moment held",
                    _left,
                    at_most(MOST),
                    at={"schedule": schedule, "moment": ["free", "held"], "kind": "all"},
                    note=_reason,
                    premise=why,
                )
            )
    return judge_all(study, results, scale, found)


def _ends(at: xr.Dataset, accuracy: xr.DataArray) -> str:
    mean, share = accuracy.mean("seed").values, at["share"].values
    return f"mean {mean[0]:.3f} at share {share[0]:g}, {mean[-1]:.3f} at {share[-1]:g}"


def _gains(at: xr.Dataset) -> list[np.ndarray]:
    """Accuracy gained from the smallest share to the largest, mean over Gamma: (seed,), free and
    held."""
    gain = at["accuracy"].isel(share=-1) - at["accuracy"].isel(share=0)
    return [gain.sel(moment=m).mean("gamma", skipna=False).values for m in ("free", "held")]


def _left(at: xr.Dataset) -> Interval:
    """The paper's reason is the covariance (Gamma; the score of Sec. 5.2): what is left when that
    is held is at most half."""
    free, held = _gains(at)
    return share_of(held, free)


def _reason(at: xr.Dataset, share: Interval) -> str:
    free, held = (finite_mean(gain) for gain in _gains(at))
    return (
        f"about the paper's reason, Gamma, which alone would leave nothing: gain {free:.3f} free, "
        f"{held:.3f} held, mean over Gamma"
        + ("" if share.n else "; no certain gain to take a share of")
    )
