"""Pre-training labels with their gains over re-training, all at one corrected level."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr
from scipy.stats import norm

from rarefy.measure.statistics import Interval
from rarefy.tools.granularity.rows import gain, kind
from rarefy.tools.granularity.sets import GIVEN, TARGET

FEWEST = 5
"""Seeds from which an interval decides."""
CHANCE = 0.8
"""Of further seeds that decide."""


@dataclass(frozen=True)
class Judged:
    """Candidates with their gains, all at one corrected level."""

    accuracy: xr.DataArray
    gains: Mapping[str, Interval]
    classes: Mapping[str, int]
    level: float

    @property
    def best(self) -> str:
        """Of those that gain for sure, or else of all."""
        of = self.gaining or list(self.gains)
        return max(of, key=lambda one: self.gains[one].mean)

    @property
    def gaining(self) -> list[str]:
        return [one for one, it in self.gains.items() if it.n >= FEWEST and it.low > 0]

    def coarsest(self) -> str:
        """Of those that gain, not worse than the best."""
        allowed = self.gains[self.best].mean / 2
        kept = [
            one
            for one in self.gaining
            if gain(self.accuracy, one, self.best, self.level).low >= -allowed
        ]
        return min(kept, key=lambda one: (self.classes[one], -self.gains[one].mean))

    def named(self, labels: str) -> str:
        """``class (10 classes)``"""
        made = "" if kind(labels) == GIVEN else "made labels, "
        return f"{labels} ({made}{self.classes[labels]:,} classes)"

    def told(self, labels: str, over: str = "") -> str:
        return f"{self.named(labels)}: {spelled(self.gains[labels], over)}"

    def seeds_needed(self, worth: float) -> float:
        """In all, to decide one way or the other; inf where no number would."""
        width = norm.ppf(1 - (1 - self.level) / 2) + norm.ppf(CHANCE)
        spread = {one: _deviation(self.accuracy, one) for one in self.gains}
        one_gains = [
            (width * spread[one] / it.mean) ** 2 for one, it in self.gains.items() if it.mean > 0
        ]
        none_helps = [
            (width * spread[one] / (worth - it.mean)) ** 2 if it.mean < worth else math.inf
            for one, it in self.gains.items()
        ]
        return min([*one_gains, max(none_helps)])


def spelled(interval: Interval, over: str = "") -> str:
    """``+0.81 points over ... [+0.20, +1.42], n = 5``"""
    ends = f" [{interval.low:+.2f}, {interval.high:+.2f}]" if interval.n > 1 else ""
    return f"{interval.mean:+.2f} points{over}{ends}, n = {interval.n}"


def _deviation(accuracy: xr.DataArray, labels: str) -> float:
    """Of the gains, seed by seed."""
    return float((accuracy.sel(labels=labels) - accuracy.sel(labels=TARGET)).std(ddof=1))
