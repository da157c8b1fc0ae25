"""How fine should the labels be? From a finished comparison to one sentence.

Candidates are all labels that were pre-trained on but the baselines (re-training on the target, one
pass) and the controls (random ids, one id per sample). Their gain is target accuracy less that of
re-training, seed by seed, each chosen on held-out images; its interval is Student's at 95 %,
corrected for the number of candidates (Bonferroni). Fewer than ``FEWEST`` seeds decide nothing.

(a) Some candidates gain for sure (interval above 0): the coarsest of them that is not worse than
    the best is advised, that is the one with the fewest classes whose difference from the best, by
    its corrected interval, is no loss of more than half of the best's gain.
    Where one pass on the target, as long as both stages together, is certainly better than the
    best level, the pass is advised; where it is not told apart from what is advised, the sentence
    says so.
(b) No gain can be as large as ``worth`` points (all intervals lie below it): no level helps here.
(c) Else nobody can tell yet: so many seeds more would have a chance of four in five to decide
    between the two if means and spread stay what they are (normal approximation).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import xarray as xr
from scipy.stats import norm

from rarefy.data.hierarchy.made import MADE, MEANINGLESS, WITHIN
from rarefy.measure.statistics import Interval
from rarefy.tools.granularity.rows import (
    CONTROLS,
    gain,
    kind,
    probe_accuracy,
    rows_of,
    tuned_accuracy,
)
from rarefy.tools.granularity.sets import GIVEN, ONCE, TARGET

FEWEST = 5
"""Seeds from which an interval decides."""
WORTH = 0.5
"""Points of accuracy below which a gain is not worth finer labels."""
MOST_SEEDS = 200
"""More than so many are not counted."""
DOUBT, CHANCE = 0.05, 0.8
"""Of intervals that are wrong; of further seeds that decide."""
ENOUGH = 1000
"""Images per class, a rule of thumb: splitting classes of about so many (ImageNet-1k) brought Hong
et al. (004, Table 6) nothing, though iNaturalist's given levels gained with a hundred."""
ALIGNED = 0.95
"""Least agreement of labels that lie in the target's classes."""


@dataclass(frozen=True)
class Advice:
    """``level`` is what to pre-train on, None where nothing is advised; ``made``: what made labels
    are worth next to given ones; ``rows``: what it stands on."""

    sentence: str
    level: str | None
    made: str
    warnings: tuple[str, ...]
    rows: list[dict[str, Any]]
    target: str = TARGET

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {**asdict(self), "warnings": list(self.warnings)}


@dataclass(frozen=True)
class _Judged:
    """Candidates with their gains, all at one corrected level."""

    accuracy: xr.DataArray
    gains: Mapping[str, Interval]
    classes: Mapping[str, int]
    level: float

    @property
    def best(self) -> str:
        """Of those that gain for sure, or else of all."""
        of = self.gaining or list(self.gains)
        return max(of, key=lambda one: self.gains[one].mean)

    @property
    def gaining(self) -> list[str]:
        return [one for one, it in self.gains.items() if it.n >= FEWEST and it.low > 0]

    def coarsest(self) -> str:
        """Of those that gain, not worse than the best."""
        allowed = self.gains[self.best].mean / 2
        kept = [
            one
            for one in self.gaining
            if gain(self.accuracy, one, self.best, self.level).low >= -allowed
        ]
        return min(kept, key=lambda one: (self.classes[one], -self.gains[one].mean))

    def named(self, labels: str) -> str:
        """``class (10 classes)``"""
        made = "" if kind(labels) == GIVEN else "made labels, "
        return f"{labels} ({made}{self.classes[labels]:,} classes)"

    def told(self, labels: str, over: str = "") -> str:
        return f"{self.named(labels)}: {spelled(self.gains[labels], over)}"

    def seeds_needed(self, worth: float) -> float:
        """In all, to decide one way or the other; inf where no number would."""
        width = norm.ppf(1 - (1 - self.level) / 2) + norm.ppf(CHANCE)
        spread = {one: _deviation(self.accuracy, one) for one in self.gains}
        one_gains = [
            (width * spread[one] / it.mean) ** 2 for one, it in self.gains.items() if it.mean > 0
        ]
        none_helps = [
            (width * spread[one] / (worth - it.mean)) ** 2 if it.mean < worth else math.inf
            for one, it in self.gains.items()
        ]
        return min([*one_gains, max(none_helps)])


def advise(
    results: xr.Dataset,
    target: str = TARGET,
    images: int = 0,
    epochs: int = 0,
    worth: float = WORTH,
) -> Advice:
    """What to pre-train on, by the results of a ``GranularityExperiment``. ``images``: how many
    were pre-trained on, ``epochs`` of a training in all; 0: nobody knows."""
    tuned = tuned_accuracy(results)
    by_probe = not tuned.notnull().any() and bool(probe_accuracy(results).notnull().any())
    accuracy = probe_accuracy(results) if by_probe else tuned
    rows = rows_of(results, accuracy, images * epochs)
    done = [row for row in rows if row["kind"] not in CONTROLS and row["pairs"]]
    names = [row["labels"] for row in done]
    level = 1 - DOUBT / max(len(names), 1)
    judged = _Judged(
        accuracy,
        {one: gain(accuracy, one, level=level) for one in names},
        {row["labels"]: row["classes"] for row in done},
        level,
    )
    advised, sentence = None, "cannot tell: no level is compared with re-training yet"
    if names:
        advised, sentence = _decide(judged, target, worth)
    warnings = _warnings(judged, rows, probe_accuracy(results), by_probe, advised, images)
    if names:
        warnings += _beside(judged, results, advised)
    return Advice(sentence, advised, _made(judged), tuple(warnings), rows, target)


def _decide(judged: _Judged, target: str, worth: float) -> tuple[str | None, str]:
    gains, best = judged.gains, judged.best
    if judged.gaining:
        found = judged.coarsest()
        sentence = f"pre-train on {judged.told(found, f' over re-training on {target}')}"
        if found != best:
            more = f"{judged.named(best)}: {gains[best].mean:+.2f}"
            sentence += f"; it is the coarsest that is not worse than the best, {more}"
        if gains[found].high < worth:
            sentence += f"; a sure gain, but of less than {worth:g} points"
        return _beside_one_pass(judged, found, sentence, target)
    enough = all(it.n >= FEWEST for it in gains.values())
    if enough and all(it.high < worth for it in gains.values()):
        return None, (
            f"no level helps here: none gains {worth:g} points over re-training on {target}; "
            f"the best is {judged.told(best)}"
        )
    fewest = min(it.n for it in gains.values())
    further = max(FEWEST - fewest, 1)
    if fewest < 2:
        words = f"at least {further} more seed{'s' if further > 1 else ''}"
    else:
        further = max(math.ceil(min(judged.seeds_needed(worth), 1e9)) - fewest, further)
        words = f"about {further} more seed{'s' if further > 1 else ''}"
        words = words if further <= MOST_SEEDS else f"more than {MOST_SEEDS} seeds"
    ahead = gains[best].mean > 0
    so_far = (
        "the best so far is" if ahead else "none is ahead of re-training so far, the nearest is"
    )
    return None, f"cannot tell: {words} would; {so_far} {judged.told(best)}"


def _beside_one_pass(
    judged: _Judged, found: str, sentence: str, target: str
) -> tuple[str | None, str]:
    """A budget of two stages can also be spent in one."""
    if ONCE not in judged.accuracy["labels"].values.tolist():
        return found, sentence
    best = judged.best
    over = gain(judged.accuracy, ONCE, best, judged.level)
    if over.n >= FEWEST and over.low > 0:
        return None, (
            f"train once on {target}, as long as both stages together: {spelled(over)} over the "
            f"best level, {judged.told(best)}"
        )
    over = gain(judged.accuracy, ONCE, found, judged.level)
    if over.n >= FEWEST and over.low > 0:  # the coarser one is not enough then
        found, sentence = (
            best,
            f"pre-train on {judged.told(best, f' over re-training on {target}')}",
        )
        over = gain(judged.accuracy, ONCE, found, judged.level)
    if over.n and not over.high < 0:
        sentence += f"; not told apart from one pass of the same length ({-over.mean:+.2f})"
    return found, sentence


def _made(judged: _Judged) -> str:
    """What made labels are worth here, next to given ones."""
    given, made = (
        max(some, key=lambda one: judged.gains[one].mean, default="")
        for some in (
            [one for one in judged.gains if kind(one) == GIVEN],
            [one for one in judged.gains if kind(one) != GIVEN],
        )
    )
    if not made:
        return "made labels: none were compared"
    worth = f"made labels are worth {judged.gains[made].mean:+.2f} points here ({made})"
    if not given:
        return f"{worth}; there is no given level to compare with"
    apart = gain(judged.accuracy, made, given, judged.level)
    words = "not told apart"
    if apart.n >= FEWEST and apart.low > 0:
        words = "made labels are better"
    elif apart.n >= FEWEST and apart.high < 0:
        words = "given labels are better"
    return f"{worth}, given labels {judged.gains[given].mean:+.2f} ({given}): {words}"


# ---------------------------------------------------------------------------------------- warnings


def _warnings(
    judged: _Judged,
    rows: list[dict[str, Any]],
    probe: xr.DataArray,
    by_probe: bool,
    advised: str | None,
    images: int,
) -> list[str]:
    """About the labels and how they were judged."""
    found = []
    fewest = min((it.n for it in judged.gains.values()), default=0)
    if fewest < FEWEST:
        found.append(f"n = {fewest}: fewer than {FEWEST} seeds decide nothing")
    for row in rows:
        if row["stopped"]:
            found.append(f"{row['labels']}: {row['stopped']} trainings stopped, not finite")
        wanted, had = _clusters_asked(row, rows[0]["classes"]), row["classes"]
        if wanted and had is not None and had < wanted:
            found.append(
                f"{row['labels']}: {had:,} labels in place of {wanted:,}, features too alike"
            )
        agreed = row["agreement"]
        if row["labels"] in judged.gains and agreed is not None and agreed < ALIGNED:
            found.append(
                f"{row['labels']} is misaligned: {100 * (1 - agreed):.0f} % of its images lie "
                "outside their label's target class"
            )
    finest = [one for one in judged.gains if kind(one) == GIVEN] or list(judged.gains)
    asked = advised or max(finest, key=lambda one: judged.classes[one], default=None)
    if asked and images and (each := images // judged.classes[asked]) < ENOUGH:
        found.append(
            f"{asked} has about {each:,} images per class: under about {ENOUGH:,} finer labels "
            "may be starved (a rule of thumb)"
        )
    if by_probe:
        found.append("judged by a linear probe alone: fine-tuning can prefer other levels")
    elif len(judged.gains) > 1:
        ours, theirs = (
            max(judged.gains, key=lambda one: gain(by, one).mean) for by in (judged.accuracy, probe)
        )
        if ours != theirs and probe.sel(labels=theirs).notnull().any():
            found.append(f"fine-tuning is best with {ours}, a linear probe with {theirs}")
    return found


def _clusters_asked(row: Mapping[str, Any], target: int | None) -> int:
    """As many labels as a spec asks for; 0: it asks for none."""
    if row["kind"] not in MADE or row["kind"] == "samples" or target is None:
        return 0
    return int(row["labels"].partition(":")[2]) * (target if row["kind"] in WITHIN else 1)


def _beside(judged: _Judged, results: xr.Dataset, advised: str | None) -> list[str]:
    """What baselines, controls and subclasses say."""
    found, names = [], [str(one) for one in results["labels"].values]
    level = advised or judged.best
    worst = gain(100 * results["worst_subclass"], level)
    if judged.gains[level].mean > 0 and worst.n >= FEWEST and worst.high < 0:
        found.append(f"with {level} the worst subclass loses: {spelled(worst)}")
    once = gain(judged.accuracy, ONCE) if ONCE in names else None
    if once is not None and once.n >= FEWEST and once.low > 0:
        found.append(f"one pass on the target is better than re-training: {spelled(once)}")
    for control in names if advised else ():
        if kind(control) in MEANINGLESS:
            over = gain(judged.accuracy, level, control)
            if over.n and not over.low > 0:
                found.append(f"{level} is not certainly better than {control}: {spelled(over)}")
    return found


def spelled(interval: Interval, over: str = "") -> str:
    """``+0.81 points over ... [+0.20, +1.42], n = 5``"""
    ends = f" [{interval.low:+.2f}, {interval.high:+.2f}]" if interval.n > 1 else ""
    return f"{interval.mean:+.2f} points{over}{ends}, n = {interval.n}"


def _deviation(accuracy: xr.DataArray, labels: str) -> float:
    """Of the gains, seed by seed."""
    return float((accuracy.sel(labels=labels) - accuracy.sel(labels=TARGET)).std(ddof=1))
