"""Methods judged per class over seeds, and which of them to use.

The baseline is the first method that trains without masks; what needs no training (raw pixels, an
untrained network) is the floor that all others have to beat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.measure.class_report import PERCENT, ClassReport, class_report
from rarefy.measure.statistics import mean_interval
from rarefy.tools.decision import FEWEST, NONE, WORTH, Decision, beats_trivial, corrected, decide
from rarefy.tools.longtail.readings import baseline_of
from rarefy.train.simclr.method import Method

FLOORS = {"pixels": "raw pixels", "untrained": "an untrained network"}
"""In words."""
LARGEST = "always answering the largest class"
Scores = Mapping[str, NDArray[np.float64]]


Setting = tuple[str, float, str]
"""Kind of images, rho and method."""


class JudgedSeed(NamedTuple):
    """Counts of (true label, answered label) on test images; the label at each rank, the head's
    first, and its training images."""

    confusion: NDArray[np.float64]
    order: Sequence[int]
    counts: Sequence[int]


def report_of(seeds: Sequence[JudgedSeed], classes: Sequence[str]) -> ClassReport:
    """The judging table of one method. Where seeds differ in the order of the classes, a row is a
    rank: the class that has so many images there, whichever it is."""
    whole = [_with_absent(one, len(classes)) for one in seeds]
    first = whole[0]
    names = [str(classes[label]) for label in first.order]
    if any(tuple(one.order) != tuple(first.order) for one in whole):
        names = [f"rank {rank + 1}" for rank in range(len(first.order))]
    confusion = np.stack([one.confusion[np.ix_(one.order, one.order)] for one in whole])
    return class_report(confusion, first.counts, names)


def _with_absent(one: JudgedSeed, classes: int) -> JudgedSeed:
    """A split may lack classes: they have no training images."""
    absent = [label for label in range(classes) if label not in set(one.order)]
    return JudgedSeed(
        np.asarray(one.confusion), [*one.order, *absent], [*one.counts, *(0 for _ in absent)]
    )


def judged_methods(
    results: xr.Dataset, protocol: str, classes: Sequence[str]
) -> dict[Setting, ClassReport]:
    """Of what ``rarefy pretrain`` stores; nothing where no labels are."""
    found: dict[Setting, ClassReport] = {}
    if "confusion" not in results or not results["confusion"].notnull().any():
        return found
    cells = ("images", "rho", "algorithm", "seed")
    names = ("confusion", "class_at", "class_count")
    told = results[list(names)].sel(protocol=protocol).transpose(*cells, ...)
    for place in np.ndindex(*(results.sizes[name] for name in cells[:3])):
        where = dict(zip(cells, place, strict=False))
        confusion, order, counts = (told[name].isel(where).values for name in names)
        seeds = [
            JudgedSeed(each, ranks[:there].astype(int).tolist(), sizes[:there].astype(int).tolist())
            for each, ranks, sizes in zip(confusion, order, counts, strict=True)
            if np.isfinite(each).all() and (there := int(np.isfinite(ranks).sum()))
        ]
        if seeds:
            images, rho, method = (told[name].values[at] for name, at in where.items())
            found[str(images), float(rho), str(method)] = report_of(seeds, classes)
    return found


def guessing(report: ClassReport) -> float:
    """Balanced accuracy in per cent of always answering the largest class."""
    return PERCENT / max(int((report.table["n"] > 0).sum()), 1)


def decide_judged(
    scores: Scores, judged: Mapping[str, ClassReport], of: str = "balanced accuracy"
) -> Decision:
    """First whether anything was learnt at all, for the number of test images, then
    ``decide_methods``.

    Arguments:
        scores: balanced accuracy in per cent by method, one per seed in the same order.
        judged: the methods that are through with a seed.
        of: what the scores are, for the sentence.
    """
    found = decide_methods(scores, of)
    told = {name: one.summary for name, one in judged.items()}
    first = next(iter(judged.values()))
    learnt = beats_trivial(
        {s: (t.balanced_accuracy, t.balanced_low, t.balanced_high) for s, t in told.items()},
        {LARGEST: guessing(first)},
        int(first.table["n"].sum()),
        of,
    )
    if learnt is None or learnt.kind == NONE:
        return learnt or found
    return replace(learnt, sentence=f"{learnt.sentence}; among these: {found.sentence}")


def decide_methods(scores: Scores, of: str = "balanced accuracy", worth: float = WORTH) -> Decision:
    """Which method to use, by scores in points, one per seed in the same order.

    Arguments:
        scores: by method, as ``rarefy pretrain`` spells them.
        of: what the scores are, for the sentence.
        worth: points below which a gain does not matter.

    Returns:
        The decision among what was trained; where nothing trained beats what needs no training,
        that is the decision.
    """
    baseline = baseline_of(list(scores))
    trained = {name: values for name, values in scores.items() if Method.parse(name).trained}
    floors = [name for name in scores if name not in trained]
    if not trained or not floors:
        return _spelled(decide(scores, baseline, of, worth), floors)
    floor = max(floors, key=lambda name: mean_interval(scores[name]).mean)
    over = decide({FLOORS[floor]: scores[floor], **trained}, FLOORS[floor], of, worth)
    if over.kind == NONE or len(trained) == 1:
        return _spelled(over, floors)
    found = decide(trained, baseline, of, worth)
    beside = _beside(trained, scores[floor], FLOORS[floor], found.choice)
    return replace(found, sentence=found.sentence + beside)


def _beside(trained: Scores, floor: NDArray[np.float64], words: str, choice: str | None) -> str:
    """What the choice, or else the best, is worth next to no training at all."""
    gains = corrected({name: values - floor for name, values in trained.items()})
    known = [name for name, gain in gains.items() if gain.n]
    if not known:
        return ""
    best = choice or max(known, key=lambda name: gains[name].mean)
    gain = gains[best]
    if gain.n >= FEWEST and gain.low > 0:
        return f"; {gain.mean:+.2f} points over {words}"
    if gain.mean < 0:
        return f"; ahead so far: {words} ({-gain.mean:+.2f} over {best})"
    return f"; {best} is not told apart from {words} ({gain.mean:+.2f})"


def _spelled(decision: Decision, floors: Sequence[str]) -> Decision:
    """``choice`` as a method."""
    names = {FLOORS[name]: name for name in floors}
    return replace(decision, choice=names.get(decision.choice or "", decision.choice))
