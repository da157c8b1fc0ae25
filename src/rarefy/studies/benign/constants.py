"""How Theorem 1 of 003 is read: one set of its free constants, for every study of this laboratory.

A study that reads one of them differently says why beside its own constant. ``benign-tail`` first
read C_2 as 2 and c_3 was 1/4 in ``benign-correlation``: both were brought to the set below later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Interval,
    bootstrap_interval,
    finite_mean,
    mean_interval,
)
from rarefy.studies.benign.setting import ClassNoiseExperiment


@dataclass(frozen=True)
class Constants:
    """The absolute constants of Theorem 1, which the paper leaves open: C_1, C_2, C_3 say where a
    statement applies, c_1, c_2, c_3 what it says there; c_3 in units of the error by chance."""

    features: float
    tail: float
    harmful: float
    c_1: float
    c_2: float
    c_3: float

    def harmful_error(self, classes: int) -> float:
        """The test error from which on overfitting is harmful (statement 3): c_3 (1 - 1/K)."""
        return self.c_3 * (1 - 1 / classes)


READ = Constants(BIG_O, BIG_O, 1.0, OMEGA, OMEGA, OMEGA)
"""As everywhere here: large constants are 4, small ones 1/4. C_3 = 1 leaves a band between benign
and harmful, as in 003 Fig. 2, and is the least at which equal classes can harm each other."""

UNSTOPPED = 0.01
"""The training loss that is small where a study has no stopping loss."""
MOST = 0.5
"""What explains a gain or a fall makes more than half of it."""


def small_loss(study: ClassNoiseExperiment) -> float:
    """Theorem 1's epsilon, for the training loss of one run: the loss at which training stops."""
    return study.stop_loss or UNSTOPPED


def small_mean_loss(study: ClassNoiseExperiment) -> float:
    """The same for means over runs, or over single classes. Training stops by the loss of all
    samples, which leaves a small class above it, and a few runs end by their last step: a constant
    times epsilon is small too."""
    return BIG_O * small_loss(study)


def premise(study: ClassNoiseExperiment, loss: np.ndarray) -> str:
    """Why Theorem 1 says nothing of networks with such training losses; empty where it speaks."""
    mean = float(finite_mean(loss, None))
    if mean <= small_mean_loss(study):
        return ""
    return f"training loss {mean:.2g}, Theorem 1 asks for a small one"


def untrained(study: ClassNoiseExperiment, loss: np.ndarray, where: str = "") -> str:
    """Why Theorem 1 says nothing: most runs have no small training loss."""
    losses = loss[np.isfinite(loss)]
    median = np.median(losses) if losses.size else np.nan
    small = losses.size and (losses <= small_loss(study)).mean() > 0.5
    return "" if small else f"the median training loss {where}is {median:.3g}"


def share_of(part: np.ndarray, whole: np.ndarray) -> Interval:
    """Mean of ``part`` over that of ``whole``, (seed,) both; none if the whole may be nothing."""
    if not mean_interval(whole).low > 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    pairs = np.stack([part, whole], axis=1)
    return bootstrap_interval(
        pairs[np.isfinite(pairs).all(axis=1)],
        lambda pair: np.divide(*np.moveaxis(pair.mean(axis=1), -1, 0)),
    )
