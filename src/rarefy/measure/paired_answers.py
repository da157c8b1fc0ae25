"""Two classifiers on the same samples, right or wrong sample by sample: far sharper than two
accuracies, because samples that both get right, or both wrong, say nothing (McNemar 1947)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class PairedDifference:
    """Of balanced accuracies, first less second. ``error``: standard error of ``mean`` if there
    were no difference; ``samples``: how many were asked; ``differing``: how many only one of the
    two got right."""

    mean: float
    error: float
    samples: int
    differing: int

    def above_zero(self, chance: float) -> bool:
        """Whether a mean this large would come with at most such a chance if there were no
        difference (one-sided, normal approximation)."""
        return self.mean > 0 and self.mean >= NormalDist().inv_cdf(1 - chance) * self.error


def paired_difference(first: ArrayLike, second: ArrayLike, labels: ArrayLike) -> PairedDifference:
    """Mean over classes of the shares that were answered right, first less second.

    Arguments:
        first, second: (sample,), whether each got the sample right.
        labels: (sample,), whole numbers.

    Returns:
        The difference. Its error is McNemar's with classes as strata: each sample on which the two
        differ counts with the square of its weight, 1 / (classes x samples of its class). Where
        classes differ in opposite directions that errs on the side of caution.

    Example:
        >>> paired_difference([1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]).mean
        0.5
    """
    one, two = (np.asarray(answers, dtype=np.float64) for answers in (first, second))
    classes = np.asarray(labels)
    if not one.shape == two.shape == classes.shape or one.ndim != 1 or not one.size:
        shapes = f"{one.shape}, {two.shape}, {classes.shape}"
        raise bad_value("answers", shapes, "must be one per sample of each, and at least one")
    _, place, counts = np.unique(classes, return_inverse=True, return_counts=True)
    difference = (one - two) / (len(counts) * counts[place])
    error = math.sqrt(float((difference**2).sum()))
    return PairedDifference(float(difference.sum()), error, one.size, int((difference != 0).sum()))
