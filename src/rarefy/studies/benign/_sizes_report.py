"""Verdicts and pictures of ``benign-sizes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Curve, Lines, Picture
from rarefy.measure.curves import mean_curve
from rarefy.measure.statistics import (
    Identity,
    Interval,
    bootstrap_interval,
    judge_bound,
    judge_equal,
    judge_trend,
    spearman_trend,
)
from rarefy.studies.benign._maps import AXIS_LABELS, accuracy_map, counted
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

if TYPE_CHECKING:
    from rarefy.studies.benign.benign_sizes import BenignSizes

HARDLY = 0.25
"""Change over all class sizes, as a share of the change over all Gamma, that still is "hardly".
Both limits were fixed before this study ran, a first look being known."""
SMALL = 0.05
"""The same as a change of accuracy at one Gamma: what a heat map's colours can just show."""


def sizes_verdicts(study: BenignSizes, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for schedule in results["schedule"].values:
        found += _of_schedule(study, results.sel(schedule=schedule), scale, str(schedule))
    return found


def _of_schedule(
    study: BenignSizes, results: xr.Dataset, scale: str, schedule: str
) -> list[Verdict]:
    ordered = results.sortby(["size", "gamma"]).transpose("seed", "size", "gamma")
    accuracy = 1 - ordered["test_error"].values
    gamma, size = ordered["gamma"].values, ordered["size"].values
    means = accuracy.mean(axis=0)
    change = accuracy[:, -1] - accuracy[:, 0]  # (seed, gamma)
    span = f"|S|={size[0]} to {size[-1]}"
    worst = int(np.abs(change.mean(axis=0)).argmax())
    loss = ordered["train_loss"].values
    fitted = "training loss "
    fitted += (
        f"{np.nanmin(loss):.2g} to {np.nanmax(loss):.2g} (log K = {np.log(study.classes):.2f})"
    )

    def identity(what: str) -> Identity:
        return ("B8", study.name, scale, f"{study.setting}, {schedule}: {what}")

    return [
        judge_trend(
            identity("accuracy rises with Gamma, mean over |S|"),
            spearman_trend(gamma, accuracy.mean(axis=1), within_rows=True),
            "increasing",
            note=f"from {means[:, 0].mean():.3f} to {means[:, -1].mean():.3f}; {fitted}",
        ),
        judge_bound(
            identity(f"change over {span} as a share of that over Gamma"),
            share_of_change(accuracy),
            HARDLY,
            "at_most",
            note=f"mean change {np.abs(change.mean(axis=0)).mean():.3f} over |S|, "
            f"{(means[:, -1] - means[:, 0]).mean():.3f} over Gamma={gamma[0]:g} to {gamma[-1]:g}",
        ),
        judge_bound(
            identity(f"largest change over {span} at any Gamma"),
            bootstrap_interval(change, lambda drawn: float(np.abs(drawn.mean(axis=0)).max())),
            SMALL,
            "at_most",
            note=f"at Gamma={gamma[worst]:g}: from {means[0, worst]:.3f} to {means[-1, worst]:.3f}",
        ),
        judge_equal(
            identity(f"change over {span} at Gamma={gamma[-1]:g}"),
            change[:, -1],
            0.0,
            SMALL,
            note=f"from {means[0, -1]:.3f} to {means[-1, -1]:.3f}",
        ),
    ]


def share_of_change(accuracy: np.ndarray) -> Interval:
    """Mean size of the change from the first to the last |S| over that from the first to the last
    Gamma, of seed means; accuracy: (seed, size, gamma)."""

    def share(drawn: np.ndarray) -> float:
        means = drawn.mean(axis=0)
        by_size = np.abs(means[-1] - means[0]).mean()
        by_gamma = np.abs(means[:, -1] - means[:, 0]).mean()
        return float(by_size / by_gamma) if by_gamma > 0 else np.nan

    return bootstrap_interval(accuracy, share)


def sizes_pictures(study: BenignSizes, results: xr.Dataset) -> list[Picture]:
    ordered = results.sortby(["size", "gamma"])
    accuracy = 1 - ordered["test_error"]
    maps = [
        accuracy_map(accuracy.sel(schedule=name), "size", "gamma", study.words(str(name)))
        for name in ordered["schedule"].values
    ]
    return [
        Picture(
            "map",
            f"Accuracy over class size and noise correlation, |u| = {study.strength:g}",
            f"003 Fig. 4b, {counted(results)}. Rows that do not change from left to right are what "
            "the paper reports: the size of the training set hardly matters, Gamma does.",
            maps,
        ),
        _cuts(study, ordered, accuracy),
    ]


def _cuts(study: BenignSizes, results: xr.Dataset, accuracy: xr.DataArray) -> Picture:
    gamma, size = results["gamma"].values, results["size"].values
    chosen = gamma[np.unique(np.linspace(0, len(gamma) - 1, 5).round().astype(int))]
    best = 1 - least_noise_error(special_ratio(chosen, study.d - study.classes), study.classes)
    panels = []
    for schedule in results["schedule"].values:
        curves = []
        for place, value in enumerate(chosen):
            role = f"gamma {place}"
            samples = accuracy.sel(schedule=schedule, gamma=value).transpose("seed", "size").values
            curves.append(mean_curve(f"Gamma = {value:g}", size, samples, role))
            level = np.full(len(size), best[place])
            curves.append(Curve(f"Gamma = {value:g}, best", size, level, role=role, style="dashed"))
        panels.append(
            Lines(
                curves,
                AXIS_LABELS["size"],
                "test accuracy",
                study.words(str(schedule)),
                x_log=True,
            )
        )
    return Picture(
        "cuts",
        "Accuracy against the number of samples, by noise correlation ratio",
        f"Lines: {counted(results)} with 95 % bands. Dashed: the best classifier by noise alone, "
        "which knows every A_k. Where a line is flat and below its dashed one, more samples do "
        "not help this training.",
        panels,
    )
