"""``method="auto"``: SimCLR or two branches, by the held-out training images of one seed.

Masks lose in short trainings and gain in long ones (``docs/longtail-table.md``), so that a race of
shortened trainings, as ``rarefy train --keep auto`` runs one, would choose wrongly: both methods
are trained to their full length with the first seed, and each is asked by its best network. What is
compared is what will be judged, the first protocol: nearest neighbours and linear probes disagree
about masks. SimCLR, the simpler and cheaper, is used unless two branches are better by more than a
standard error (Breiman et al. 1984); ``docs/longtail.md`` has the regret of this and other rules.
Test images are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import xarray as xr

from rarefy.measure.paired_answers import PairedDifference, paired_difference
from rarefy.tools.longtail.pretrain_run import PretrainImages
from rarefy.tools.longtail.readings import LONG_TAIL, PERCENT

AUTO = "auto"
PLAIN, MASKED = RACED = ("simclr", "branches:0.1")
PROBED = ("linear", "long-tail")
"""Protocols by which held-out images are classified; where another comes first, neighbours are."""
BESIDE = "pixels"
"""What needs no training, beside the chosen one."""


@dataclass(frozen=True)
class MethodRace:
    """``scores``: balanced accuracy on held-out images in per cent by method, NaN where a training
    came to no end; ``gain``: of two branches over SimCLR, image by image."""

    scores: dict[str, float]
    gain: PairedDifference
    protocol: str

    @property
    def chosen(self) -> str:
        if np.isnan(self.gain.mean):
            return max(RACED, key=lambda name: np.isfinite(self.scores[name]))
        return MASKED if self.gain.mean > self.gain.error else PLAIN

    @property
    def sentence(self) -> str:
        told = ", ".join(
            f"{name} {score:.1f} %" if np.isfinite(score) else f"{name} came to no end"
            for name, score in self.scores.items()
        )
        words = (
            f"{self.chosen} is chosen: on {self.gain.samples} held-out training images {told} of "
            f"balanced accuracy ({self.protocol}, one whole training each)"
        )
        if np.isnan(self.gain.mean):
            return words
        if self.gain.mean <= 0:
            return f"{words}: no gain by {MASKED}"
        more = "more" if self.chosen == MASKED else "no more"
        return (
            f"{words}: a gain of {PERCENT * self.gain.mean:.1f} points by {MASKED}, {more} than a "
            f"standard error ({PERCENT * self.gain.error:.1f}, image by image)"
        )


def raced(experiment: PretrainImages) -> PretrainImages:
    """Both methods, the first seed, of several long tails the longest, without the control."""
    longest = (max(experiment.rho),)
    return replace(experiment, algorithm=RACED, seeds=1, images=(LONG_TAIL,), rho=longest)


def outcome(results: xr.Dataset, protocol: str) -> MethodRace:
    """Of a race that is through."""
    here = results.isel(images=0, rho=0, seed=0)
    labels = here["held_out_label"].max("algorithm").values
    there = np.isfinite(labels)
    plain, masked = (here["held_out_right"].sel(algorithm=name).values[there] for name in RACED)
    scores = {
        name: PERCENT * paired_difference(right, 0 * right, labels[there]).mean
        for name, right in zip(RACED, (plain, masked), strict=True)
    }
    judge = protocol if protocol in PROBED else "nearest neighbours"
    return MethodRace(scores, paired_difference(masked, plain, labels[there]), judge)
