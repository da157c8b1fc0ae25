"""Dense and pruned networks beside each other, as rows for a person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.statistics import mean_interval
from rarefy.tools.judged_classes import Judged, balanced_per_seed, judged

MEASURED = (
    *("weights_kept", "train_accuracy", "test_accuracy", "test_accuracy_interval"),
    *("balanced_accuracy", "balanced_accuracy_interval"),
)
SUMMED_UP = ("macro_f1", "worst_class", "worst_recall", "head", "middle", "tail")
"""Of a report per class, what a row has."""


def comparison(results: xr.Dataset) -> Iterator[dict[str, Any]]:
    """One row per keep ratio and noise level of what ``rarefy train`` stores: shares in per cent,
    means over seeds, and the difference of balanced accuracy from dense, seed by seed, with its
    95 % interval."""
    reports = {one[:3]: one for one in judged(results)}
    plain = results.isel(update=0, noise_resampling=0)
    for noise in plain["noise"].values.tolist():
        for place, level in enumerate(plain["test_noise"].values.tolist()):
            here = plain.sel(noise=noise).isel(test_noise=place)
            dense = reports.get((noise, level, 1.0))
            for keep in sorted(here["keep"].values.tolist(), reverse=True):
                at, found = here.sel(keep=keep), reports.get((noise, level, keep))
                stopped = int((at["nonfinite_step"] >= 0).sum())
                if found is None and not stopped:  # not one seed is through
                    continue
                yield {
                    "noise": noise,
                    "test_noise": level,
                    "keep": keep,
                    "stopped": stopped,
                    **_measured(at, found),
                    **_against(dense, found, keep),
                }


def _measured(at: xr.Dataset, found: Judged | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys((*MEASURED, *SUMMED_UP)) | {"n": 0}
    test = mean_interval(100 * at["test_accuracy"].values)
    balanced = mean_interval(balanced_per_seed(found.confusion))
    told = found.report.summary.described()
    values = (
        _mean(at["kept"].values),
        100 * _mean(at["epoch_accuracy"].isel(epoch=-1).values),
        test.mean,
        _ends(test.low, test.high),
        balanced.mean,
        _ends(balanced.low, balanced.high),
        *(told[name] for name in SUMMED_UP),
    )
    return dict(zip((*MEASURED, *SUMMED_UP), values, strict=True)) | {"n": test.n}


def _against(dense: Judged | None, found: Judged | None, keep: float) -> dict[str, Any]:
    """From the dense network, by balanced accuracy."""
    none = {"difference": None, "difference_interval": None, "pairs": 0}
    if dense is None or found is None or keep == 1:
        return none
    gain = mean_interval(balanced_per_seed(found.confusion) - balanced_per_seed(dense.confusion))
    ends = _ends(gain.low, gain.high)
    return (
        {"difference": gain.mean, "difference_interval": ends, "pairs": gain.n} if gain.n else none
    )


def _mean(values: NDArray[np.float64]) -> float:
    found = values[np.isfinite(values)]
    return float(found.mean()) if found.size else float("nan")


def _ends(low: float, high: float) -> list[float] | None:
    return [low, high] if np.isfinite([low, high]).all() else None
