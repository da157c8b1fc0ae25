"""Scores of rows that come in pieces and are never in memory together.

Two readings: the first adds up count, mean and scatter matrix of each class (``ClassStatistics``),
the second scores row by row. Where the scatter matrices of all classes do not fit into memory,
classes go in groups, with two readings each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.measure.influence.by_covariance import measured
from rarefy.measure.influence.class_statistics import ClassStatistics
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.leave_one_out import Floats, check_ddof
from rarefy.measure.influence.mahalanobis import FULL_WIDTH, ClassMetric, class_metric
from rarefy.measure.influence.passes import scores_of
from rarefy.measure.influence.products import (
    double_diagonal,
    halve_diagonal,
    square_norm,
)
from rarefy.measure.influence.rows import MEMORY, TOO_LARGE, Rows
from rarefy.measure.influence.state import Arrays, State

CHANGED = "the data changed while they were read: each reading must give the same rows"
AT_ONCE = 1024
"""Rows made float64 at a time."""

Chunk = tuple[NDArray[Any], NDArray[np.int64]]
Scored = tuple[int, NDArray[np.int64], NDArray[np.int64], dict[str, Floats]]
"""Of a chunk: its rows, which of them are of the group, their labels and scores."""


@dataclass(frozen=True, eq=False)
class Source:
    """Labelled rows in pieces, which are gone through several times."""

    pieces: Iterable[Any]
    read: Callable[[Any], Iterable[Chunk]]
    """A piece's chunks: features (m, d) and labels 0 .. classes - 1, the same at every reading."""
    sizes: Sequence[int]
    """Rows of each piece."""
    width: int
    classes: int


class Results(Protocol):
    """What takes the scores."""

    def put(
        self, first: int, labels: NDArray[np.int64], where: NDArray[np.int64], scores: Arrays
    ) -> None:
        """Of the rows ``first`` + ``where``: their labels, and the columns of ``scores_of``."""

    def flush(self) -> None:
        """Make sure that nothing of it is lost."""


@dataclass(frozen=True, eq=False)
class Finished:
    """What the second reading needs of the classes ``labels``."""

    labels: range
    statistics: ClassStatistics
    """With halved diagonals."""
    metrics: list[ClassMetric | None]
    counts: NDArray[np.int64]
    of_classes: Arrays
    ddof: int


def groups_of(classes: int, width: int, memory: int) -> list[range]:
    """Classes whose statistics are in memory together, in half of it: the matrix, and in single
    precision its inverse root."""
    each = width * (12 * width + 40)
    size = memory // 2 // each
    if size < 1:
        raise bad_value("memory", memory, f"must be at least {2 * each} for {width} features")
    return [range(first, min(first + size, classes)) for first in range(0, classes, size)]


def stream_scores(
    source: Source,
    results: Results,
    *,
    ddof: int = 1,
    memory: int = MEMORY,
    device: torch.device | str = "cpu",
    state: State | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[NDArray[np.int64], Floats]:
    """Put the scores of all rows into ``results``. Back come the number of rows of each class, and
    the sum of their squared distances to its mean.

    state: where an interrupted call goes on, and when it stops. progress: is told the share of the
    work just done.
    """
    check_ddof(ddof)
    where = torch.device(device)
    state = state or State(None, {})
    groups = groups_of(source.classes, source.width, memory)
    starts = np.concatenate([[0], np.cumsum(source.sizes)]).astype(np.int64)
    counts, traces = np.zeros(source.classes, dtype=np.int64), np.zeros(source.classes)
    stored = state.load() or {}
    try:
        at_group, at_reading, at_piece = map(int, stored.get("position", (0, 0, 0)))
        counts[:], traces[:] = stored.get("all_counts", 0), stored.get("traces", 0.0)
        if not (at_group < len(groups) and at_piece < len(starts)):
            raise ValueError(f"position {at_group}, {at_piece}")
    except ValueError as error:
        raise state.damaged(f"state.npz: {str(error)[:120]}") from None

    def tell(readings: float) -> None:
        if progress is not None:
            progress(readings / (2 * len(groups)))

    def pieces(first: int) -> Iterator[tuple[int, Any]]:
        return itertools.islice(enumerate(source.pieces), first, None)

    if stored:
        tell(2 * at_group + at_reading + starts[at_piece] / starts[-1])
    for number, labels in enumerate(groups):
        if number < at_group:
            continue
        resumed = number == at_group and bool(stored)
        statistics = _begun(stored if resumed else {}, len(labels), source.width, where, state)
        reading, begin = (at_reading, at_piece) if resumed else (0, 0)

        def done(*position: int, held: ClassStatistics = statistics) -> None:
            def arrays() -> Arrays:
                results.flush()
                at = {"position": np.array(position), "all_counts": counts, "traces": traces}
                return {**held.arrays(), **at}

            state.unit_done(arrays)

        with CorePool(where, len(labels)) as pool:
            if reading == 0:
                for place, piece in pieces(begin):
                    _gather(source, labels, piece, int(starts[place]), statistics, pool)
                    tell(source.sizes[place] / starts[-1])
                    done(number, 0, place + 1)
                begin = 0
            elif begin:  # saved while the diagonals were halved
                for scatter in statistics.scatters:
                    double_diagonal(scatter)
            counts[labels] = statistics.counts
            traces[labels] = [float(one.diagonal().sum()) for one in statistics.scatters]
            finished = _finish(labels, statistics, counts, ddof, pool)
            for place, piece in pieces(begin):
                first = int(starts[place])
                for size, mine, of_rows, scores in _score(source, piece, finished, pool):
                    if first + size <= starts[place + 1]:
                        results.put(first, of_rows, mine, scores)
                    first += size
                if first != starts[place + 1]:
                    raise UsageError(CHANGED)
                tell(source.sizes[place] / starts[-1])
                if place + 1 < len(source.sizes):
                    done(number, 1, place + 1)
    return counts, traces


# ------------------------------------------------------------------------------------- one reading


def _begun(
    stored: Arrays, classes: int, width: int, device: torch.device, state: State
) -> ClassStatistics:
    if "pivots" not in stored:
        return ClassStatistics(classes, width, device)
    assert state.folder is not None
    return ClassStatistics.from_arrays(stored, state.folder / "state.npz", device)


def _gather(
    source: Source,
    labels: range,
    piece: Any,
    before: int,
    statistics: ClassStatistics,
    pool: CorePool,
) -> None:
    for features, of_rows in source.read(piece):
        rows = Rows(features, of_rows, source.classes, before)
        statistics.add(rows, labels, pool, at_once=AT_ONCE)
        before += len(rows)


def _finish(
    labels: range,
    statistics: ClassStatistics,
    counts: NDArray[np.int64],
    ddof: int,
    pool: CorePool,
) -> Finished:
    width = statistics.width
    of_classes = {name: np.full(len(counts), np.nan) for name in ("square_norms", "weights")}

    def finish(at: int) -> ClassMetric | None:
        scatter, metric = statistics.scatters[at], None
        trace, norm = float(scatter.diagonal().sum()), square_norm(scatter)
        if not np.isfinite(norm):
            raise UsageError(TOO_LARGE)
        of_classes["square_norms"][labels[at]] = norm
        if width > FULL_WIDTH:
            of_classes["weights"][labels[at]] = 0.0  # NaN would say that there is no spread
        else:
            count = int(counts[labels[at]])
            metric = class_metric(scatter.clone(), count, trace, norm, width, None)
            of_classes["weights"][labels[at]] = np.nan if metric is None else metric.weight
        halve_diagonal(scatter)
        return metric

    metrics = pool.map(finish, range(len(labels)))
    return Finished(labels, statistics, metrics, counts.copy(), of_classes, ddof)


def _score(source: Source, piece: Any, finished: Finished, pool: CorePool) -> Iterator[Scored]:
    labels, statistics = finished.labels, finished.statistics
    for features, of_rows in source.read(piece):
        rows = Rows(features, of_rows, source.classes)
        found = {name: np.full(len(rows), np.nan) for name in ("q", "r", "norm", "mahalanobis")}

        def score(at: int, rows: Rows = rows, found: Arrays = found) -> None:
            indices = rows.of_class(labels[at])
            for start in range(0, len(indices), AT_ONCE):
                part = indices[start : start + AT_ONCE]
                taken = rows.take(part, statistics.device)
                q, r, norm, distances = measured(statistics, at, taken, finished.metrics[at])
                for name, values in (("q", q), ("r", r), ("norm", norm)):
                    found[name][part] = values.cpu().numpy()
                if distances is not None:
                    found["mahalanobis"][part] = distances.cpu().numpy()

        pool.map(score, range(len(labels)))
        inside = (of_rows >= labels.start) & (of_rows < labels.stop)
        mine = np.flatnonzero(inside)
        of_mine = {name: values[mine] for name, values in found.items()}
        scores = scores_of(
            of_mine, of_rows[mine], finished.counts, finished.of_classes, 1.0, finished.ddof
        )
        yield len(rows), mine, of_rows[mine], scores
