"""How far classes stand apart: whether samples lie nearest to the mean of their own class.

In float64, a part of the rows at a time. Give it samples that were not trained on, as many of each
class: a class of few is measured with more noise.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.representation.labelled import check_labelled, class_counts, class_sums

_VALUES = {"cpu": 1 << 21, "cuda": 1 << 26}
"""Numbers made float64 at a time."""


def nearest_mean_accuracy(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Share of each class's samples that lie nearer to the mean of the *other* samples of their
    class than to any other class's mean, (class,), float64 on the CPU.

    0 for a class of one sample, which has no others; NaN for a class without samples. A tie is not
    nearer.
    """
    features, labels = check_labelled((features, labels), classes, "measured")
    counts = class_counts(labels, classes).double()
    means = class_sums(features, labels, classes) / counts.clamp(min=1)[:, None]
    right = torch.zeros(classes, dtype=torch.float64, device=features.device)
    # without x the mean moves away from it: x - m' = (x - m) n / (n - 1)
    away = torch.where(counts > 1, counts / (counts - 1).clamp(min=1), torch.inf).square()
    centre = means[counts > 0].mean(dim=0)
    middle = torch.where((counts > 0)[:, None], means - centre, 0.0)
    length = torch.where(counts > 0, middle.square().sum(dim=1), torch.inf)
    for start, end in _spans(features, classes + features.shape[1]):
        rows, mine = features[start:end].double() - centre, labels[start:end, None]
        squares = rows.square().sum(dim=1, keepdim=True) + length - 2 * (rows @ middle.T)
        own = (rows - middle[mine[:, 0]]).square().sum(dim=1)
        squares.scatter_(1, mine, torch.inf)
        # where an own distance of 0 meets a class of one sample: 0 times infinity
        own = torch.where(counts[mine[:, 0]] > 1, own * away[mine[:, 0]], torch.inf)
        right.index_add_(0, mine[:, 0], (own < squares.amin(dim=1)).double())
    return (right / counts).cpu()


def class_share(features: Tensor, labels: Tensor, classes: int) -> float:
    """Share of the variance of features that lies between the means of their classes (eta squared),
    0 to 1; NaN where nothing varies. Of n samples whose classes mean nothing, (classes - 1)/(n - 1)
    in the mean. Give it as many samples of each class, or it is about the largest.

    Arguments:
        features: (n, d); labels: (n,), whole numbers below ``classes``.
    """
    features, labels = check_labelled((features, labels), classes, "measured")
    rows = features.double() - features.double().mean(dim=0)
    counts = class_counts(labels, classes).double()
    sums = class_sums(rows, labels, classes)
    between = (sums.square().sum(dim=1) / counts.clamp(min=1)).sum()
    return float(between / rows.square().sum())


def _spans(rows: Tensor, width: int) -> list[tuple[int, int]]:
    """First and last row of parts that make no more than so many numbers of ``width`` a row."""
    step = max(1, _VALUES[rows.device.type] // width)
    return [(first, min(first + step, len(rows))) for first in range(0, len(rows), step)]
