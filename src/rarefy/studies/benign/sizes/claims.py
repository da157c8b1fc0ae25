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
Fixed before this study first ran."""


def verdicts(study: SizesExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    ordered, found = results.sortby(["size", "gamma"]), []
    for schedule in texts(results, "schedule"):
        here = ordered.sel(schedule=schedule)
        named = Naming(study, scale, "" if schedule == "printed" else f"{schedule}: ")
        if schedule == "printed":
            found.append(_in_gamma(here, named))
        found.append(_in_size(here, named, "B8.2" if schedule == "printed" else "B8"))
    return found


def _in_gamma(here: xr.Dataset, named: Naming) -> Verdict:
    accuracy = 1 - by_seed(here["test_error"].mean("size", skipna=False), "gamma")
    means = st.finite_mean(accuracy)
    return st.judge_trend(
        named("B8.1", "accuracy rises with Gamma, mean over |S|"),
        st.spearman_trend(here["gamma"].values, accuracy, within_rows=True),
        "increasing",
        note=f"from {means[0]:.3f} to {means[-1]:.3f}; training loss at most "
        f"{float(here['train_loss'].max()):.2g}",
    )


def _in_size(here: xr.Dataset, named: Naming, claim: str) -> Verdict:
    accuracy = 1 - by_seed(here["test_error"], "size", "gamma")
    gamma, size, means = here["gamma"].values, here["size"].values, st.finite_mean(accuracy)
    change = means[-1] - means[0]
    worst = int(np.abs(change).argmax())
    return st.judge_bound(
        named(claim, f"change over |S|={size[0]} to {size[-1]} as a share of that over Gamma"),
        share_of_change(accuracy),
        HARDLY,
        "at_most",
        note=f"mean change {np.abs(change).mean():.3f} over |S|, "
        f"{(means[:, -1] - means[:, 0]).mean():.3f} over Gamma={gamma[0]:g} to {gamma[-1]:g}; "
        f"largest at Gamma={gamma[worst]:g}, from {means[0, worst]:.3f} to {means[-1, worst]:.3f}",
    )


def share_of_change(accuracy: np.ndarray) -> st.Interval:
    """Mean size of the change from the first to the last |S| over that from the first to the last
    Gamma, of seed means; accuracy: (seed, size, gamma)."""

    def share(drawn: np.ndarray) -> np.ndarray:
        means = st.finite_mean(drawn, 1)
        by_size = np.abs(means[:, -1] - means[:, 0]).mean(axis=1)
        by_gamma = np.abs(means[:, :, -1] - means[:, :, 0]).mean(axis=1)
        return np.asarray(by_size / np.where(by_gamma > 0, by_gamma, np.nan))

    return st.bootstrap_interval(accuracy, share)
