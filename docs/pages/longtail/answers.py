"""What the rows of 000 Table 2 say, in sentences: what to choose, and an answer per set and
method."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pages.longtail.rows import (
    LARGEST,
    NOT_RUN,
    SET_NAMES,
    Found,
    at_rho,
    by_length,
    in_words,
)
from rarefy.measure.order_pairs import FEWEST, OverOrders
from rarefy.studies.longtail.published import TABLE_2
from rarefy.studies.longtail.table.study import ALGORITHM_1, BRANCHES, MASK_FREE
from rarefy.studies.longtail.words import spoken
from rarefy.tools.decision import FEWEST as DECIDE

CHANCE = 0.05
"""Of recommending something that does nothing, over all rows together."""
HELPS, HURTS, OPEN = "helps", "hurts", "no certain difference"
LOOKS_GOOD, LOOKS_BAD = "looks like a gain", "looks like a loss"
ALL_GAIN, ALL_LOSE = "a gain in every order, too few to be certain", "a loss in every order"
TOO_FEW = "too few orders to say"
STOPPED = "stopped, not finite"
BETTER, WORSE = (HELPS, LOOKS_GOOD, ALL_GAIN), (HURTS, LOOKS_BAD, ALL_LOSE)
GROWN = {
    HELPS: "it grows",
    HURTS: "it falls",
    LOOKS_GOOD: "it seems to grow",
    LOOKS_BAD: "it seems to fall",
    ALL_GAIN: "it grows in every order, too few to be certain",
    ALL_LOSE: "it falls in every order, too few to be certain",
    OPEN: "no certain growth",
    TOO_FEW: "too few orders to say",
    STOPPED: STOPPED,
}
"""The same words, of the growth of a gain."""
REACHED = tuple(ALGORITHM_1)
"""Sets that this project's machines can train on."""


def word_of(gain: OverOrders) -> str:
    """What the gains of one row say: five pairs or single orders decide, three or four look like
    something, fewer have no interval."""
    values = np.array(gain.values)
    if not values.size:
        return STOPPED
    if np.isfinite(gain.interval.low):
        better, worse = (HELPS, HURTS) if gain.interval.n >= DECIDE else (LOOKS_GOOD, LOOKS_BAD)
        return better if gain.interval.low > 0 else worse if gain.interval.high < 0 else OPEN
    if len(values) < FEWEST:
        return TOO_FEW
    return ALL_GAIN if (values > 0).all() else ALL_LOSE if (values < 0).all() else OPEN


def runs_of(found: dict[str, Found], data: str, method: str) -> list[Found]:
    """What was run of a method: all rows of a set, at every length."""
    rows = [at_rho(found, data, row.rho) for row in TABLE_2 if row.data == data]
    return [one for row in rows for one in row.values() if method in one.ways]


def advice(found: dict[str, Found]) -> str:
    """What a user should choose today: a method that gains in some row, and loses in none after as
    long a training."""
    lines = []
    for method in (BRANCHES, *dict.fromkeys(ALGORITHM_1.values())):
        runs = [one for data in REACHED for one in runs_of(found, data, method)]
        level = 1 - CHANCE / max(len(runs), 1)  # with many rows some are lucky (Bonferroni)
        gains = {one: one.gain(method, level=level) for one in runs}
        better = {one: gain for one, gain in gains.items() if word_of(gain) in BETTER}
        worse = [one for one in runs if word_of(one.gain(method)) in WORSE]
        # (worse after a shorter training is a condition, not an objection)
        least = min((one.epochs for one in better), default=0)
        if better and max((one.epochs for one in worse), default=0) < least:
            lines.append(_recommended(method, better, least))
            lines += _by_length(found, method)
            break
    else:
        lines.append(
            "Plain `simclr`: no pruned method gains in some row without losing in another. Put "
            f"`{BRANCHES}` beside it on your own data before you believe either: `rarefy pretrain "
            f"DATA --method simclr,{BRANCHES} --seeds 6`."
        )
    return "\n- ".join(lines).replace("\n", "\n\n", 1)


def _recommended(method: str, better: dict[Found, OverOrders], least: int) -> str:
    sure = [one for one, gain in better.items() if word_of(gain) == HELPS]
    seems = "seems to gain, in too few orders of the classes to decide"
    how = "gains more than luck" if sure else seems
    where = "; ".join(
        f"{one.name}, {one.epochs} epochs: {in_words(better[one])}" for one in sure or better
    )
    return (
        f"`{method}` ({spoken(method)}) for trainings of {least} epochs or more that a linear "
        f"probe follows: over SimCLR it {how} ({where}). Else `simclr`. Put both side by "
        f"side on your own data: `rarefy pretrain DATA --method simclr,{method} --seeds 6 "
        f"--epochs {least}`. All gains on this page are of the last networks; `rarefy pretrain` "
        "keeps the best by neighbours of held-out images, which spares SimCLR some of what it "
        "loses late: gains can be smaller there."
    )


def _by_length(found: dict[str, Found], method: str) -> list[str]:
    """When the gain comes, and whether it needs the masks."""
    lines = []
    for data in REACHED:
        told = []
        for way in (method, MASK_FREE):
            there = by_length(found, data, way)
            gains = (f"{at} epochs {in_words(one.gain(way))}" for at, one in there.items())
            told.append(", ".join(gains))
        control = f"; two branches without masks (the control): {told[1]}" if told[1] else ""
        if told[0]:
            lines.append(f"{SET_NAMES[data]}, linear probe, gain by length: {told[0]}{control}.")
    return lines


def gains_answer(found: dict[str, Found], data: str, method: str) -> str:
    """P6 of a set and a method, in one sentence."""
    said = defaultdict(list)
    for one in runs_of(found, data, method):
        gain = one.gain(method)
        numbers = f": {in_words(gain)}" if gain.values else ""
        said[word_of(gain)].append(f"rho {one.rho:g}, {one.epochs} epochs{numbers}")
    told = "; ".join(f"{word} at {', '.join(where)}" for word, where in said.items())
    return f"- **P6, {SET_NAMES[data]}, {spoken(method)}**: {told or NOT_RUN}."


def growth_answer(found: dict[str, Found], data: str, method: str) -> str:
    """P8 of a set and a method: does the gain grow with rho?"""
    said = []
    by_epochs: dict[int, list[Found]] = defaultdict(list)
    for one in runs_of(found, data, method):
        if one.gain(method).values:
            by_epochs[one.epochs].append(one)
    for epochs, runs in sorted(by_epochs.items()):
        if len(runs) < 2:
            continue
        seeds = set.intersection(*({*one.results["seed"].values.tolist()} for one in runs))
        series = [one.at(sorted(seeds)) for one in sorted(runs, key=lambda one: one.rho)]
        grown = series[-1].gain(method).less(series[0].gain(method))
        gains = ", ".join(f"{one.gain(method).mean:+.2f} at {one.rho:g}" for one in series)
        said.append(
            f"{GROWN[word_of(grown)]} (gain by rho: {gains}; from the smallest to the largest "
            f"{in_words(grown)}; {epochs} epochs)"
        )
    if not said:
        only = [one for runs in by_epochs.values() for one in runs if one.rho == LARGEST]
        no_gain = only and not any(word_of(one.gain(method)) in BETTER for one in only)
        said.append(
            f"not asked: no certain gain at rho {LARGEST} that could be smaller elsewhere"
            if no_gain
            else "not run: it takes two imbalances at one length"
        )
    return f"- **P8, {SET_NAMES[data]}, {spoken(method)}**: {'; '.join(said)}."


def answers(found: dict[str, Found]) -> str:
    return "\n".join(
        answer(found, data, method)
        for answer in (gains_answer, growth_answer)
        for data in REACHED
        for method in (BRANCHES, ALGORITHM_1[data])
    )


def chosen_share(found: dict[str, Found]) -> str:
    """Whether the rows keep what held-out images say."""
    said = []
    for data, method in ALGORITHM_1.items():
        one = found.get(f"{data}-keep-100")
        if one is None:
            said.append(f"{SET_NAMES[data]}: {NOT_RUN}; the rows have {method}.")
            continue
        tried = [way for way in one.ways if way.startswith("pruned")]
        best = max(tried, key=lambda name: np.nan_to_num(one.held_out(name)))
        words = "as the rows have it" if best == method else f"but the rows have {method}"
        said.append(f"{SET_NAMES[data]}: {best}, {words}.")
    return " ".join(said)
