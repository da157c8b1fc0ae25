"""A run of ``contrast-cascade`` before and after its rarest level meets the next, and what pruning
at random would do there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from math import comb

import numpy as np
import torch

from rarefy.pruning.masks import kept_count
from rarefy.studies.contrastive.cascade.experiment import CascadeExperiment


@dataclass(frozen=True)
class Phase:
    """A run's time up to its meeting and the equally long time after it, one value a run.

    ``end``: the meeting, or the last step watched; ``later``: end of the second phase, NaN for
    runs that did not meet in time.
    """

    end: np.ndarray
    later: np.ndarray

    @classmethod
    def of(cls, met: np.ndarray, horizon: int) -> Phase:
        end = np.where(met < 0, horizon, met).astype(float)
        later = np.where((met < 0) | (met >= horizon), np.nan, np.minimum(2 * end, horizon))
        return cls(end, later)

    @property
    def any_after(self) -> bool:
        """Some run has met in time; otherwise nothing can be said of the time after."""
        return bool(np.isfinite(self.later).any())

    @property
    def who_met(self) -> str:
        """What a statement about the time after the meeting rests on, when it is not every run."""
        met = int(np.isfinite(self.later).sum())
        return "" if met == self.later.size else f"; only {met} of {self.later.size} runs met"


def growth(
    read: np.ndarray, log_strength: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Growth a step of ``log_strength``, (seed, read), between two times of each run: (seed,)."""
    at = [
        (np.interp(a, read, row), np.interp(b, read, row)) if np.isfinite(b) else (np.nan, np.nan)
        for a, b, row in zip(start, end, log_strength, strict=True)
    ]
    first, last = np.array(at, dtype=float).reshape(-1, 2).T
    # a second phase of no length, or a run that is not finite, has no growth
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(end > start, (last - first) / (end - start), np.nan)


def reads_between(read: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Which reads lie in [start, end) of each run: (seed, read)."""
    inside = (read >= start[:, None]) & (read < end[:, None])
    # a phase shorter than the distance of two reads
    return np.asarray(inside | ((read == start[:, None]) & np.isfinite(end)[:, None]))


def mean_between(
    read: np.ndarray, share: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Mean over the reads in [start, end) of ``share``, (seed, read, level): (seed, level)."""
    inside = reads_between(read, start, end)
    count = inside.sum(axis=1)
    total = np.where(inside[:, :, None], share, 0.0).sum(axis=1)
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)


@cache
def random_minimum(rarest: int, next_: int, others: int, pruned: int, reads: int) -> float:
    """Expected smaller share of two levels when ``pruned`` neurons are drawn at random.

    ``rarest``, ``next_``, ``others``: neurons of the two levels and the rest; the draw is made
    anew at each of ``reads`` reads, and each level's share is the mean over them. Exact: the
    counts of one read are hypergeometric, their sum over the reads is a convolution.
    """
    size = reads * pruned + 1
    once = np.zeros((size, size))
    for a, b in product(range(min(rarest, pruned) + 1), range(min(next_, pruned) + 1)):
        if a + b <= pruned:
            once[a, b] = comb(rarest, a) * comb(next_, b) * comb(others, pruned - a - b)
    once /= comb(rarest + next_ + others, pruned)
    law = np.fft.irfft2(np.fft.rfft2(once) ** reads, s=once.shape)
    count = np.arange(size)
    return float((law * np.minimum(count[:, None], count)).sum() / (reads * pruned))


def neurons_of_levels(study: CascadeExperiment) -> list[int]:
    """Neurons of each level when every feature has as many, as the theorem's state has it."""
    level = np.arange(study.neurons) % study.d // study.per_level
    return [int(count) for count in np.bincount(level, minlength=len(study.levels))]


def minimum_at_random(study: CascadeExperiment, alpha: float, reads: np.ndarray) -> np.ndarray:
    """``random_minimum`` for runs with that many ``reads`` after the meeting, NaN without: (seed,).

    Neurons are taken to be spread over the features evenly, as the theorem's state has them.
    """
    *_, next_, rarest = neurons_of_levels(study)
    pruned = study.neurons - int(kept_count(torch.tensor([alpha]), study.neurons))
    if pruned == 0:
        return np.full(len(reads), np.nan)
    others = study.neurons - rarest - next_
    found = [random_minimum(rarest, next_, others, pruned, int(n)) if n else np.nan for n in reads]
    return np.array(found, dtype=float)
