"""Verdicts of ``contrast-cascade``: P7, sentence by sentence.

A run's *meeting* is that of the rarest level with the next. What pruning does is told by the
unpruned twin, which has the same dictionary, weights and samples: without it every rise would count
for pruning, though ordinary training makes rare levels rise as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_fraction,
)
from rarefy.studies._alignment_verdicts import bias_name

if TYPE_CHECKING:
    from rarefy.studies.contrast_cascade import ContrastCascade

NEARLY_ALL, MOSTLY = 0.95, 0.5
"""Shares of runs and of pruned neurons that a statement needs; fixed before looking."""
RAREST, NEXT = -1, -2
"""Places of the two rarest levels, the most frequent being first."""


@dataclass(frozen=True)
class Phase:
    """A run's time up to its meeting and the equally long time after it, one value a run.

    ``end``: the meeting, or the last step watched; ``later``: end of the second phase, NaN for
    runs that did not meet in time.
    """

    end: np.ndarray
    later: np.ndarray

    @classmethod
    def of(cls, met: np.ndarray, horizon: int) -> Phase:
        end = np.where(met < 0, horizon, met).astype(float)
        later = np.where((met < 0) | (met >= horizon), np.nan, np.minimum(2 * end, horizon))
        return cls(end, later)

    @property
    def any_after(self) -> bool:
        """Some run has met in time; otherwise nothing can be said of the time after."""
        return bool(np.isfinite(self.later).any())

    @property
    def who_met(self) -> str:
        """What a statement about the time after the meeting rests on, when it is not every run."""
        met = int(np.isfinite(self.later).sum())
        return "" if met == self.later.size else f"; only {met} of {self.later.size} runs met"


def begin_name(begin: object) -> str:
    return {"theorem": "theorem's state", "random": "trained from random"}[str(begin)]


def runs_of(values: xr.DataArray) -> np.ndarray:
    """(seed, read, level) array of one quantity."""
    return values.transpose("seed", "read", "level").values


def growth(
    read: np.ndarray, log_strength: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Growth a step of ``log_strength``, (seed, read), between two times of each run: (seed,)."""
    at = [
        (np.interp(a, read, row), np.interp(b, read, row)) if np.isfinite(b) else (np.nan, np.nan)
        for a, b, row in zip(start, end, log_strength, strict=True)
    ]
    first, last = np.array(at, dtype=float).reshape(-1, 2).T
    # a second phase of no length, or a run that is not finite, has no growth
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(end > start, (last - first) / (end - start), np.nan)


def mean_between(
    read: np.ndarray, share: np.ndarray, start: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Mean over the reads in [start, end) of ``share``, (seed, read, level): (seed, level)."""
    inside = (read >= start[:, None]) & (read < end[:, None])
    inside |= (read == start[:, None]) & np.isfinite(end)[:, None]  # shorter than two reads
    count = inside.sum(axis=1)
    total = np.where(inside[:, :, None], share, 0.0).sum(axis=1)
    return np.where(count[:, None] > 0, total / np.maximum(count, 1)[:, None], np.nan)


def cascade_verdicts(study: ContrastCascade, results: xr.Dataset, scale: str) -> list[Verdict]:
    found = []
    for begin in results["begin"].values:
        for scale_of_bias in results["bias_scale"].values:
            here = results.sel(begin=begin, bias_scale=scale_of_bias)
            where = f"{begin_name(begin)}, {bias_name(scale_of_bias)}"
            unpruned = here.sel(alpha=0.0)
            apart = _meetings(unpruned)[:, 0] != 0
            found.append(
                judge_fraction(
                    ("P7", study.name, scale, f"levels apart at first, {where}, {study.setting}"),
                    int(apart.sum()),
                    apart.size,
                    NEARLY_ALL,
                    note=f"premise: the rarest level is over 5 % weaker than the next when pruning "
                    f"begins; strength {_strengths(unpruned)}",
                )
            )
            if not apart.any():
                continue  # nothing can meet that has met: the premise above fails, no more to say
            for alpha in results["alpha"].values[results["alpha"].values > 0]:

                def identity(what: str, where: str = where, alpha: float = alpha) -> Identity:
                    setting = f"{what}, {where}, alpha={alpha:g}, {study.setting}"
                    return ("P7", study.name, scale, setting)

                runs = {"seed": np.flatnonzero(apart)}
                pruned, twin = here.sel(alpha=alpha).isel(runs), unpruned.isel(runs)
                found += _one_share(study, pruned, twin, identity)
    return found


def _meetings(at: xr.Dataset) -> np.ndarray:
    return at["met"].transpose("seed", "meeting").values


def _strengths(at: xr.Dataset) -> str:
    mean = at["strength"].isel(read=0).mean("seed")
    return ", ".join(f"{float(mean.sel(level=v)):.2g} at eps={v:g}" for v in at["level"].values)


def _in_order(met: np.ndarray) -> np.ndarray:
    """Each meeting happens before the next one up, which may be never."""
    time = np.where(met < 0, np.inf, met)
    return np.asarray(np.isfinite(time[:, 0]) & (time[:, :-1] < time[:, 1:]).all(axis=1))


def _one_share(
    study: ContrastCascade,
    pruned: xr.Dataset,
    twin: xr.Dataset,
    identity: Callable[[str], Identity],
) -> list[Verdict]:
    met, met_unpruned = _meetings(pruned), _meetings(twin)
    found = []
    if met.shape[1] > 1:
        order = _in_order(met)
        found.append(
            judge_fraction(
                identity("meetings from the rarest upward"),
                int(order.sum()),
                order.size,
                NEARLY_ALL,
                note=f"{int((met[:, 0] < 0).sum())} runs without the first meeting in "
                f"{study.horizon} steps; in this order without pruning: "
                f"{int(_in_order(met_unpruned).sum())} of {order.size}",
            )
        )
    wait, wait_unpruned = (
        np.where(m[:, 0] < 0, study.horizon, m[:, 0]).astype(float) for m in (met, met_unpruned)
    )
    found.append(
        judge_difference(
            identity("first meeting earlier than unpruned"),
            wait_unpruned - wait,
            "positive",
            note=f"steps; paired; a meeting later than {study.horizon} counts as that",
        )
    )
    phase = Phase.of(met[:, 0], study.horizon)
    return found + _pruned_set(pruned, phase, identity) + _growth(pruned, twin, phase, identity)


def _pruned_set(
    pruned: xr.Dataset, phase: Phase, identity: Callable[[str], Identity]
) -> list[Verdict]:
    read, share = pruned["read"].values, runs_of(pruned["pruned"])
    early = mean_between(read, share, np.zeros_like(phase.end), phase.end)
    found = [
        judge_bound(
            identity("pruned before the meeting: the rarest"),
            early[:, RAREST],
            MOSTLY,
            "at_least",
            note="share of pruned neurons whose strongest feature is of the rarest level",
        )
    ]
    if phase.any_after:
        late = mean_between(read, share, phase.end, phase.later)
        found.append(
            judge_bound(
                identity("pruned after the meeting: both"),
                np.minimum(late[:, RAREST], late[:, NEXT]),
                OMEGA,
                "at_least",
                note="the smaller of the two rarest levels' shares, over as many steps after the "
                f"meeting as before it{phase.who_met}",
            )
        )
    return found


def _growth(
    pruned: xr.Dataset, twin: xr.Dataset, phase: Phase, identity: Callable[[str], Identity]
) -> list[Verdict]:
    read = pruned["read"].values
    own, other = (np.log(runs_of(at["strength"])) for at in (pruned, twin))
    added = own - other
    zero = np.zeros_like(phase.end)

    def difference(values: np.ndarray) -> np.ndarray:
        after = growth(read, values, phase.end, phase.later)
        return after - growth(read, values, zero, phase.end)

    early = [growth(read, added[:, :, level], zero, phase.end) for level in (RAREST, NEXT)]
    per_step = "growth of log strength a step"
    found = [
        judge_difference(
            identity("before the meeting pruning speeds the rarest more"),
            early[0] - early[1],
            "positive",
            note=f"{per_step} beyond the unpruned twin, rarest minus next level",
        )
    ]
    if not phase.any_after:
        return found
    return [
        *found,
        judge_difference(
            identity("next level grows faster after the meeting"),
            difference(own[:, :, NEXT]),
            "positive",
            note=f"{per_step}, over as many steps after as before; ordinary growth included"
            f"{phase.who_met}",
        ),
        judge_difference(
            identity("pruning speeds the next level more after the meeting"),
            difference(added[:, :, NEXT]),
            "positive",
            note=f"{per_step} beyond the unpruned twin, over as many steps after as before"
            f"{phase.who_met}",
        ),
    ]
