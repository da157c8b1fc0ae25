"""The last line of every tool: from scores in several seeds to one sentence.

Candidates are compared with a baseline seed by seed. A gain's interval is Student's at 95 %,
corrected for the number of candidates (Bonferroni); fewer than ``FEWEST`` seeds decide nothing.

use: a candidate gains for sure (its interval lies above 0); of several, the one with the largest
    gain.
none: no candidate can gain as much as ``worth`` (all intervals lie below it): none of these beats
    the baseline.
cannot tell: else. So many seeds more would have a chance of four in five to decide between the two
    if means and spread stay what they are (normal approximation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rarefy.core.errors import bad_value
from rarefy.measure.statistics import Interval, mean_interval

FEWEST = 5
"""Seeds from which an interval decides."""
DOUBT = 0.05
"""Of intervals that are wrong."""
CHANCE = 0.8
"""Of further seeds that decide."""
WORTH = 0.5
"""Points below which a gain does not matter."""
MOST_SEEDS = 200
"""More than so many are not counted."""
USE, NONE, CANNOT_TELL = "use", "none", "cannot tell"


@dataclass(frozen=True)
class Decision:
    """``choice`` is what to use: a candidate, the baseline (none beats it), or None."""

    kind: str
    choice: str | None
    sentence: str
    further_seeds: int = 0

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        return asdict(self)


def decide(
    scores: Mapping[str, Sequence[float] | NDArray[np.float64]],
    baseline: str,
    of: str = "balanced accuracy",
    worth: float = WORTH,
    cheapest_first: Sequence[str] = (),
) -> Decision:
    """One sentence from scores in points (per cent), one per seed in the same order, NaN where a
    seed failed.

    Arguments:
        scores: of the baseline and of each candidate, by name.
        baseline: what the others are compared with.
        of: what the scores are, for the sentence.
        worth: points below which a gain does not matter.
        cheapest_first: candidates that are also cheaper to use than the baseline: where none is
            better for sure, the sentence names the first that costs less than ``worth`` for sure.
    """
    if baseline not in scores:
        raise bad_value("baseline", baseline, f"must be one of {', '.join(scores)}")
    plain = np.asarray(scores[baseline], dtype=np.float64)
    pairs = {
        name: np.asarray(values, dtype=np.float64) - plain
        for name, values in scores.items()
        if name != baseline
    }
    gains = corrected(pairs)
    told = [name for name, gain in gains.items() if gain.n]
    if not told:
        return Decision(CANNOT_TELL, None, f"cannot tell: nothing is compared with {baseline} yet")
    sure = [name for name in told if gains[name].n >= FEWEST and gains[name].low > 0]
    best = max(sure or told, key=lambda name: gains[name].mean)
    if sure:
        words = f"use {best}: {spelled(gains[best], f' of {of} over {baseline}')}"
        if gains[best].high < worth:
            words += f"; a sure gain, but of less than {worth:g} points"
        return Decision(USE, best, words)
    so_far = spelled(gains[best], f" of {of}")
    free = _free(gains, worth, *cheapest_first)
    if all(gains[name].n >= FEWEST and gains[name].high < worth for name in told):
        words = f"none of these beats {baseline}: the best is {best}, {so_far}"
        return Decision(NONE, baseline, f"{words}; use {baseline}{free}")
    further, words = more_seeds(pairs, worth)
    words = f"cannot tell {best} from {baseline}: {words} would; so far {so_far}"
    return Decision(CANNOT_TELL, None, f"{words}{free}", further)


def beats_trivial(
    found: Mapping[str, tuple[float, float, float]],
    trivial: Mapping[str, float],
    images: int,
    of: str = "balanced accuracy",
    worth: float = WORTH,
) -> Decision | None:
    """Whether anything was learnt at all: a sentence where the best is not better for sure than
    what costs nothing, None where it is. The burden of proof is the network's: where its mean is no
    better, none beats it, however wide the interval.

    Arguments:
        found: mean and ends of its interval in per cent (of test images), by name.
        trivial: scores of what needs no network, by name.
        images: how many were tested on, for the sentence.
        of: what the scores are.
        worth: points below which a gain does not matter.
    """
    best, bar = max(found, key=lambda name: found[name][0]), max(trivial, key=trivial.__getitem__)
    mean, low, high = found[best]
    if low > trivial[bar]:
        return None
    words = f"{mean:.1f} % of {of} [{low:.1f}, {high:.1f}] against {trivial[bar]:.1f} %"
    if mean < trivial[bar] + worth:
        return Decision(
            NONE,
            bar,
            f"none of these beats {bar}: the best is {best}, {words} on {images} test images; "
            "train longer, or another network or more images, before comparing",
        )
    needed = math.ceil(images * ((high - low) / 2 / (mean - trivial[bar])) ** 2)
    return Decision(
        CANNOT_TELL,
        None,
        f"cannot tell {best} from {bar}: {words} on {images} test images; about "
        f"{max(needed, images + 1)} would",
    )


def _free(gains: Mapping[str, Interval], worth: float, *names: str) -> str:
    for name in names:
        gain = gains[name]
        if gain.n >= FEWEST and gain.low > -worth:
            return f"; {name} costs less than {worth:g} points for sure ({spelled(gain)})"
    return ""


def corrected(pairs: Mapping[str, NDArray[np.float64]]) -> dict[str, Interval]:
    """Gains with intervals at a level that is corrected for their number."""
    level = 1 - DOUBT / max(len(pairs), 1)
    return {name: mean_interval(values, level) for name, values in pairs.items()}


def more_seeds(pairs: Mapping[str, NDArray[np.float64]], worth: float) -> tuple[int, str]:
    """How many more would decide, as a number and in words."""
    fewest = min(int(np.isfinite(values).sum()) for values in pairs.values())
    further = max(FEWEST - fewest, 1)
    if fewest < 2:
        return further, f"at least {further} more seed{'s' if further > 1 else ''}"
    needed = min(seeds_needed(pairs, worth), 1e9)
    further = max(math.ceil(needed) - fewest, further)
    words = f"about {further} more seed{'s' if further > 1 else ''}"
    return further, words if further <= MOST_SEEDS else f"more than {MOST_SEEDS} seeds"


def seeds_needed(pairs: Mapping[str, NDArray[np.float64]], worth: float) -> float:
    """In all, to decide one way or the other; inf where no number would."""
    level = 1 - DOUBT / max(len(pairs), 1)
    width = ndtri(1 - (1 - level) / 2) + ndtri(CHANCE)
    gains = {name: (np.nanmean(one), np.nanstd(one, ddof=1)) for name, one in pairs.items()}
    one_gains = [(width * spread / mean) ** 2 for mean, spread in gains.values() if mean > 0]
    none_helps = [
        (width * spread / (worth - mean)) ** 2 if mean < worth else math.inf
        for mean, spread in gains.values()
    ]
    return float(min([*one_gains, max(none_helps)]))


def spelled(interval: Interval, over: str = "") -> str:
    """``+0.81 points over ... [+0.20, +1.42], n = 5``"""
    ends = f" [{interval.low:+.2f}, {interval.high:+.2f}]" if interval.n > 1 else ""
    return f"{interval.mean:+.2f} points{over}{ends}, n = {interval.n}"
