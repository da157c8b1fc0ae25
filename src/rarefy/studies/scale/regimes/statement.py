"""One statement of a theorem as it is measured: its estimate, what is allowed, and the verdict.

How far things may be off was fixed before any result was looked at:

    DELTA     the theorems hold with probability 1 - delta, and leave delta open
    EXPONENT  (of topk-regimes) how far the exponent of an SNR may be off
    FLAT      the same for n SNR^2/T, x and Gamma, which are squares of such a ratio

Only that rows which were not fitted leave a statement open came after a first look at small runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.studies.kit.premise import inconclusive, undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.scale.regimes.rows import mean_of
from rarefy.studies.topk.regimes.claims import DELTA, EXPONENT

__all__ = ["DELTA", "EXPONENT", "FITTED", "FLAT", "Statement", "all_of", "share_of"]

FLAT = 2 * EXPONENT


@dataclass(frozen=True)
class Statement:
    """``estimate``: an exponent (Slope) that is ``goal`` up to ``tolerance`` or, ``one_sided``, at
    most that; or a share of rows (Interval) that is at least ``goal``. ``lost``: share of the rows
    behind it that have no boundary in the range; ``unfitted``: share of those whose training loss
    was still large when the updates were used up, of which the theorems do not speak. More than
    DELTA of either leave an exponent open (of ``lost`` ones only where it looks right: counted at
    the end of the range they can but flatten it)."""

    claim: str
    what: str
    estimate: st.Slope | st.Interval
    goal: float
    tolerance: float = 0.0
    one_sided: bool = False
    note: str = ""
    lost: float = 0.0
    unfitted: float = 0.0

    @property
    def value(self) -> float:
        return self.estimate.value if isinstance(self.estimate, st.Slope) else self.estimate.mean

    @property
    def agrees(self) -> bool:
        """Whether the point estimate is what the theorem says."""
        if isinstance(self.estimate, st.Interval):
            return self.value >= self.goal
        if not math.isfinite(self.value) or max(self.lost, self.unfitted) > DELTA:
            return False
        above = self.value - self.goal
        return above <= self.tolerance and (self.one_sided or above >= -self.tolerance)

    @property
    def requirement(self) -> str:
        """What is asked for, in few words."""
        if isinstance(self.estimate, st.Interval):
            return f"at least {self.goal:g}"
        if self.one_sided:
            return f"at most {self.goal:g} + {self.tolerance:g}"
        return f"{self.goal:g} ± {self.tolerance:g}"

    def judged(self, named: Naming) -> Verdict:
        identity = named(self.claim, self.what)
        if isinstance(self.estimate, st.Interval):
            verdict = st.judge_bound(identity, self.estimate, self.goal, "at_least", note=self.note)
            open_yet = verdict.outcome == "fails" and self.value + self.unfitted >= self.goal
            why = "those that are not fitted in time would decide it" if open_yet else ""
            return inconclusive(verdict, why)
        judge = st.judge_upper_exponent if self.one_sided else st.judge_slope
        verdict = judge(identity, self.estimate, self.goal, self.tolerance, note=self.note)
        if self.unfitted > DELTA:
            why = f"{self.unfitted:.2g} of the rows have a large training loss"
            return undecided(verdict, why)
        if verdict.outcome == "holds" and self.lost > DELTA:
            why = f"{self.lost:.2g} of the rows have none in the range: too many to call it flat"
            return inconclusive(verdict, why)
        return verdict


def share_of(holds: xr.DataArray) -> st.Interval:
    """Share of rows in which something holds, mean over seeds."""
    return mean_of(holds.mean([dim for dim in holds.dims if dim != "seed"]).values)


FITTED = "training loss"
"""The part that every theorem has."""


def all_of(claim: str, what: str, parts: Mapping[str, xr.DataArray]) -> Statement:
    """The share of rows in which all ``parts`` of a theorem hold at once."""
    together = xr.concat(list(parts.values()), dim="part").min("part", skipna=False)
    shares = ", ".join(f"{name} {float(part.mean()):.3g}" for name, part in parts.items())
    note = f"share of {int(together.count())} rows; of these {shares}"
    unfitted = 1 - float(parts[FITTED].mean())
    return Statement(claim, what, share_of(together), 1 - DELTA, note=note, unfitted=unfitted)
