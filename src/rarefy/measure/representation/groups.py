"""Head, middle and tail: accuracy by class summed up in the numbers of the long-tail literature.

Everything here is in rank order: rank 0 is the head, the class with most training samples. For the
balanced control give the counts of the split it controls, so that the same classes are compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarefy.core.errors import bad_value

RULES = ("thirds", "counts")
MANY, FEW = 100, 20
"""More samples than MANY are many, fewer than FEW are few (ImageNet-LT's custom)."""


class Groups(NamedTuple):
    """Ranks of the classes with many, a medium number of and few samples; each may be empty."""

    many: tuple[int, ...]
    medium: tuple[int, ...]
    few: tuple[int, ...]


class GroupMeans(NamedTuple):
    """Mean accuracy over the classes of each group; NaN for a group without any."""

    many: float
    medium: float
    few: float


@dataclass(frozen=True)
class Summary:
    """``overall`` is the mean over classes; ``by_rank``: (class,), head first."""

    overall: float
    many: float
    medium: float
    few: float
    spread: float
    delta_20: float
    by_rank: tuple[float, ...]


def groups(counts: Sequence[int], rule: str = "thirds") -> Groups:
    """Which ranks are many, medium and few; counts: training samples of every class, head first.

    "thirds": of the classes by rank, what is over goes to the front (4/3/3 of ten, 34/33/33 of a
    hundred: SDCLR on CIFAR). "counts": over 100, 20 to 100, under 20 samples (ImageNet-LT).
    """
    _check_counts(counts)
    ranks = range(len(counts))
    if rule == "thirds":
        size, over = divmod(len(counts), 3)
        first = size + (over > 0)
        second = first + size + (over > 1)
        return Groups(tuple(ranks[:first]), tuple(ranks[first:second]), tuple(ranks[second:]))
    if rule == "counts":
        return Groups(
            tuple(rank for rank in ranks if counts[rank] > MANY),
            tuple(rank for rank in ranks if FEW <= counts[rank] <= MANY),
            tuple(rank for rank in ranks if counts[rank] < FEW),
        )
    raise bad_value("rule", rule, f"must be one of {', '.join(RULES)}")


def group_means(accuracy_by_rank: ArrayLike, which: Groups) -> GroupMeans:
    """Mean accuracy of each group; a class without test samples (NaN) is left out."""
    values = _one_axis(accuracy_by_rank, "accuracy_by_rank")
    if sorted(sum(which, ())) != list(range(len(values))):
        raise bad_value(
            "which", sum(map(len, which)), f"must hold each of {len(values)} ranks once"
        )
    return GroupMeans(*(_mean(values[list(group)]) for group in which))


def delta_20(accuracy_by_rank: ArrayLike) -> float:
    """Mean accuracy of the first fifth of the classes minus that of the last fifth (000 Table 2);
    a fifth is rounded down, to one class at least. Positive: the head is better."""
    values = _one_axis(accuracy_by_rank, "accuracy_by_rank")
    size = max(1, len(values) // 5)
    return _mean(values[:size]) - _mean(values[-size:])


def spread(means: GroupMeans) -> float:
    """Population standard deviation of the three group means; NaN if a group is empty. With several
    splits: of each, then averaged, not of the averages."""
    middle = sum(means) / 3
    return math.sqrt(sum((mean - middle) ** 2 for mean in means) / 3)


def summary(accuracy_by_rank: ArrayLike, counts: Sequence[int], rule: str = "thirds") -> Summary:
    """All of it. accuracy_by_rank: (class,), head first, in any unit; counts: training samples of
    every class, head first."""
    values = _one_axis(accuracy_by_rank, "accuracy_by_rank")
    if len(counts) != len(values):
        raise bad_value("counts", len(counts), f"must be one for each of {len(values)} classes")
    means = group_means(values, groups(counts, rule))
    return Summary(
        _mean(values), *means, spread(means), delta_20(values), tuple(float(v) for v in values)
    )


def _check_counts(counts: Sequence[int]) -> None:
    if len(counts) == 0:
        raise bad_value("counts", tuple(counts), "must hold at least one class")
    for rank, count in enumerate(counts):
        if count < 0:
            raise bad_value("counts", count, "must be at least 0")
        if rank and count > counts[rank - 1]:
            raise bad_value(
                "counts",
                count,
                f"must not rise: head first (rank {rank - 1} has {counts[rank - 1]})",
            )


def _one_axis(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise bad_value(name, array.shape, "must have the shape (classes,)")
    return array


def _mean(values: NDArray[np.float64]) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else math.nan
