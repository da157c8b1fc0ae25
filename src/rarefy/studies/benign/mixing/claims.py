"""Verdicts of ``benign-mixing`` (B14): do long-tailed training samples help, and by what."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    Interval,
    bootstrap_interval,
    judge_bound,
    judge_trend,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.benign.constants import small_mean_loss
from rarefy.studies.benign.mixing.experiment import MixingExperiment
from rarefy.studies.benign.premise import with_premise

MOST = 0.5
"""What explains a gain makes more than half of it."""


def accuracy_of(
    results: xr.Dataset, schedule: str, gamma: float, moment: str, kind: str
) -> np.ndarray:
    """(seed, share)."""
    here = results["accuracy"].sel(schedule=schedule, gamma=gamma, moment=moment, kind=kind)
    return np.asarray(here.transpose("seed", "share").values)


def gains(results: xr.Dataset, schedule: str, moment: str, kind: str) -> np.ndarray:
    """Accuracy gained from the smallest share to the largest, mean over Gamma: (seed,)."""
    found = []
    for gamma in results["gamma"].values:
        accuracy = accuracy_of(results, schedule, gamma, moment, kind)
        found.append(accuracy[:, -1] - accuracy[:, 0])
    return np.mean(found, axis=0)


def mixing_verdicts(study: MixingExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    kinds = [str(kind) for kind in results["kind"].values]
    moments = [str(moment) for moment in results["moment"].values]
    for schedule in (str(word) for word in results["schedule"].values):

        def identity(what: str, schedule: str = schedule) -> Identity:
            return ("B14", study.name, scale, f"{study.setting}, {schedule}: {what}")

        def premised(
            verdict: Verdict, where: dict[str, object], schedule: str = schedule
        ) -> Verdict:
            """The paper concludes this from Theorem 1 and has no experiment."""
            loss = results["train_loss"].sel(schedule=schedule).sel(where)
            return with_premise(verdict, loss.values, small_mean_loss(study))

        if "free" in moments:
            for gamma in results["gamma"].values:
                found += [
                    premised(
                        _rises(
                            identity(f"Gamma = {gamma:g}, accuracy of {kind} test samples"),
                            results["share"].values,
                            accuracy_of(results, schedule, gamma, "free", kind),
                        ),
                        {"gamma": gamma, "moment": "free"},
                    )
                    for kind in kinds
                ]
        if {"free", "held"} <= set(moments):
            found += [
                premised(
                    _left(
                        identity(f"share of the gain left with the second moment held, {kind}"),
                        gains(results, schedule, "free", kind),
                        gains(results, schedule, "held", kind),
                    ),
                    {"moment": ["free", "held"]},
                )
                for kind in kinds
            ]
    return found


def _rises(identity: Identity, share: np.ndarray, accuracy: np.ndarray) -> Verdict:
    means = np.nanmean(accuracy, axis=0)
    return judge_trend(
        identity,
        spearman_trend(share, accuracy, within_rows=True),
        "increasing",
        note=f"mean {means[0]:.3f} at share {share[0]:g}, {means[-1]:.3f} at {share[-1]:g}",
    )


def _left(identity: Identity, free: np.ndarray, held: np.ndarray) -> Verdict:
    """The paper's reason is the covariance (Gamma; the score of Sec. 5.2): what is left when that
    is held is at most half."""
    note = (
        f"about the paper's reason, Gamma, which alone would leave nothing: gain "
        f"{np.nanmean(free):.3f} free, {np.nanmean(held):.3f} held, mean over Gamma"
    )
    share = Interval(np.nan, np.nan, np.nan, 0)
    if mean_interval(free).low > 0:
        share = bootstrap_interval(
            np.stack([held, free], axis=1),
            lambda pair: float(np.nanmean(pair[:, 0]) / np.nanmean(pair[:, 1])),
        )
    else:
        note += "; no certain gain to take a share of"
    return judge_bound(identity, share, MOST, "at_most", note=note)
