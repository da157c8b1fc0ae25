"""Pre-training labels with their gains over re-training, all at one corrected level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from rarefy.measure.statistics import Interval
from rarefy.tools.decision import FEWEST, more_seeds, spelled
from rarefy.tools.granularity.rows import gain, kind
from rarefy.tools.granularity.sets import GIVEN, TARGET


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

    def more_seeds(self, worth: float) -> tuple[int, str]:
        """How many would decide, as a number and in words."""
        plain = self.accuracy.sel(labels=TARGET)
        pairs = {one: (self.accuracy.sel(labels=one) - plain).values for one in self.gains}
        return more_seeds(pairs, worth)
