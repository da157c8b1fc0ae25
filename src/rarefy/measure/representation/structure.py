"""How features lie: alignment and uniformity, effective rank, and how far classes stand apart.

All in float64, a part of the rows at a time. What needs labels should be given samples that were
not trained on, as many of each class: a class of few is measured with more noise.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.measure.representation.labelled import (
    check_features,
    check_labelled,
    class_counts,
    class_sums,
)
from rarefy.measure.representation.nearest import unit_rows

_VALUES = {"cpu": 1 << 21, "cuda": 1 << 26}
"""Numbers made float64 at a time."""
_ROUNDING = 1e-14


def alignment(first: Tensor, second: Tensor, power: float = 2.0) -> float:
    """Mean of |f(x) - f(y)|^power over pairs of views, features of length 1 (Wang and Isola 2020):
    0 is best, 2 is what independent directions have (power 2). first, second: (pair, d)."""
    if not 0 < power < float("inf"):
        raise bad_value("power", power, "must be positive and finite")
    first = check_features(first, "first")
    second = check_features(second, "second").to(first.device)
    if first.shape != second.shape:
        raise bad_value("second", tuple(second.shape), f"must be {tuple(first.shape)}, like first")
    total = 0.0
    for start, end in _spans(first, first.shape[1]):
        apart = unit_rows(first[start:end].double()) - unit_rows(second[start:end].double())
        total += float(apart.norm(dim=1).pow(power).sum())
    return total / len(first)


def uniformity(features: Tensor, t: float = 2.0) -> float:
    """log of the mean of exp(-t |f(x) - f(y)|^2) over all pairs of different samples, features of
    length 1 (Wang and Isola 2020): 0 if all are alike, lower is more uniform.

    The cost is samples^2 d: give a few thousand samples.
    """
    if not 0 < t < float("inf"):
        raise bad_value("t", t, "must be positive and finite")
    features = check_features(features, least=2)
    rows = unit_rows(features.double())
    logs = []
    for start, end in _spans(rows, len(rows)):
        # |x - y|^2 = 2 - 2 x.y for length 1; a row of zeros has length 0
        squares = rows[start:end].square().sum(dim=1)[:, None] + rows.square().sum(dim=1)
        squares = (squares - 2 * (rows[start:end] @ rows.T)).clamp_(min=0.0)
        squares.diagonal(offset=start).fill_(torch.inf)  # a sample and itself are no pair
        logs.append(torch.logsumexp((-t * squares).flatten(), dim=0))
    pairs = len(rows) * (len(rows) - 1)
    return float(torch.logsumexp(torch.stack(logs), dim=0)) - math.log(pairs)


def effective_rank(features: Tensor, centred: bool = True) -> float:
    """exp of the entropy of the singular values, scaled to sum 1 (Roy and Vetterli 2007): how many
    directions the features use. 0 if they are all alike.

    Centred, because the mean of features that are never negative outweighs everything else they
    do; ``centred=False`` is RankMe (Garrido et al. 2023).
    """
    features = check_features(features)
    width = features.shape[1]
    mean = torch.zeros(width, dtype=torch.float64, device=features.device)
    if centred:
        mean = torch.stack([features[a:b].double().sum(dim=0) for a, b in _spans(features, width)])
        mean = mean.sum(dim=0) / len(features)
    scatter = torch.zeros(width, width, dtype=torch.float64, device=features.device)
    for start, end in _spans(features, width):
        rows = features[start:end].double() - mean
        scatter.addmm_(rows.T, rows)
    squares = torch.linalg.eigvalsh(scatter)
    # what is smaller is rounding, of the mean or of the eigenvalues; hundreds of roots of it would
    # add up
    mean_off = len(features) * width * (_ROUNDING * float(features.abs().amax())) ** 2
    squares = squares[squares > max(_ROUNDING * width * float(squares[-1]), mean_off)]
    if len(squares) == 0:
        return 0.0
    share = squares.sqrt() / squares.sqrt().sum()
    return float(torch.special.entr(share).sum().exp())


def fisher_ratio(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """How far a class stands from each other class, in units of their scatter, (class,), float64 on
    the CPU: the mean over the others of |m - m'|^2 / (v + v'), v the trace of the covariance.

    The squared distance is without bias: what the noise of the two means adds to it is taken off,
    or rare classes would seem to stand apart. So a class that cannot be told from the others has 0
    on average and may be slightly negative. NaN for a class of fewer than two samples (which has no
    covariance; the others leave it out), inf or NaN where nothing scatters.
    """
    features, labels = check_labelled((features, labels), classes, "measured")
    means, counts, scatter = _class_moments(features, labels, classes)
    known = counts > 1
    trace = scatter / (counts - 1).clamp(min=1)
    noise = trace / counts.clamp(min=1)
    between = torch.cdist(means, means, compute_mode="donot_use_mm_for_euclid_dist").square()
    ratio = (between - noise[:, None] - noise) / (trace[:, None] + trace)
    pair = known[:, None] & known & ~torch.eye(classes, dtype=torch.bool, device=known.device)
    total = torch.where(pair, ratio, 0.0).sum(dim=1)
    return (total / pair.sum(dim=1)).cpu()  # 0 / 0: nothing to compare with


def nearest_mean_accuracy(features: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Share of each class's samples that lie nearer to the mean of the *other* samples of their
    class than to any other class's mean, (class,), float64 on the CPU.

    0 for a class of one sample, which has no others; NaN for a class without samples. A tie is not
    nearer.
    """
    features, labels = check_labelled((features, labels), classes, "measured")
    means, counts, _ = _class_moments(features, labels, classes)
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


def _class_moments(features: Tensor, labels: Tensor, classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Means (class, d), 0 for a class without rows, counts (class,), and the sum of the squared
    distances to the mean (class,), all float64."""
    counts = class_counts(labels, classes).double()
    means = class_sums(features, labels, classes) / counts.clamp(min=1)[:, None]
    scatter = torch.zeros_like(counts)
    for start, end in _spans(features, features.shape[1]):
        mine = labels[start:end]
        apart = (features[start:end].double() - means[mine]).square().sum(dim=1)
        scatter.index_add_(0, mine, apart)
    return means, counts, scatter


def _spans(rows: Tensor, width: int) -> list[tuple[int, int]]:
    """First and last row of parts that make no more than so many numbers of ``width`` a row."""
    step = max(1, _VALUES[rows.device.type] // width)
    return [(first, min(first + step, len(rows))) for first in range(0, len(rows), step)]
