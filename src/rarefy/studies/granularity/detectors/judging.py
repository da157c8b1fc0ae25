"""Judges of what must lie in a range, or have an exponent, for every number of subclasses."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.granularity.detectors.measured import Cases
from rarefy.studies.kit.premise import inconclusive, noted
from rarefy.studies.kit.worst import SLACK, corrected_level, worst_of

RATE = 0.1
"""Relative tolerance of closed forms without free constants: initial scores are not exactly equal,
and updates move them."""
LATE = 0.25
"""Tolerance of exponents in k and of slopes that are exact only for many subclasses: with 1/(k + 1)
in place of 1/k an exponent of -1 becomes -0.83 over k = 2..16, and k/(2k - 1) in
place of 1/2 gives -0.12 in place of 0."""


class Range(NamedTuple):
    """Both ends, and how its width is explained."""

    low: float
    high: float
    tolerance: str


ORDER_ONE = Range(st.OMEGA, st.BIG_O, f"between {st.OMEGA:g} and {st.BIG_O:g}")


def near(value: float, width: float) -> Range:
    return Range(value - width, value + width, f"±{width:g}, no free constant")


def estimate(samples: np.ndarray, level: float = 0.95) -> st.Interval:
    """Mean of (seed,), or ratio of the means of (seed, 2), of seeds that have both."""
    if samples.ndim == 1:
        return st.mean_interval(samples, level)
    return _bootstrapped(samples[np.isfinite(samples).all(axis=1)].tobytes(), level)


@lru_cache(maxsize=1024)  # verdicts and tables ask for the same
def _bootstrapped(pairs: bytes, level: float) -> st.Interval:
    return st.bootstrap_interval(np.frombuffer(pairs).reshape(-1, 2), ratio_of_means, level)


def ratio_of_means(samples: np.ndarray) -> np.ndarray:
    first, second = np.moveaxis(samples.mean(axis=1), -1, 0)
    return np.asarray(first / np.where(second == 0, np.nan, second))


def judge_range(
    identity: st.Identity, cases: Cases, within: Range, predicted: str, note: str = ""
) -> Verdict:
    """Every case lies in the range: judged by the one on which that stands or falls, with intervals
    that cover all together. Holds: all of its interval inside; fails: all outside."""
    low, high, tolerance = within
    level = corrected_level(len(cases))
    found = {name: estimate(samples, level) for name, samples in cases.items()}
    known = {name: each for name, each in found.items() if np.isfinite([each.low, each.high]).all()}
    missing = [name for name in found if name not in known]
    if not known:
        why = "no interval: too few values" if cases else "no such cases were run"
        note, outcome = joined(note, why), "inconclusive"
        return Verdict(*identity, predicted, "undefined", None, 0, tolerance, outcome, note)
    lows, highs = ([each[place] for each in known.values()] for place in (1, 2))
    name = list(known)[worst_of(lows, highs, low, high)]
    worst, outcome = known[name], "inconclusive"
    if worst.low >= low - SLACK and worst.high <= high + SLACK:
        outcome = "inconclusive" if missing else "holds"
    elif worst.high < low or worst.low > high:
        outcome = "fails"
    said = f"decided at {name}, the worst of {len(cases)} cases" if len(cases) > 1 else ""
    left = f"no interval at {', '.join(missing)}" if missing else ""
    lost = _left_out({name: cases[name] for name in known})
    return Verdict(
        *identity,
        predicted,
        f"{worst.mean:.3g} [{worst.low:.3g}, {worst.high:.3g}]",
        (worst.low, worst.high),
        worst.n,
        tolerance,
        outcome,
        joined(said, left, lost, note),
        value=worst.mean,
        allowed=(low, high),
    )


def _left_out(cases: Cases) -> str:
    """Which cases have seeds without a value, such as networks without a detector, in words."""
    found = []
    for name, samples in cases.items():
        lost = int((~np.isfinite(samples.reshape(len(samples), -1))).any(axis=1).sum())
        if lost:
            found.append(f"{lost} of {len(samples)} at {name}")
    return f"seeds without a value: {', '.join(found)}" if found else ""


def judge_exponent(
    identity: st.Identity,
    columns: Mapping[int, np.ndarray],
    predicted: float,
    tolerance: float,
    note: str = "",
    at_most: bool = False,
) -> Verdict:
    """How samples (seed,) fall or rise with k, as a power of it; ``at_most``: an upper bound. A
    number of subclasses without any value keeps the exponent from holding."""
    slope = st.loglog_slope(list(columns), np.stack(list(columns.values()), axis=1))
    judge = st.judge_upper_exponent if at_most else st.judge_slope
    lost = _left_out({f"k={k}": samples for k, samples in columns.items()})
    verdict = judge(identity, slope, predicted, tolerance, joined(note, lost))
    missing = [f"k={k}" for k, samples in columns.items() if not np.isfinite(samples).any()]
    why = f"no value at {', '.join(missing)}" if missing else ""
    return inconclusive(verdict, why) if verdict.outcome == "holds" else noted(verdict, why)
