"""How a classifier does per class: one judging table for all tools, beside always answering the
largest class.

Everything is read from confusions, counts of (true class, answered class) per seed. Seeds share
their test images: intervals are Wilson's for the number of images of a class, not of answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rarefy.core.errors import bad_value
from rarefy.core.text import printable
from rarefy.measure.representation.groups import groups

COLUMNS = (
    *("class", "group", "train", "n", "recall", "recall_low", "recall_high"),
    *("precision", "precision_low", "precision_high", "answered"),
)
"""Of the table, one row per class, rarest last; shares in per cent."""
GROUPS = ("head", "middle", "tail")
PERCENT = 100.0
WIDE = 0.2
"""A recall that is not known to within 20 points tells little."""
ENOUGH = int(np.ceil(ndtri(0.975) ** 2 * 0.25 / WIDE**2))
"""Test images of a class at which it is, at worst."""


@dataclass(frozen=True)
class ClassSummary:
    """Means over seeds in per cent; groups are None where all classes have equally many images."""

    accuracy: float
    balanced_accuracy: float
    balanced_low: float
    balanced_high: float
    """Ends of its 95 % interval for the number of test images."""
    macro_f1: float
    worst_class: str
    worst_recall: float
    head: float | None
    middle: float | None
    tail: float | None
    majority_class: str
    majority_accuracy: float
    """Of always answering the class with most training images; its balanced accuracy is one over
    the number of classes."""

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {name: _or_none(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class ClassReport:
    """``table`` has ``COLUMNS``; ``warnings`` say when not to lean on it."""

    table: pd.DataFrame
    summary: ClassSummary
    warnings: tuple[str, ...]

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        rows = self.table.to_dict("records")
        classes = [{str(key): _or_none(value) for key, value in row.items()} for row in rows]
        return {**self.summary.described(), "classes": classes, "warnings": list(self.warnings)}


def confusion_of(labels: ArrayLike, answers: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Counts (true class, answered class)."""
    pairs = np.asarray(labels, dtype=np.int64) * classes + np.asarray(answers, dtype=np.int64)
    return np.bincount(pairs, minlength=classes**2).reshape(classes, classes)


def balanced_accuracy(confusion: ArrayLike) -> NDArray[np.float64]:
    """Mean recall in per cent over the classes that have test images, one value per seed."""
    with np.errstate(invalid="ignore"):
        return PERCENT * np.nanmean(_recalls(_checked(confusion)), axis=1)


def balanced_interval(confusion: ArrayLike) -> tuple[float, float, float]:
    """Mean over seeds of the balanced accuracy in per cent, and the ends of its 95 % interval for
    the number of test images of each class: Wilson's ends of the recalls, put together as those of
    a sum (Zou and Donner, Construction of confidence limits about effect measures, 2008)."""
    counts = _checked(confusion)
    recall, asked = _recalls(counts), counts.sum(axis=2)[0]
    there = np.flatnonzero(asked)
    shares = np.array([_mean(recall[:, label]) for label in there])
    ends = np.array(
        [wilson(share, asked[label]) for label, share in zip(there, shares, strict=True)]
    )
    if not len(there):
        return float("nan"), float("nan"), float("nan")
    below, above = np.sqrt(((ends - shares[:, None]) ** 2).sum(axis=0)) / len(there)
    mean = float(shares.mean())
    return PERCENT * mean, PERCENT * max(mean - below, 0.0), PERCENT * min(mean + above, 1.0)


def class_report(
    confusion: ArrayLike, train_counts: Sequence[int], classes: Sequence[str]
) -> ClassReport:
    """The judging table of one network in several seeds.

    Arguments:
        confusion: counts of (true class, answered class), with a leading axis of seeds or without;
            seeds that are NaN (a training that failed) are left out.
        train_counts: training images per class.
        classes: their names.
    """
    counts = _checked(confusion)
    names = [printable(str(name)) for name in classes]
    train = np.asarray(train_counts, dtype=np.int64)
    for what, given in (("train_counts", len(train)), ("classes", len(names))):
        if given != counts.shape[1]:
            raise bad_value(what, given, f"must be one for each of {counts.shape[1]} classes")
    recall, precision = _recalls(counts), _recalls(counts.swapaxes(1, 2))
    order = np.argsort(-train, kind="stable")
    group = _groups(train, order)
    asked = np.rint(counts.sum(axis=2)[0]).astype(int)  # (means over draws are counts too)
    answered = counts.sum(axis=1).mean(axis=0)
    rows = []
    for label in order:
        rows.append(
            {
                "class": names[label],
                "group": group[label],
                "train": int(train[label]),
                "n": int(asked[label]),
                **_told("recall", _mean(recall[:, label]), asked[label]),
                **_told("precision", _mean(precision[:, label]), answered[label]),
                "answered": float(answered[label]),
            }
        )
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    summary = _summary(counts, recall, precision, train, group, names)
    return ClassReport(table, summary, tuple(_warnings(counts, table, summary)))


def wilson(share: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Interval of a share of n; NaN where there is nothing."""
    if not n or share != share:
        return float("nan"), float("nan")
    z = ndtri(0.5 + level / 2)
    middle, width = share + z**2 / (2 * n), z * np.sqrt(share * (1 - share) / n + (z / n) ** 2 / 4)
    ends = ((middle - width) / (1 + z**2 / n), (middle + width) / (1 + z**2 / n))
    return max(float(ends[0]), 0.0), min(float(ends[1]), 1.0)


def _checked(confusion: ArrayLike) -> NDArray[np.float64]:
    counts = np.asarray(confusion, dtype=np.float64)
    counts = counts[None] if counts.ndim == 2 else counts
    if counts.ndim != 3 or counts.shape[1] != counts.shape[2] or not counts.size:
        raise bad_value("confusion", counts.shape, "must have the shape (seeds, classes, classes)")
    whole = np.isfinite(counts).all(axis=(1, 2))
    return counts[whole] if whole.any() else np.zeros_like(counts[:1])


def _recalls(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """(seed, class); NaN for a class that is not there."""
    total = counts.sum(axis=2)
    right = np.diagonal(counts, axis1=1, axis2=2)
    return np.divide(right, total, out=np.full_like(total, np.nan), where=total > 0)


def _groups(train: NDArray[np.int64], order: NDArray[np.int64]) -> list[str]:
    found = [""] * len(train)
    if len(set(train.tolist())) > 1:
        for name, ranks in zip(GROUPS, groups(train[order].tolist()), strict=True):
            for rank in ranks:
                found[order[rank]] = name
    return found


def _summary(
    counts: NDArray[np.float64],
    recall: NDArray[np.float64],
    precision: NDArray[np.float64],
    train: NDArray[np.int64],
    group: list[str],
    names: list[str],
) -> ClassSummary:
    total = counts.sum(axis=(1, 2))
    right = np.trace(counts, axis1=1, axis2=2)
    accuracy = PERCENT * _mean(
        np.divide(right, total, out=np.full(len(total), np.nan), where=total > 0)
    )
    # scikit-learn's custom: a class that is asked and never answered has an F1 of 0
    both = np.nan_to_num(recall) + np.nan_to_num(precision)
    f1 = 2 * np.nan_to_num(recall) * np.nan_to_num(precision) / np.where(both > 0, both, 1)
    there = counts.sum(axis=2) + counts.sum(axis=1) > 0
    mean = np.array([_mean(recall[:, label]) for label in range(len(names))])
    worst = int(np.nanargmin(mean)) if np.isfinite(mean).any() else 0
    largest = int(train.argmax())
    parts = {
        name: _or_none(PERCENT * _mean(mean[[one == name for one in group]])) for name in GROUPS
    }
    balanced, low, high = balanced_interval(counts)
    return ClassSummary(
        accuracy,
        balanced,
        low,
        high,
        PERCENT * _mean(np.array([_mean(f1[seed][there[seed]]) for seed in range(len(f1))])),
        names[worst],
        PERCENT * mean[worst],
        **parts,
        majority_class=names[largest],
        majority_accuracy=PERCENT
        * _mean(counts.sum(axis=2)[:, largest] / np.where(total, total, np.nan)),
    )


def _warnings(counts: NDArray[np.float64], table: pd.DataFrame, summary: ClassSummary) -> list[str]:
    found = []
    images = counts[0].sum()
    low, _ = wilson(summary.accuracy / PERCENT, images)
    # (who finds rare classes may be right less often than who answers the largest)
    found_more = summary.balanced_low > PERCENT / max(int((table["n"] > 0).sum()), 1)
    if images and not PERCENT * low > summary.majority_accuracy and not found_more:
        found.append(
            f"no better than always answering {summary.majority_class!r}, which is right on "
            f"{summary.majority_accuracy:.1f} % of the test images"
        )
    table = table.iloc[::-1]  # the rarest first
    never = table[(table["answered"] == 0) & (table["n"] > 0)]["class"].tolist()
    if never:
        found.append(f"never answered: {_listed(never)}")
    absent = table[table["n"] == 0]["class"].tolist()
    if absent:
        found.append(f"without test images: {_listed(absent)}; nothing is known of them")
    small = table[(table["n"] > 0) & (table["n"] < ENOUGH)]
    if len(small):
        fewest = int(small["n"].min())
        found.append(
            f"{_listed(small['class'].tolist())}: test images are few (from {fewest} on), recall "
            f"is a rough number; {ENOUGH} per class tell it to within {PERCENT * WIDE:.0f} points"
        )
    return found


def _listed(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def _told(name: str, share: float, n: float) -> dict[str, float]:
    low, high = wilson(share, n)
    return {name: PERCENT * share, f"{name}_low": PERCENT * low, f"{name}_high": PERCENT * high}


def _or_none(value: Any) -> Any:
    return None if value != value else value


def _mean(values: NDArray[np.float64]) -> float:
    there = values[np.isfinite(values)]
    return float(there.mean()) if len(there) else float("nan")
