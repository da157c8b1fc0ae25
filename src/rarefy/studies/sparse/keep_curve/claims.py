"""S8: training accuracy rises with the keep ratio, test accuracy is best at an intermediate one.

The best keep is chosen for each seed by the others, and on the other half of the test images, so
that nothing is asked about a choice it made itself: the best of ten equal keeps would beat dense
training by chance alone. The choices of the seeds still have seeds in common: with ten equal keeps
a gain is found in 3 to 6 % of all cases (the more often the more two halves agree), where
independent ones would give 2.5 %.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    judge_difference,
    judge_trend,
    mean_band,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.kit.reading import Naming
from rarefy.studies.sparse.pairs import asked_at, number
from rarefy.studies.sparse.readings import (
    AXES,
    POINTS,
    Paired,
    at_test_noise,
    is_primary,
    readings,
    setting_of,
    without_noise,
)
from rarefy.tools.sparse_experiment import SparseTraining

PRIMARY = {"sparse-mnist": ("S8", "S8.2"), "sparse-cifar10": ("S8.1", "S8.3")}
"""Of training accuracy and of the peak; a claim has three at most, so one set alone has both."""


def verdicts(experiment: SparseTraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for words, part in readings(results, AXES):
        named = Naming(experiment, scale, setting_of(experiment, words, ""))
        noise = float(part["noise"])
        first = is_primary(part) and noise == experiment.noise[0]
        rises, peaks = PRIMARY[experiment.name] if first else ("S8", "S8")
        found.append(_rises(named(rises, "training accuracy rises with keep"), part))
        what = "test accuracy is best at an intermediate keep"
        halves = (without_noise(part, 0), without_noise(part, 1))
        found.append(_peaks(named(peaks, what), without_noise(part), halves))
        if noise > 0 and np.isclose(part["test_noise"].values, noise).any():
            halves = (at_test_noise(part, noise, 0), at_test_noise(part, noise, 1))
            what = "asked with the noise of training, test accuracy is best at an intermediate keep"
            found.append(_peaks(named("S8", what), at_test_noise(part, noise), halves))
    return found


def _rises(identity: Identity, part: xr.Dataset) -> Verdict:
    """Training accuracy over the last epoch, while it ran: with the noise as it was shown, also
    where that was drawn once and can be memorised."""
    last = part["epoch_accuracy"].isel(epoch=-1)
    accuracy = POINTS * last.transpose("seed", "keep").values
    keeps = part["keep"].values.astype(np.float64)
    mean = mean_band(accuracy).mean
    note = ""
    if np.isfinite(mean).any():
        low, high = int(np.argmin(keeps)), int(np.argmax(keeps))
        note = f"{mean[low]:.2f} % at keep {keeps[low]:g}, {mean[high]:.2f} % at keep 1"
    trend = spearman_trend(keeps, accuracy, within_rows=True)
    return judge_trend(identity, trend, "increasing", note=note)


def _peaks(identity: Identity, paired: Paired, halves: tuple[Paired, Paired]) -> Verdict:
    """By more than the dense network; that the smallest keep is worse is told, not judged."""
    chosen, gains, aboves = held_out_best(halves)
    note = (
        f"points over dense ({number(mean_interval(paired.dense[:, 0]).mean)} %), asked "
        f"{asked_at(paired.levels[0])}; keep chosen by the other seeds on the other half of the "
        f"images: {chosen}; over the smallest keep {number(mean_interval(aboves).mean, '+.2f')}"
    )
    return judge_difference(identity, gains, "positive", note=note)


def held_out_best(
    halves: tuple[Paired, Paired],
) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    """The keep between the smallest and 1 that gains most over dense, chosen for each seed by the
    mean of the other seeds on one half of the test images and asked on the other half, both ways.
    Which keeps those were; points above dense and above the smallest keep, (seed,) each, the mean
    of both ways. A seed that is alone chooses for itself."""
    inner = halves[0].thinned[:-1]
    picked: Counter[float] = Counter()
    found = np.full((2, 2, len(halves[0].accuracy)), np.nan)
    for way, (chooser, judge) in enumerate((halves, halves[::-1]) if inner else ()):
        gains = np.stack([chooser.difference(keep)[:, 0] for keep in inner], axis=1)
        known = np.isfinite(gains).any(axis=1)
        smallest = judge.of(judge.thinned[-1])[:, 0]
        for seed in np.flatnonzero(known):
            others = known & (np.arange(len(gains)) != seed)
            score = _mean(gains[others] if others.any() else gains[[seed]])
            if np.isfinite(score).any():
                best = inner[int(np.nanargmax(score))]
                reached = judge.of(best)[seed, 0]
                found[way, 0, seed] = reached - judge.dense[seed, 0]
                found[way, 1, seed] = reached - smallest[seed]
                picked[best] += 1
    listed = sorted(picked.items(), key=lambda item: (-item[1], -item[0]))
    words = ", ".join(f"{keep:g} ({times} times)" for keep, times in listed) or "none"
    return words, *found.mean(axis=0)


def _mean(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over rows, missing values left out; without an interval, which takes ten times as long."""
    there = np.isfinite(rows)
    n = there.sum(axis=0)
    return np.where(n > 0, np.where(there, rows, 0.0).sum(axis=0) / np.maximum(n, 1), np.nan)
