"""How far two scores of the same samples agree, overall and class by class."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from rarefy.core.errors import bad_value

ALL = "all"
TOP = 0.1


def agreement(
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
    labels: NDArray[np.int64],
    classes: Sequence[str] | None = None,
    top: float = TOP,
) -> pd.DataFrame:
    """One row for all samples and one a class, with

    n: samples that have both scores (the others do not count); spearman and pearson correlation,
    NaN where there are fewer than 3 samples or a score never changes; k, the ``top`` share of n;
    overlap: the share of the k highest by one score that are among the k highest by the other,
    ties sharing the last places; chance: the overlap of scores that know nothing of each other.

    Spearman, Pearson and overlap together, because each alone flatters: a cosine near 1 can stand
    beside no correlation at all.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    labels = np.asarray(labels)
    for name, values in (("theirs", theirs), ("labels", labels)):
        if values.shape != ours.shape or ours.ndim != 1:
            raise bad_value(name, values.shape, f"must be as long as ours, {ours.shape}")
    if not 0 < top <= 1:
        raise bad_value("top", top, "must be above 0 and at most 1")
    both = np.isfinite(ours) & np.isfinite(theirs)
    rows = [{"class": ALL, **_compared(ours[both], theirs[both], top)}]
    known = np.flatnonzero(both)
    members = pd.Series(known).groupby(labels[known]).indices
    for label in range(len(classes)) if classes is not None else np.unique(labels).tolist():
        here = known[members.get(label, [])]
        name = str(label) if classes is None else classes[label]
        rows.append({"class": name, **_compared(ours[here], theirs[here], top)})
    table = pd.DataFrame(rows)
    table.attrs["without both scores"] = int((~both).sum())
    return table


def _compared(
    ours: NDArray[np.float64], theirs: NDArray[np.float64], top: float
) -> dict[str, float | int]:
    count = len(ours)
    k = min(count, max(1, round(top * count)))
    spearman = pearson = overlap = float("nan")
    if count >= 3 and np.ptp(ours) > 0 and np.ptp(theirs) > 0:
        spearman = float(stats.spearmanr(ours, theirs).statistic)
        pearson = float(stats.pearsonr(ours, theirs).statistic)
    if count:
        overlap = float((_in_top(ours, k) * _in_top(theirs, k)).sum() / k)
    return {
        "n": count,
        "spearman": spearman,
        "pearson": pearson,
        "k": k,
        "overlap": overlap,
        "chance": k / count if count else float("nan"),
    }


def _in_top(values: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """1 for what is above the k-th highest, and equal parts of what is left for its equals."""
    last = np.partition(values, len(values) - k)[len(values) - k]
    above, equal = values > last, values == last
    return above + equal * ((k - above.sum()) / equal.sum())
