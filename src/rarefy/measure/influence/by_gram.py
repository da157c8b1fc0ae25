"""The Gram route: one class at a time by the inner products of its rows, for classes of n < 2 d.

About n^2 d FLOPs. The class stays in memory, in its own type, where there is room (n d bytes for
pixels); else its rows are read again for each strip of tiles."""

from __future__ import annotations

import torch
from torch import Tensor

from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.leave_one_out import gram_route, row_squares
from rarefy.measure.influence.mahalanobis import inside
from rarefy.measure.influence.plan import GramStep
from rarefy.measure.influence.products import add_scatter
from rarefy.measure.influence.work import Work, strips_share


class _Centred:
    """The rows of one class minus their mean. Kept as they were given and made float64 when they
    are needed; centred for good if they are float64 already; or read anew each time."""

    def __init__(self, work: Work, step: GramStep, pool: CorePool) -> None:
        self._work, self.indices = work, work.rows.of_class(step.label)
        count = len(self.indices)
        self._pivot = work.rows.take(self.indices[:1], work.device)[0]
        self._offset = torch.zeros_like(self._pivot)
        self.norms = self._pivot.new_empty(count)
        self._kept = work.rows.raw(self.indices, work.device) if step.kept else None
        self._centred = self._kept is not None and self._kept.dtype == torch.float64

        def read(first: int) -> Tensor:
            last = min(first + work.plan.segment, count)
            taken = self._taken(first, last, borrowed=True)
            self.norms[first:last] = torch.linalg.vector_norm(taken, dim=1)
            return taken.sub_(self._pivot).sum(dim=0)

        for part in pool.map(read, self.starts(work.plan.segment)):
            self._offset += part / count
        if not bool(torch.isfinite(self._offset).all()):
            work.rows.complain_of_nonfinite()
        if self._kept is not None and self._centred:
            self._kept.sub_(self._offset)

    def __len__(self) -> int:
        return len(self.indices)

    def starts(self, step: int) -> range:
        return range(0, len(self), step)

    @property
    def mean(self) -> Tensor:
        return self._pivot + self._offset

    def load(self, first: int, last: int) -> Tensor:
        """New, or a view of rows that are kept so."""
        return self._less_mean(self._taken(first, last))

    def borrow(self, first: int, last: int) -> Tensor:
        """The same until this thread borrows again: where large tensors are made and freed in turn,
        the allocator keeps a hundred megabytes of them."""
        return self._less_mean(self._taken(first, last, borrowed=True))

    def _less_mean(self, taken: Tensor) -> Tensor:
        return taken if self._centred else taken.sub_(self._pivot).sub_(self._offset)

    def _taken(self, first: int, last: int, borrowed: bool = False) -> Tensor:
        """Float64."""
        if self._kept is None:
            return self._work.rows.take(self.indices[first:last], self._work.device)
        kept = self._kept[first:last]
        if borrowed and not self._centred:
            return self._work.rows.room(kept.shape, kept.device).copy_(kept)
        return kept.double()


def score_class(work: Work, step: GramStep, pool: CorePool) -> None:
    rows = _Centred(work, step, pool)
    count = len(rows)
    q = torch.zeros_like(rows.norms)
    if work.in_hand:
        q.copy_(torch.from_numpy(work.in_hand["q_so_far"]))
        work.in_hand = {}
    done = work.row
    for reached in gram_route(rows.load, rows.borrow, q, step.tile, pool, done):
        work.advance(strips_share(reached, count) - strips_share(done, count))
        done = reached
        work.unit_done(0, done, lambda: {"q_so_far": q.cpu().numpy()})
    work.keep_q(rows.indices, q)
    _measure_distances(work, step, rows, float(q.sum()), pool)


def _measure_distances(
    work: Work, step: GramStep, rows: _Centred, norm: float, pool: CorePool
) -> None:
    """Two more sweeps: the spread in the leading directions, then distances in its units."""
    count, segment = len(rows), work.plan.segment
    r = torch.empty_like(rows.norms)
    width = work.rows.width if work.directions is None else work.directions.shape[1]
    spread = r.new_zeros(width, width)
    seen = None if work.directions is None else r.new_empty(count, width)

    def look(first: int) -> None:
        here = slice(first, min(first + segment, count))
        taken = rows.borrow(here.start, here.stop)
        r[here] = row_squares(taken)
        if seen is not None:
            seen[here] = inside(taken, work.directions)

    def load(first: int) -> Tensor:
        last = min(first + segment, count)
        return rows.borrow(first, last) if seen is None else seen[first:last]

    pool.map(look, rows.starts(segment))
    for first in rows.starts(segment):
        add_scatter(spread, load(first))
    metric = work.class_known(step.label, rows.mean, float(r.sum()), norm, spread)

    def measure(first: int) -> None:
        here = slice(first, min(first + segment, count))
        distances = None if metric is None else metric.distances_inside(load(first), r[here])
        work.keep(rows.indices[here], r[here], rows.norms[here], distances)

    pool.map(measure, rows.starts(segment))
