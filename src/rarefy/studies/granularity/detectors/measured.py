"""Numbers of ``granularity-detectors`` as its verdicts, tables and pictures take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from rarefy.measure.estimates import finite_mean
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.theory import STOP
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.trial import LABELS

OWN = ("common", "subclass")
"""The two kinds of features an output should answer to."""
SMALL_LOSS = 0.05
"""Training loss from which on the late law can be read: residuals are then near exp(-score)."""
Cases = Mapping[str, np.ndarray]
"""Samples, (seed,), of each case; or (seed, 2), of which the ratio of means is meant."""


@dataclass(frozen=True)
class Measured:
    """The results of one variation. Arrays are (seed, ...)."""

    experiment: DetectorsExperiment
    results: xr.Dataset
    variation: str = AS_CHOSEN

    @cached_property
    def subclasses(self) -> list[int]:
        return [int(each) for each in self.results["subclasses"].values]

    @cached_property
    def _values(self) -> dict[str, np.ndarray]:
        """All outputs, (labels, subclasses, seed, ...): selecting in a dataset takes long."""
        here = self.results.sel(variation=self.variation, labels=list(LABELS))
        here = here.transpose("labels", "subclasses", "seed", ...)
        return {str(name): np.asarray(one.values, dtype=float) for name, one in here.items()}

    def of(self, name: str, labels: str, k: int) -> np.ndarray:
        """One output, (seed, read) or (seed,)."""
        return self._values[name][LABELS.index(labels), self.subclasses.index(k)]

    def at(self, read: int, name: str, labels: str, k: int) -> np.ndarray:
        """(seed,), after so many updates."""
        place = list(self.experiment.reads).index(read)
        return np.asarray(self.of(name, labels, k)[:, place])

    def end(self, name: str, labels: str, k: int) -> np.ndarray:
        return self.at(self.experiment.steps, name, labels, k)

    def at_stop(self, name: str, labels: str, k: int) -> np.ndarray:
        """(seed,), at the first read after phase 1; NaN where it does not end."""
        stop = self.stop(labels, k)
        values = self.of(name, labels, k)[:, stop]
        return values if stop >= 0 else np.full_like(values, np.nan)

    def share(self, members: str, kind: str, labels: str, k: int) -> np.ndarray:
        """The part of the response to a kind of feature that a set carries, (seed, read)."""
        part = self.of(f"{kind}_by_{members}", labels, k)
        whole = self.of(f"{kind}_response", labels, k)
        return part / np.where(whole > 0, whole, np.nan)

    def growth_ratio(self, read: int, labels: str, k: int) -> np.ndarray:
        """Growth of common over that of subclass detectors, (seed,)."""
        common, own = (self.at(read, f"{kind}_growth", labels, k) for kind in OWN)
        return common / np.where(own != 0, own, np.nan)

    def score(self, labels: str, k: int) -> np.ndarray:
        """Of a sample's own output: s* patches of both kinds, (seed, read)."""
        both = [self.of(f"{kind}_response", labels, k) for kind in OWN]
        return np.asarray(self.experiment.feature_patches * np.sum(both, axis=0))

    def stop(self, labels: str, k: int) -> int:
        """Place of the first read at which the mean score of a sample's own output has reached B =
        log(3/2), where the theorem about fine labels stops (Def. G.2); -1: at none of them."""
        reached = np.flatnonzero(finite_mean(self.score(labels, k)) >= STOP)
        return int(reached[0]) if len(reached) else -1

    def before_stop(self, labels: str, k: int) -> int:
        """Number of updates at the last read before that: 0 where none is in between."""
        stop = self.stop(labels, k)
        return self.experiment.reads[stop - 1 if stop > 0 else stop]

    def stop_time(self, labels: str, k: int) -> np.ndarray:
        """Updates until the score reaches B, straight lines between reads, (seed,); NaN: never."""
        reads, found = np.array(self.experiment.reads, dtype=float), []
        for score in self.score(labels, k):
            reached = np.flatnonzero(score >= STOP)
            if not len(reached):
                found.append(np.nan)
                continue
            now, last = reached[0], max(reached[0] - 1, 0)
            part = (STOP - score[last]) / (score[now] - score[last]) if now > last else 0.0
            found.append(reads[last] + part * (reads[now] - reads[last]))
        return np.array(found)

    def response_ratio(self, read: int, labels: str, k: int) -> np.ndarray:
        """Answers to common and to subclass features, (seed, 2): their ratio of means is meant."""
        both = [self.at(read, f"{kind}_response", labels, k) for kind in OWN]
        return np.stack(both, axis=1)

    def late_places(self) -> np.ndarray:
        """Places of the reads from which on the coarse loss is small for every k."""
        loss = np.array([finite_mean(self.of("loss", "coarse", k)) for k in self.subclasses])
        large = np.flatnonzero(~np.all(loss <= SMALL_LOSS, axis=0))  # the first read has no loss
        return np.arange(large[-1] + 1, loss.shape[1])

    def cases(self, make: Callable[[int], np.ndarray]) -> Cases:
        """Samples for every number of subclasses."""
        return {f"k={k}": make(k) for k in self.subclasses}
