"""What Theorem 1 of 003 presupposes of a trained network: a small training loss."""

from __future__ import annotations

import dataclasses

import numpy as np

from rarefy.core.contracts import Verdict

NOT_SMALL = 0.1
"""A training loss above this is not the "training loss below epsilon" of Theorem 1: ten times the
loss at which trained runs stop, a sixteenth of log K for five classes, where it begins."""


def with_premise(verdict: Verdict, loss: np.ndarray) -> Verdict:
    """Theorem 1 speaks of networks whose training loss is small. Where it is not, a verdict about
    the theorem decides nothing; what was measured is still shown."""
    mean = float(np.nanmean(loss)) if np.isfinite(loss).any() else np.nan
    if mean <= NOT_SMALL:
        return verdict
    why = f"premise not met: training loss {mean:.2g}, Theorem 1 asks for a small one"
    note = f"{verdict.note}; {why}" if verdict.note else why
    return dataclasses.replace(verdict, outcome="inconclusive", note=note)
