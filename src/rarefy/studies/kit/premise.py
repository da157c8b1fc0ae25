"""Where a claim says nothing, what was measured is shown and decides nothing."""

from __future__ import annotations

import dataclasses

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined


def inconclusive(verdict: Verdict, why: str) -> Verdict:
    """The same measurement, which for this reason decides nothing; as it was if ``why`` is
    empty."""
    if not why:
        return verdict
    note = joined(verdict.note, why)
    return dataclasses.replace(verdict, outcome="inconclusive", note=note)


def undecided(verdict: Verdict, why: str) -> Verdict:
    """The same measurement where the claim says nothing, because a premise is not met; as it was if
    ``why`` is empty."""
    if not why:
        return verdict
    note = joined(verdict.note, f"premise not met: {why}")
    return dataclasses.replace(verdict, outcome="premise-not-met", note=note)


def noted(verdict: Verdict, more: str) -> Verdict:
    """The same verdict with one more remark."""
    return dataclasses.replace(verdict, note=joined(verdict.note, more))
