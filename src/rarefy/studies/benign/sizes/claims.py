"""Verdicts of ``benign-sizes`` (B8): Gamma matters, the size of the training set hardly."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.benign.sizes.experiment import SizesExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming

HARDLY = 0.25
"""Change over all class sizes, as a share of the change over all Gamma, that still is "hardly".
Both limits were fixed before this study ran, a first look being known."""
SMALL = 0.05
"""The same as a change of accuracy at one Gamma: what a heat map's colours can just show."""


def verdicts(study: SizesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    ordered = results.sortby(["size", "gamma"])
    return [
        verdict
        for schedule in texts(results, "schedule")
        for verdict in _of_training(
            study,
            ordered.sel(schedule=schedule),
            Naming(study, scale, f"{study.setting}, {schedule}: "),
        )
    ]


def _of_training(study: SizesExperiment, results: xr.Dataset, named: Naming) -> list[Verdict]:
    accuracy = 1 - by_seed(results["test_error"], "size", "gamma")
    gamma, size = results["gamma"].values, results["size"].values
    means = accuracy.mean(axis=0)
    change = accuracy[:, -1] - accuracy[:, 0]  # (seed, gamma)
    span = f"|S|={size[0]} to {size[-1]}"
    worst = int(np.abs(change.mean(axis=0)).argmax())
    loss, start = results["train_loss"].values, np.log(study.classes)
    fitted = f"training loss {np.nanmin(loss):.2g} to {np.nanmax(loss):.2g} (log K = {start:.2f})"
    return [
        st.judge_trend(
            named("B8", "accuracy rises with Gamma, mean over |S|"),
            st.spearman_trend(gamma, accuracy.mean(axis=1), within_rows=True),
            "increasing",
            note=f"from {means[:, 0].mean():.3f} to {means[:, -1].mean():.3f}; {fitted}",
        ),
        st.judge_bound(
            named("B8", f"change over {span} as a share of that over Gamma"),
            share_of_change(accuracy),
            HARDLY,
            "at_most",
            note=f"mean change {np.abs(change.mean(axis=0)).mean():.3f} over |S|, "
            f"{(means[:, -1] - means[:, 0]).mean():.3f} over Gamma={gamma[0]:g} to {gamma[-1]:g}",
        ),
        st.judge_bound(
            named("B8", f"largest change over {span} at any Gamma"),
            st.bootstrap_interval(change, lambda drawn: float(np.abs(drawn.mean(axis=0)).max())),
            SMALL,
            "at_most",
            note=f"at Gamma={gamma[worst]:g}: from {means[0, worst]:.3f} to {means[-1, worst]:.3f}",
        ),
        st.judge_equal(
            named("B8", f"change over {span} at Gamma={gamma[-1]:g}"),
            change[:, -1],
            0.0,
            SMALL,
            note=f"from {means[0, -1]:.3f} to {means[-1, -1]:.3f}",
        ),
    ]


def share_of_change(accuracy: np.ndarray) -> st.Interval:
    """Mean size of the change from the first to the last |S| over that from the first to the last
    Gamma, of seed means; accuracy: (seed, size, gamma)."""

    def share(drawn: np.ndarray) -> float:
        means = drawn.mean(axis=0)
        by_size = np.abs(means[-1] - means[0]).mean()
        by_gamma = np.abs(means[:, -1] - means[:, 0]).mean()
        return float(by_size / by_gamma) if by_gamma > 0 else np.nan

    return st.bootstrap_interval(accuracy, share)
