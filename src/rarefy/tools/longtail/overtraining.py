"""Was a training longer than good? A contrastive loss falls to the end whatever becomes of the
features; neighbours of held-out images tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import xarray as xr

from rarefy.measure.statistics import Interval, mean_interval
from rarefy.tools.longtail.readings import FEWEST, PERCENT
from rarefy.train.simclr.method import Method

CHANCE = 0.05
"""Of calling a fall certain that is none, over all looks of a method together."""
WORTH_A_WORD = 0.5
"""Points; with many seeds smaller falls can be certain too, and nobody need act on them."""


@dataclass(frozen=True)
class Course:
    """Accuracy of neighbours on held-out images on the way of one method, per cent."""

    images: str
    rho: float
    method: str
    best_epoch: int
    """The best look in the mean over seeds, of those that the end is certainly below if there are
    any."""
    best: float
    last: float
    fall: Interval
    """From there to the end, seed by seed, its level corrected for the number of looks."""

    @property
    def certain(self) -> bool:
        """Told from luck, although the best of several looks was taken, and worth a word."""
        return _certain(self.fall)

    def described(self) -> dict[str, Any]:
        """For JSON, with names as in the rows of methods."""
        told = {**asdict(self), "fall": self.fall.mean, "n": self.fall.n}
        return {**told, "fall_interval": [self.fall.low, self.fall.high]}

    def words(self) -> str:
        return _words(Method.parse(self.method), self.best_epoch, self.best, self.last)


def overtraining_note(
    method: Method, epochs: Sequence[int], knn: Sequence[float], errors: Sequence[float]
) -> str:
    """Of one training by itself, in words, if it was longer than good: ``knn`` at the looks after
    ``epochs``, and its standard errors over held-out images. Seeds say nothing here, images do:
    only a fall that their number does not explain is told (both looks are at the same images, so
    that taking them for different ones errs on the side of silence)."""
    if len(knn) < 2 or not len(epochs) == len(knn) == len(errors) or not np.isfinite(knn).all():
        return ""
    best = int(np.argmax(knn))
    quantile = NormalDist().inv_cdf(1 - CHANCE / 2 / (len(knn) - 1))
    fall = knn[best] - knn[-1]
    if fall < max(WORTH_A_WORD / PERCENT, quantile * np.hypot(errors[best], errors[-1])):
        return ""
    return _words(method, epochs[best], PERCENT * knn[best], PERCENT * knn[-1])


def _words(method: Method, epoch: int, best: float, last: float) -> str:
    masks = "" if method.masked else ", or masks (branches:0.1),"
    return (
        f"over-trained: held-out kNN accuracy peaked at {best:.1f} % (epoch {epoch}) and ended at "
        f"{last:.1f} %; fewer epochs{masks} may keep more"
    )


def courses(results: xr.Dataset) -> Iterator[Course]:
    """Of every method that was looked at more than once."""
    looks = results["watched_epoch"].values
    if len(looks) < 2:
        return
    level = 1 - CHANCE / (len(looks) - 1)  # (Bonferroni: any look may be the best by luck)
    for rho in results["rho"].values:
        for images in results["images"].values:
            for method in results["algorithm"].values:
                where: dict[str, Any] = {"images": images, "rho": rho, "algorithm": method}
                seen = results["watched_knn"].sel(where).transpose("seed", "watched_epoch").values
                seen = PERCENT * seen[np.isfinite(seen).all(axis=1)]
                if not len(seen):
                    continue
                falls = [mean_interval(now - seen[:, -1], level) for now in seen.T]
                sure = [look for look, fall in enumerate(falls) if _certain(fall)]
                best = max(sure or range(len(looks)), key=lambda look: falls[look].mean)
                yield Course(
                    str(images),
                    float(rho),
                    str(method),
                    int(looks[best]),
                    float(seen[:, best].mean()),
                    float(seen[:, -1].mean()),
                    falls[best],
                )


def _certain(fall: Interval) -> bool:
    return fall.n >= FEWEST and bool(fall.low > 0) and bool(fall.mean >= WORTH_A_WORD)
