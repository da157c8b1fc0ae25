"""Which labels are in doubt, and what they might be instead: confident learning, also for rare
classes.

Class probabilities come from classifiers that have not seen the sample. A class's threshold is the
mean of its own samples' probabilities of it (Northcutt et al., "Confident Learning: Estimating
Uncertainty in Dataset Labels"), so that a class which is hard to tell is asked for less. A label is
in doubt where another class is the likeliest, near its threshold or above, and several times as
likely as the given one. Without "near" half of the samples that were given away by an easy class
would be passed over, as half of its own are below its mean; without "several times" each sample of
a rare class that is not quite sure would be called wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.core.text import printable
from rarefy.data.images.ids import digest_of
from rarefy.data.images.listing import listed
from rarefy.tools.influence.class_probabilities import (
    FOLDS,
    class_probabilities,
    in_one_fold,
    numbers_of,
)
from rarefy.tools.samples.samples import Samples

NEAR, TIMES = 0.8, 4.0
"""Of its threshold, and as likely as the given label: what a suggested class must have. Chosen on
made-up tables, iris, and parts of MNIST and CIFAR-100 that no comparison uses."""
KNOWN = 0.8
"""Share of the labels that classifiers must name for their doubt to be worth a look first. A rule
of thumb: on raw pixels of photographs they name half, and most of their doubts are mistakes of
their own."""
MOST_CLASSES, MOST = 500, 50_000_000
"""Classes, and probabilities (samples times classes), up to which labels are checked."""


@dataclass(frozen=True, eq=False)
class CheckedLabels:
    """Of each sample; classes by their position."""

    given_probability: NDArray[np.float64]
    """Of its own label, by classifiers that have not seen it; NaN where it was not checked."""
    suggested: NDArray[np.int64]
    """The class that it more likely is; its own where nothing else is suggested."""
    suggested_probability: NDArray[np.float64]
    issue: NDArray[np.bool_]
    likeliest: NDArray[np.bool_]
    """Whether no other class is likelier than its own."""
    accuracy: float
    """Share of the samples whose label the classifiers name, unseen."""
    notes: tuple[str, ...]
    """Which classes could not be checked, and why."""


def why_unchecked(samples: Samples) -> str:
    """Why no label of these samples can be checked, or nothing."""
    present = int((samples.counts > 0).sum())
    if samples.counts.max() < 2:
        return "labels are not checked: no class has two samples, one to learn from, one to ask"
    if present > MOST_CLASSES or len(samples) * present > MOST:
        sizes = f"{len(samples):,} samples of {present:,} classes"
        limits = f"at most {MOST_CLASSES} classes, {MOST:,} samples times classes"
        return f"labels are not checked: {sizes} are too many ({limits})"
    return ""


def check_labels(
    samples: Samples,
    device: torch.device,
    *,
    folds: int = FOLDS,
    progress: Callable[[float], None] | None = None,
    deadline: Callable[[], bool] | None = None,
) -> CheckedLabels:
    """Ask the label of every sample of a class that has at least two."""
    reason = why_unchecked(samples)
    if reason:
        raise UsageError(reason)
    present, codes = np.unique(samples.labels, return_inverse=True)
    # by content: the order of the data says nothing about them, nor do folds drawn by it
    order = np.argsort(np.asarray(samples.ids))
    content = np.unique([digest_of(one) for one in samples.ids], return_inverse=True)[1][order]
    alone = in_one_fold(codes[order], content, folds)
    chances = np.empty((len(samples), len(present)))
    chances[order] = class_probabilities(
        numbers_of(samples, device)[order],
        codes[order],
        len(present),
        content=content,
        folds=folds,
        progress=progress,
        deadline=deadline,
    )
    names = [printable(samples.classes[label]) for label in present]
    suggested, issue, notes = judged(chances, codes, names, alone)
    likeliest = chances.argmax(axis=1) == codes
    accuracy = float(likeliest.mean())
    if accuracy < KNOWN:
        notes += (
            f"label check says little here: its classifiers name {100 * accuracy:.0f} % of the "
            "labels, so most doubts are mistakes of their own; features of an embedding help",
        )
    rows = np.arange(len(samples))
    single = alone[codes]
    return CheckedLabels(
        np.where(single, np.nan, chances[rows, codes]),
        present[suggested],
        np.where(single, np.nan, chances[rows, suggested]),
        issue,
        likeliest | single,
        accuracy,
        notes,
    )


def judged(
    chances: NDArray[np.float64],
    labels: NDArray[np.int64],
    names: list[str],
    alone: NDArray[np.bool_],
) -> tuple[NDArray[np.int64], NDArray[np.bool_], tuple[str, ...]]:
    """Suggested classes, which labels are in doubt, and what could not be said of which class.

    chances: (n, classes), out of fold; labels: (n,), every class at least once; alone: (classes,),
    those that nobody could learn without the sample that is asked."""
    rows, counts = np.arange(len(labels)), np.bincount(labels)
    own = chances[rows, labels]
    thresholds = np.bincount(labels, weights=own) / counts
    likeliest = chances.argmax(axis=1)
    most = chances[rows, likeliest]
    issue = (
        (likeliest != labels)
        & (most >= NEAR * thresholds[likeliest])
        & (most >= TIMES * own)
        & ~alone[labels]
    )
    doubted = np.bincount(labels, weights=issue) / counts
    notes = []
    for chosen, what, why in (
        (alone, "is off for", "one sample or copies of it: nothing to learn the class from"),
        (doubted > 0.5, "says little about", "most labels in doubt: classifiers may not know it"),
    ):
        found = [names[place] for place in np.flatnonzero(chosen)]
        if found:
            kinds = "class" if len(found) == 1 else f"{len(found):,} classes:"
            notes.append(f"label check {what} {kinds} {listed(found)} ({why})")
    return np.where(issue, likeliest, labels), issue, tuple(notes)
