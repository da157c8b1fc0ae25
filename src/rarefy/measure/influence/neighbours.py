"""Nearest neighbours by blocked matrix products: exact, on a CPU and on a GPU.

Distances are compared in float32 from inner products. The few best candidates of a row are then
measured again in float64 from differences; where rounding could have hidden a nearer one (a bound
says so), the row is searched again in float64. Equal distances are ordered by row number, and a
sample is kept from being its own neighbour by its number, so that its exact copies still count.

The cost is 2 x queries x references x width FLOPs. ``make_space`` (fewer dimensions) and
``reference_rows`` (fewer references, of every class some) keep it within bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import OutOfTime, bad_value
from rarefy.core.precision import matrix_products
from rarefy.measure.influence.core_pool import CorePool
from rarefy.measure.influence.mahalanobis import principal_directions, seeded_sample
from rarefy.measure.influence.rows import MEMORY, Rows
from rarefy.measure.influence.search import BLOCK, References

OF_CLASS = 50
"""References that a rare class has at least, if it has as many."""
_SAMPLE = 2048
_AT_ONCE = 1024
_VOTES = 1 << 24
"""Pairs of neighbours compared at a time."""


@dataclass(frozen=True)
class Neighbours:
    """Row numbers of the nearest, (query, k), nearest first, and their distances; -1 and NaN where
    there are fewer than k."""

    indices: NDArray[np.int64]
    distances: NDArray[np.float64]
    references: int
    """Of so many rows they were the nearest."""
    width: int
    """In so many dimensions."""


@dataclass(frozen=True)
class Space:
    """Where distances are measured: rows minus ``mean``, (d,), times ``directions``, (d, width) (or
    as they are), rounded to float32."""

    mean: Tensor
    directions: Tensor | None

    def coordinates(self, rows: Tensor) -> Tensor:
        rows = rows.sub_(self.mean)
        return (rows if self.directions is None else rows @ self.directions).float()

    def width(self) -> int:
        return len(self.mean) if self.directions is None else self.directions.shape[1]


def make_space(
    features: NDArray[Any],
    width: int | None = None,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
) -> Space:
    """At most ``width`` dimensions (None: all): the leading principal directions of a seeded sample
    of rows."""
    if width is not None and width < 1:
        raise bad_value("width", width, "must be at least 1")
    rows = _rows(features)
    picked = seeded_sample(rows.labels, 1, _SAMPLE, seed)
    sample = rows.take(picked, device)
    mean = sample.mean(dim=0)
    if not bool(torch.isfinite(mean).all()):
        rows.complain_of_nonfinite()
    if width is None or width >= rows.width:
        return Space(mean, None)
    return Space(mean, principal_directions(sample.sub_(mean), width, seed))


def reference_rows(
    labels: NDArray[np.int64], classes: int, most: int, seed: int = 0
) -> NDArray[np.int64]:
    """About ``most`` seeded row numbers, ascending, drawn from all rows alike; a rare class, of
    which such a draw has next to none, is filled up to ``OF_CLASS`` rows (or all that it has). That
    adds at most half as many again: a sample's own class must have a chance to be near."""
    present = len(np.unique(labels))
    if most < present:
        raise bad_value("most", most, f"must be at least {present}, one for each class")
    drawn = seeded_sample(labels, classes, most, seed)
    wanted = min(OF_CLASS, most // (2 * present))
    have = np.bincount(labels[drawn], minlength=classes)
    everywhere = np.bincount(labels, minlength=classes)
    rare = np.flatnonzero((have < wanted) & (have < everywhere))
    parts = [drawn]
    left = np.setdiff1d(np.arange(len(labels)), drawn, assume_unique=True)
    for label, rows in zip(rare, _by_class(left, labels, rare), strict=True):
        missing = int(wanted - have[label])
        some = seeded_sample(np.zeros(len(rows), dtype=np.int64), 1, missing, seed)
        parts.append(rows[some])
    return np.sort(np.concatenate(parts))


def nearest(
    features: NDArray[Any],
    k: int = 10,
    *,
    queries: NDArray[np.int64] | None = None,
    references: NDArray[np.int64] | None = None,
    space: Space | None = None,
    scale: float = 1.0,
    device: torch.device | str = "cpu",
    memory: int = MEMORY,
    progress: Callable[[float], None] | None = None,
    deadline: Callable[[], bool] | None = None,
) -> Neighbours:
    """The k nearest of the rows ``references`` for each of the rows ``queries`` (row numbers; None:
    all), itself left out. ``progress`` and ``deadline`` as in ``score_classes``; nothing is kept
    when the time is over."""
    if k < 1:
        raise bad_value("k", k, "must be at least 1")
    rows, where = _rows(features), torch.device(device)
    space = make_space(features, device=where) if space is None else space
    asked = np.arange(len(rows)) if queries is None else np.asarray(queries, dtype=np.int64)
    among = np.arange(len(rows)) if references is None else np.unique(references)
    for name, chosen in (("queries", asked), ("references", among)):
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < len(rows):
            raise bad_value(name, chosen[[0, -1]].tolist(), f"must be in 0..{len(rows) - 1}")
    need = 4 * len(among) * space.width() + 16 * len(asked) * k
    if need > memory:
        raise bad_value(
            "memory",
            memory,
            f"must be at least {need} for {len(among)} references in {space.width()} dimensions",
        )
    found = Neighbours(
        np.full((len(asked), k), -1), np.full((len(asked), k), np.nan), len(among), space.width()
    )
    starts = list(range(0, len(asked), BLOCK[where.type]))
    with CorePool(where) as pool, matrix_products("float32", where):
        held = References(among, _coordinates(rows, among, space, pool, where))

        def search(first: int) -> None:
            if deadline is not None and deadline():
                raise OutOfTime(
                    "stopped while looking for neighbours, which begins anew the next time"
                )
            here = np.arange(first, min(first + BLOCK[where.type], len(asked)))
            queries = _coordinates(rows, asked[here], space, None, where)
            _fill(found, here, held, asked, queries, scale)
            if progress is not None:
                progress(len(here) / len(asked))

        pool.map(search, starts)
    return found


def disagreement(
    neighbours: Neighbours, labels: NDArray[np.int64], own: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each query: the share of its neighbours that have another label (NaN if it has none), and
    the most common label among them (-1 if none; of equally common ones that of the nearest).

    labels: of all rows of the data; own: of the queries.
    """
    there = neighbours.indices >= 0
    theirs = np.where(there, labels[neighbours.indices], -1)
    amount = there.sum(axis=1)
    other = ((theirs != own[:, None]) & there).sum(axis=1)
    share = np.full(len(own), np.nan)
    np.divide(other, amount, out=share, where=amount > 0)
    common = np.full(len(own), -1)
    step = max(1, _VOTES // max(1, theirs.shape[1]) ** 2)
    for first in range(0, len(own), step):
        part = slice(first, first + step)
        same = theirs[part, :, None] == theirs[part, None, :]
        votes = (same & there[part, None, :]).sum(axis=2) * there[part]
        common[part] = np.take_along_axis(theirs[part], votes.argmax(axis=1)[:, None], 1)[:, 0]
    return share, common


def typical_neighbours(
    features: NDArray[Any],
    labels: NDArray[np.int64],
    percentile: NDArray[np.float64],
    asked: NDArray[np.int64],
    k: int = 5,
    *,
    below: float = 50.0,
    space: Space | None = None,
    scale: float = 1.0,
    device: torch.device | str = "cpu",
) -> Neighbours:
    """The nearest samples of the same class whose score lies at or below a percentile of it: what
    is usual and yet most like each of the samples ``asked`` (row numbers)."""
    asked, where = np.asarray(asked, dtype=np.int64), torch.device(device)
    space = make_space(features, device=where) if space is None else space
    rows, typical = _rows(features), np.flatnonzero(percentile <= below)  # a NaN is not
    found = Neighbours(
        np.full((len(asked), k), -1), np.full((len(asked), k), np.nan), len(typical), space.width()
    )
    present, theirs = np.unique(labels[asked], return_inverse=True)
    mine = _by_class(np.arange(len(asked)), theirs, np.arange(len(present)))
    among = _by_class(typical, labels, present)
    with CorePool(where) as pool, matrix_products("float32", where):

        def search(place: int) -> None:
            held = References(among[place], _coordinates(rows, among[place], space, None, where))
            for first in range(0, len(mine[place]), BLOCK[where.type]):
                here = mine[place][first : first + BLOCK[where.type]]
                queries = _coordinates(rows, asked[here], space, None, where)
                _fill(found, here, held, asked, queries, scale)

        pool.map(search, range(len(present)))
    return found


def _fill(
    found: Neighbours,
    here: NDArray[np.int64],
    held: References,
    asked: NDArray[np.int64],
    queries: Tensor,
    scale: float,
) -> None:
    """Search for some of those who asked, and write down what is found."""
    k = found.indices.shape[1]
    places, squares = held.search(queries, held.place_of(asked[here]), k)
    there, columns = places >= 0, slice(0, places.shape[1])
    found.indices[here, columns] = np.where(there, held.numbers[places], -1)
    found.distances[here, columns] = np.where(there, np.sqrt(squares) * abs(scale), np.nan)


def _by_class(
    rows: NDArray[np.int64], labels: NDArray[np.int64], classes: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The rows of each of some classes, in order; ``labels`` are of all rows."""
    ordered = rows[np.argsort(labels[rows], kind="stable")]
    first = np.searchsorted(labels[ordered], classes, side="left")
    last = np.searchsorted(labels[ordered], classes, side="right")
    return [ordered[start:stop] for start, stop in zip(first, last, strict=True)]


def _rows(features: NDArray[Any]) -> Rows:
    return Rows(features, np.zeros(len(features), dtype=np.int64), 1)


def _coordinates(
    rows: Rows, picked: NDArray[np.int64], space: Space, pool: CorePool | None, device: torch.device
) -> Tensor:
    """(row, width), float32; made in pieces, so that little is float64 at a time."""
    made = torch.empty(len(picked), space.width(), device=device)

    def fill(first: int) -> None:
        part = picked[first : first + _AT_ONCE]
        made[first : first + _AT_ONCE] = space.coordinates(rows.take(part, device))

    starts = range(0, len(picked), _AT_ONCE)
    if pool is None:
        for first in starts:
            fill(first)
    else:
        pool.map(fill, starts)
    if not bool(torch.isfinite(made).all()):
        rows.complain_of_nonfinite()
    return made
