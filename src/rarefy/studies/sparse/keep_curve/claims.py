"""S8: training accuracy rises with the keep ratio, test accuracy is best at an intermediate one.

The best keep is chosen for each seed by the others, and on the other half of the test images, so
that nothing is asked about a choice it made itself: the best of ten equal keeps would beat dense
training by chance alone. The choices of the seeds still have seeds in common: with ten equal keeps
a gain is found in 3 to 6 % of all cases (the more often the more two halves agree), where
independent ones would give 2.5 %.
"""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    Identity,
    Interval,
    judge_trend,
    mean_band,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.kit.premise import noted
from rarefy.studies.kit.reading import Naming
from rarefy.studies.sparse.advice import advice_verdicts
from rarefy.studies.sparse.pairs import FEWEST, asked_at, cautious, number
from rarefy.studies.sparse.readings import (
    AXES,
    POINTS,
    Paired,
    at_test_noise,
    readings,
    setting_of,
    without_noise,
)
from rarefy.tools.sparse_experiment import SparseTraining

MARGIN = 0.1
"""Points: the least gain that such a figure can show, 10 of 10,000 test images; one that is
certainly smaller is none. Fixed before looking."""


def verdicts(experiment: SparseTraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for words, part in readings(results, AXES):
        named = Naming(experiment, scale, setting_of(experiment, words, ""))
        found.append(_rises(named("S8", "training accuracy rises with keep"), part))
        what = "test accuracy is best at an intermediate keep"
        halves = (without_noise(part, 0), without_noise(part, 1))
        found.append(_peaks(named("S8", what), without_noise(part), halves))
        noise = float(part["noise"])
        if noise > 0 and np.isclose(part["test_noise"].values, noise).any():
            halves = (at_test_noise(part, noise, 0), at_test_noise(part, noise, 1))
            what = "the same, asked with the noise of training"
            found.append(_peaks(named("S8", what), at_test_noise(part, noise), halves))
    return found + advice_verdicts(experiment, results, scale, with_noise=False)


def _rises(identity: Identity, part: xr.Dataset) -> Verdict:
    """Training accuracy over the last epoch, while it ran: with the noise as it was shown, also
    where that was drawn once and can be memorised."""
    last = part["epoch_accuracy"].isel(epoch=-1)
    accuracy = POINTS * last.transpose("seed", "keep").values
    keeps = part["keep"].values.astype(np.float64)
    mean = mean_band(accuracy).mean
    note = ""
    if np.isfinite(mean).any():
        best = int(np.nanargmax(mean))
        note = f"largest mean {mean[best]:.2f} % at keep {keeps[best]:g}"
    trend = spearman_trend(keeps, accuracy, within_rows=True)
    found = judge_trend(identity, trend, "increasing", note=note)
    if trend.n == 1:
        found = dataclasses.replace(found, outcome="inconclusive")
        return noted(found, "one seed says nothing of others")
    return found


def _peaks(identity: Identity, paired: Paired, halves: tuple[Paired, Paired]) -> Verdict:
    inner, dense = paired.thinned[:-1], paired.dense[:, 0]
    chosen, gains, aboves = held_out_best(halves)
    # the spread of any keep's difference: that of the chosen one alone is tiny by chance at times
    alike = [paired.difference(keep)[:, 0] for keep in paired.thinned]
    pooled_over = np.stack(alike, axis=1) if alike else gains[:, None]
    gain, above = cautious(gains, pooled_over), cautious(aboves, aboves[:, None])
    outcome, notes = _peak_outcome(gain, above)
    if not inner:
        notes = ["the grid has no keep between its smallest and 1"]
    elif gain.n == 0:
        notes = ["no seed has both the dense and a pruned network"]
    elif gain.n == 1:
        notes = ["one seed: its gain is that of its own choice and has no interval"]
    elif gain.n < FEWEST:
        notes = [f"fewer than {FEWEST} seeds have no interval"]
    if inner and gain.n:
        by = "by itself" if gain.n == 1 else "by the other seeds on the other half of the images"
        notes.append(f"asked {asked_at(paired.levels[0])}; keep chosen {by}: {chosen}")
        notes.append("for these test images: luck of the dense network on them is in no interval")
        notes.append(f"against the smallest keep {_with_ends(above)} points")
    return Verdict(
        *identity,
        predicted="above dense and above the smallest keep",
        measured=f"dense {number(mean_interval(dense).mean)} %, {_best(paired)}, "
        f"gain over dense {_with_ends(gain)} points",
        interval=(gain.low, gain.high) if gain.n >= FEWEST else None,
        n=gain.n,
        tolerance=f"a gain certainly below {MARGIN:g} points is none",
        outcome=outcome,
        note="; ".join(notes),
    )


def _peak_outcome(gain: Interval, above: Interval) -> tuple[str, list[str]]:
    """Both differences must be positive. A gain that is certainly positive holds however small."""
    if gain.low > 0 and above.low > 0:
        small = f"less than the {MARGIN:g} points that such a figure can show"
        return "holds", [small] if gain.high < MARGIN else []
    if above.high < 0:  # False for NaN ends
        return "fails", ["the smallest keep is better than every one between"]
    if gain.high < MARGIN:
        return "fails", []
    return "inconclusive", []


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


def _best(paired: Paired) -> str:
    """The keep below 1 with the largest mean: for people, chosen by the seeds it is the mean of."""
    means = {keep: mean_interval(paired.of(keep)[:, 0]).mean for keep in paired.thinned}
    known = {keep: mean for keep, mean in means.items() if np.isfinite(mean)}
    if not known:
        return "no pruned network"
    best = max(known, key=lambda keep: known[keep])
    return f"best below 1: keep {best:g} with {known[best]:.2f} %"


def _with_ends(mean: Interval) -> str:
    if not np.isfinite(mean.mean):
        return "undefined"
    ends = f" [{mean.low:+.2f}, {mean.high:+.2f}]" if np.isfinite(mean.low) else ""
    return f"{mean.mean:+.2f}{ends}"
