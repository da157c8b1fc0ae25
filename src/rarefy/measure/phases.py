"""Runs before and after an event of their own, such as the meeting of two levels of frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Phase:
    """A run's time up to its meeting and the equally long time after it, one value per run.

    ``end``: the meeting, or the last step watched, NaN for lost runs; ``later``: end of the second
    phase, NaN also for runs that did not meet in time.
    """

    end: np.ndarray
    later: np.ndarray

    @classmethod
    def of(cls, met: np.ndarray, horizon: int) -> Phase:
        end = np.where(met < 0, horizon, met).astype(float)
        later = np.where((met < 0) | (met >= horizon), np.nan, np.minimum(2 * end, horizon))
        return cls(end, later)

    @property
    def who_met(self) -> str:
        """What a statement about the time after the meeting rests on, when it is not every run."""
        met, runs = (int(np.isfinite(times).sum()) for times in (self.later, self.end))
        return "" if met == runs else f"; only {met} of {runs} runs met"


def growth(
    read: np.ndarray, log_strength: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Growth per step of ``log_strength``, (seed, read), between two times of each run: (seed,)."""
    at = [
        (np.interp(a, read, row), np.interp(b, read, row)) if np.isfinite(b) else (np.nan, np.nan)
        for a, b, row in zip(start, end, log_strength, strict=True)
    ]
    first, last = np.array(at, dtype=float).reshape(-1, 2).T
    # a second phase of no length, or a run that is not finite, has no growth
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(end > start, (last - first) / (end - start), np.nan)
