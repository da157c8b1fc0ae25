"""Is a training longer than good? A contrastive loss falls to the end whatever becomes of the
features; neighbours of held-out images tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from rarefy.measure.paired_answers import paired_difference
from rarefy.measure.statistics import Interval, mean_interval
from rarefy.tools.longtail.readings import FEWEST, PERCENT
from rarefy.train.simclr.method import Method
from rarefy.train.simclr.pretraining import PretrainingHistory

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


def certainly_fallen(
    best: Sequence[float], now: Sequence[float], labels: Sequence[int], looks: int
) -> bool:
    """Whether features are certainly worse now than at the best look before, by held-out images
    that were right (1) or wrong (0) at either: seeds say nothing of one training, images do. Each
    of its ``looks`` may be the best by luck and each may seem to fall, so that the chance of
    calling any fall certain that is none, ``CHANCE``, is shared by all pairs of looks."""
    found = paired_difference(best, now, labels)
    pairs = looks * (looks - 1) / 2
    return found.mean >= WORTH_A_WORD / PERCENT and found.above_zero(CHANCE / pairs)


def overtraining_note(method: Method, epochs: Sequence[int], seen: PretrainingHistory) -> str:
    """Of one training by itself, in words, if at its last look features had certainly fallen."""
    if seen.watched.get("fallen", [])[-1:] != [1.0]:
        return ""
    knn = PERCENT * np.array(seen.watched["knn"])
    best = int(np.flatnonzero(knn == knn.max())[-1])
    if seen.stopped_epoch:
        return (
            f"stopped after epoch {seen.stopped_epoch}: held-out kNN accuracy fell for certain, "
            f"from {knn[best]:.1f} % (epoch {epochs[best]}, which is kept) to {knn[-1]:.1f} %"
        )
    masks = "" if method.masked else ", or masks (branches:0.1),"
    return (
        f"over-trained: held-out kNN accuracy peaked at {knn[best]:.1f} % (epoch {epochs[best]}) "
        f"and ended at {knn[-1]:.1f} %; fewer epochs{masks} may keep more"
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
