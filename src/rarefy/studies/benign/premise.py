"""What Theorem 1 of 003 presupposes of a trained network: a small training loss."""

from __future__ import annotations

import dataclasses

import numpy as np

from rarefy.core.contracts import Verdict


def with_premise(verdict: Verdict, loss: np.ndarray, small: float) -> Verdict:
    """Theorem 1 speaks of networks whose training loss is small, ``small_mean_loss`` at most. Where
    it is not, a verdict about the theorem decides nothing; what was measured is still shown."""
    mean = float(np.nanmean(loss)) if np.isfinite(loss).any() else np.nan
    if mean <= small:
        return verdict
    why = f"premise not met: training loss {mean:.2g}, Theorem 1 asks for a small one"
    note = f"{verdict.note}; {why}" if verdict.note else why
    return dataclasses.replace(verdict, outcome="inconclusive", note=note)
