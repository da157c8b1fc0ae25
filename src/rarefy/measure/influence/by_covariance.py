"""The covariance route: scatter matrices of a group of classes in one reading, scores in a second.

About 2 n d^2 FLOPs for a class and 8 d^2 bytes (the Mahalanobis distance doubles the bytes)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rarefy.measure.influence.class_statistics import ClassStatistics
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.leave_one_out import row_squares
from rarefy.measure.influence.mahalanobis import ClassMetric
from rarefy.measure.influence.plan import CovarianceStep
from rarefy.measure.influence.products import (
    double_diagonal,
    halve_diagonal,
    quadratic_form,
    square_norm,
)
from rarefy.measure.influence.work import Work


def score_group(work: Work, step: CovarianceStep, pool: CorePool) -> None:
    """Each core takes one class at a time, so that sums are formed in the same order whatever the
    number of cores."""
    statistics = _begun(work, step)
    if work.reading == 0:
        _read_scatters(work, step, statistics, pool)
    places = range(len(step.labels))
    metrics = pool.map(lambda at: _finish(work, statistics, at, step.labels[at]), places)
    size = len(work.rows)
    for first in range(work.row, size, step.window):
        last = min(first + step.window, size)

        def score(at: int, first: int = first, last: int = last) -> None:
            for indices, taken in work.segments(step.labels[at], first, last):
                found = measured(statistics, at, taken, metrics[at])
                work.keep_q(indices, found.q)
                work.keep(indices, found.r, found.norm, found.distances)

        pool.map(score, places)
        work.advance((last - first) / size / 2)
        if last < size:
            work.unit_done(1, last, statistics.arrays)


class Measured(NamedTuple):
    """Of some rows of a class: x^T S x, |x|^2 from the class mean, the norm, the Mahalanobis
    distance where the class has a spread."""

    q: Tensor
    r: Tensor
    norm: Tensor
    distances: Tensor | None


def measured(
    statistics: ClassStatistics, at: int, taken: Tensor, metric: ClassMetric | None
) -> Measured:
    """``taken``: rows of the class, which are overwritten; the diagonal of its scatter matrix is
    halved (``halve_diagonal``)."""
    norm = torch.linalg.vector_norm(taken, dim=1)
    rows = statistics.centred(at, taken)
    r = row_squares(rows)
    q = quadratic_form(rows, statistics.scatters[at])
    return Measured(q, r, norm, None if metric is None else metric.distances(rows, r))


def _begun(work: Work, step: CovarianceStep) -> ClassStatistics:
    """Nothing, or what a stopped call had."""
    if not work.in_hand:
        return ClassStatistics(len(step.labels), work.rows.width, work.device)
    statistics = ClassStatistics.from_arrays(work.in_hand, work.where, work.device)
    work.in_hand = {}
    if work.reading == 1 and work.row > 0:  # stopped while the diagonals were halved
        for scatter in statistics.scatters:
            double_diagonal(scatter)
    return statistics


def _read_scatters(
    work: Work, step: CovarianceStep, statistics: ClassStatistics, pool: CorePool
) -> None:
    size = len(work.rows)
    for first in range(work.row, size, step.window):
        last = min(first + step.window, size)
        statistics.add(work.rows, step.labels, pool, first, last, work.plan.segment)
        work.advance((last - first) / size / 2)
        work.unit_done(int(last == size), last % size, statistics.arrays)


def _finish(work: Work, statistics: ClassStatistics, at: int, label: int) -> ClassMetric | None:
    """All rows of a class have been seen. Halves the diagonal of its scatter matrix."""
    scatter = statistics.scatters[at]
    trace, norm = float(scatter.diagonal().sum()), square_norm(scatter)
    mean = statistics.pivots[at] + statistics.offsets[at]
    if work.directions is None:
        spread = work.rows.room(scatter.shape, work.device).copy_(scatter)
    else:
        spread = _seen(scatter, work.directions)
    metric = work.class_known(label, mean, trace, norm, spread)
    halve_diagonal(scatter)
    return metric


def _seen(scatter: Tensor, directions: Tensor) -> Tensor:
    """V^T S V from the upper triangle of S, without a copy of it."""
    halve_diagonal(scatter)
    half = torch.zeros_like(directions)
    for first in range(0, len(scatter), 256):
        half[first : first + 256] = scatter[first : first + 256, first:].triu() @ directions[first:]
    double_diagonal(scatter)
    seen = directions.T @ half
    return seen + seen.T
