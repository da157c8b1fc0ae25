"""Dense and pruned networks beside each other, as rows for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from rarefy.measure.statistics import mean_interval

FEWEST = 3
"""Seeds from which an interval is believed: of two, counts of right answers are often equal."""


def comparison(results: xr.Dataset) -> Iterator[dict[str, Any]]:
    """One row per keep ratio and noise level of what ``rarefy train`` stores: accuracies in per
    cent, means over seeds, and the difference from dense, seed by seed, with its 95 % interval."""
    plain = results.isel(update=0, noise_resampling=0)
    for noise in plain["noise"].values:
        for place, level in enumerate(plain["test_noise"].values):
            here = plain.sel(noise=noise).isel(test_noise=place)
            dense = here["test_accuracy"].sel(keep=1.0)
            for keep in sorted(here["keep"].values, reverse=True):
                at = here.sel(keep=keep)
                test = mean_interval(100 * at["test_accuracy"].values)
                stopped = int((at["nonfinite_step"] >= 0).sum())
                if not test.n and not stopped:  # not one seed is through
                    continue
                gain = mean_interval(100 * (at["test_accuracy"] - dense).values)
                paired = keep < 1 and gain.n > 0
                yield {
                    "noise": float(noise),
                    "test_noise": float(level),
                    "keep": float(keep),
                    "weights_kept": _mean(at["kept"]) if test.n else None,
                    "train_accuracy": _train(at) if test.n else None,
                    "stopped": stopped,
                    "test_accuracy": test.mean if test.n else None,
                    "test_accuracy_interval": _ends(test.low, test.high),
                    "difference": gain.mean if paired else None,
                    "difference_interval": _ends(gain.low, gain.high) if paired else None,
                    "n": test.n,
                    "pairs": gain.n if keep < 1 else 0,
                }


def in_words(row: dict[str, Any]) -> str:
    """What the difference means: told from luck or not."""
    if row["stopped"]:
        return f"{row['stopped']} stopped: not finite"
    if row["difference"] is None:
        return ""
    if row["pairs"] < FEWEST:
        return f"too few seeds to tell: {FEWEST} or more"
    low, high = row["difference_interval"]
    if low == high:
        return "the same in every seed"
    if low > 0:
        return "better than dense"
    if high < 0:
        return "worse than dense"
    return "not told apart from dense"


def _train(at: xr.Dataset) -> float:
    """Per cent, over the last epoch."""
    return 100 * _mean(at["epoch_accuracy"].isel(epoch=-1))


def _mean(values: xr.DataArray) -> float:
    found = values.values[np.isfinite(values.values)]
    return float(found.mean()) if found.size else float("nan")


def _ends(low: float, high: float) -> list[float] | None:
    return [low, high] if np.isfinite([low, high]).all() else None
