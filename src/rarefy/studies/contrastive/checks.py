"""Checks of parameters that several studies have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from rarefy.core.errors import bad_value
from rarefy.train.neuron_pruning import check_alpha


def check_reads(reads: Sequence[int], steps: int) -> None:
    """Steps at which something is read: records come in order of time."""
    rising = all(a < b for a, b in pairwise(reads))
    if not reads or not rising or reads[0] < 0 or reads[-1] > steps:
        raise bad_value("reads", reads, f"rising steps between 0 and steps={steps}")


def check_alphas(alphas: Sequence[float], neurons: int) -> None:
    """Shares of pruned neurons, with the unpruned run that the others are compared with."""
    for value in alphas:
        check_alpha(value, neurons)
    if 0.0 not in alphas or len(alphas) < 2:
        raise bad_value("alpha", alphas, "needs 0 (not pruned) and a value above it")


def check_starts(starts: Sequence[int], steps: int) -> None:
    for first in starts:
        if not 0 <= first < steps:
            raise bad_value("start", first, f"pruning must start at a step in 0..{steps - 1}")


def check_choices(name: str, chosen: Sequence[str], allowed: Sequence[str]) -> None:
    for choice in chosen:
        if choice not in allowed:
            raise bad_value(name, choice, f"must be one of {', '.join(allowed)}")
