"""Where an outcome turns over, by bisection of all rows of a phase diagram at once.

A full grid looks everywhere; a boundary needs only to be closed in. Every row halves its bracket in
step with the others, so that one batch of runs serves all rows, and log2 of a grid's points are
enough. Bisection presumes that the outcome turns once: audits, runs away from the boundary that had
no part in finding it, say whether it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value

Decide = Callable[[Tensor], Tensor]
"""Places, (row,), to whether the outcome is there, (row,), bool."""


@dataclass(frozen=True)
class Boundary:
    """Of each row, (row,): ``place``, the middle of the last bracket, NaN where there is none in
    the range; ``outside``: 1 where the outcome is not there even at the upper end, -1 where it is
    at the lower end already, else 0; ``agree``: share of the audits that fit a single turn.

    runs: decisions made per row, the ends included, audits not; grid: those that a full grid of the
    same precision takes; audits: decisions made to check."""

    place: Tensor
    outside: Tensor
    agree: Tensor
    runs: int
    grid: int
    audits: int


def find_boundary(
    decide: Decide, low: Tensor, high: Tensor, precision: float, audits: int = 0
) -> Boundary:
    """Bisect from ``low`` (outcome not there) to ``high`` (there), (row,) each, until no bracket is
    wider than ``precision``; then audit at ``audits`` places on either side, evenly spread between
    boundary and end."""
    check_search(float((high - low).min()), precision, audits)
    width = float((high - low).max())
    halvings = math.ceil(math.log2(width / precision))
    at_low, at_high = decide(low), decide(high)
    outside = torch.where(at_low, -1, torch.where(at_high, 0, 1))
    below, above = low.clone(), high.clone()
    for _ in range(halvings):
        middle = (below + above) / 2
        there = decide(middle)
        above = torch.where(there, middle, above)
        below = torch.where(there, below, middle)
    place = (below + above) / 2
    fits = torch.zeros_like(place)
    for number in range(audits):
        share = (number + 1) / (audits + 1)
        fits += ~decide(below + (low - below) * share)
        fits += decide(above + (high - above) * share)
    agree = fits / (2 * audits) if audits else torch.full_like(place, torch.nan)
    return Boundary(
        place=torch.where(outside == 0, place, torch.nan),
        outside=outside,
        agree=torch.where(outside == 0, agree, torch.nan),
        runs=halvings + 2,
        grid=math.ceil(width / precision) + 1,
        audits=2 * audits,
    )


def check_search(width: float, precision: float, audits: int) -> None:
    if not 0 < precision < float("inf"):
        raise bad_value("precision", precision, "must be positive and finite")
    if not width > precision:
        raise bad_value("range", width, f"must be wider than the precision, {precision:g}")
    if audits < 0:
        raise bad_value("audits", audits, "must be at least 0")
