"""Tables of the comparison: what was chosen and what it gave, and how far the theorem is away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rarefy.core.picture import Table
from rarefy.measure.estimates import mean_interval
from rarefy.studies.topk.baselines.choice import KNOBS, Choice, choices
from rarefy.studies.topk.baselines.claims import failing, failing_loss
from rarefy.studies.topk.baselines.experiment import BaselinesExperiment
from rarefy.theory import topk

if TYPE_CHECKING:
    import xarray as xr


def baseline_tables(study: BaselinesExperiment, results: xr.Dataset) -> list[Table]:
    chosen = choices(study, results)
    sigma = results["sigma"].values.astype(np.float64)
    return [_chosen(study, chosen, sigma), _premise(study, chosen["dense"], sigma)]


def _chosen(study: BaselinesExperiment, chosen: dict[str, Choice], sigma: np.ndarray) -> Table:
    rows = []
    for place in np.argsort(sigma):
        for choice in chosen.values():
            rows.append(
                (
                    f"{sigma[place]:g}",
                    choice.name,
                    _knobs(choice, place),
                    _mean(choice.validation[:, place]),
                    _mean(choice.loss[:, place]),
                    _mean(choice.error[:, place]),
                )
            )
    caption = (
        f"The knob with the lowest validation loss, chosen for each of {study.seeds} seeds by "
        "itself: the median, and the range where seeds differ. A star marks a median at an end of "
        "the list, beyond which something better may lie. Means over seeds."
    )
    columns = ("sigma_p", "method", "chosen knob", "validation loss", "test loss", "test error")
    return Table(
        "chosen", "What the validation set chose, and what it gave", caption, columns, rows
    )


def _knobs(choice: Choice, place: int) -> str:
    if choice.method not in KNOBS:
        return "none"
    values = np.sort(choice.knob[:, place])
    middle = values[len(values) // 2]
    star = "*" if middle in (min(choice.candidates), max(choice.candidates)) else ""
    range_ = f" ({values[0]:g} to {values[-1]:g})" if values[0] < values[-1] else ""
    return f"{KNOBS[choice.method]} {middle:g}{star}{range_}"


def _premise(study: BaselinesExperiment, dense: Choice, sigma: np.ndarray) -> Table:
    fails = failing(dense, study.classes)
    limit = float(topk.noise_threshold_order(study.samples))
    rows = []
    for place in np.argsort(sigma):
        value = float(sigma[place])
        ratio = float(topk.snr(study.mu, value, study.d))
        low = topk.window_lower_order(study.d, study.mu, value, power=2)
        high = topk.window_upper_order(study.classes, study.samples, study.mu, value)
        rows.append(
            (
                f"{value:g}",
                f"{ratio:.3g}",
                f"{ratio / limit:.3g} times",
                f"{float(low):.3g}",
                f"{float(high):.3g}",
                _mean(dense.loss[:, place]),
                "yes" if fails[place] else "no",
            )
        )
    columns = (
        "sigma_p",
        "SNR",
        "above 1/n",
        "K from (order)",
        "K to (order)",
        "dense test loss",
        "judged",
    )
    caption = (
        "002 Theorem 4.4 speaks of SNR = mu/(sigma_p sqrt(d)) up to the order of 1/n = "
        f"{limit:g} and of K between two orders, here with all hidden constants 1 and chance "
        "delta = 0.1 (where the first is above the second, no K is inside). Verdicts are about "
        "the noise levels at which dense training fails: its mean validation loss is at least "
        f"{failing_loss(study.classes):.3g} (Fig. 2 draws the line at 2 for T = 10)."
    )
    return Table("premise", "How far the setting is from the theorem's", caption, columns, rows)


def _mean(samples: np.ndarray) -> str:
    found = mean_interval(samples)
    return f"{found.mean:.3g}" if np.isfinite(found.mean) else "undefined"
