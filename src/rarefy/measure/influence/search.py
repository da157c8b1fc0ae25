"""The search behind ``neighbours``: a block of queries against all references."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BLOCK = {"cpu": 128, "cuda": 2048}
"""Queries at a time."""
_STRIDE = {"cpu": 16384, "cuda": 32768}
"""References at a time: a multiple of the groups below."""
_GROUPS = 16
_SPARE = 6
"""Candidates beyond k that are measured again."""
_ROUNDOFF = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}


class References:
    """Rows to be found: ``numbers`` (ascending) and float32 coordinates, (row, width)."""

    def __init__(self, numbers: NDArray[np.int64], rows: Tensor) -> None:
        self.numbers, self._rows = numbers, rows
        self._squares = _square_sums(rows)

    def place_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where some rows are among the references; -1 where they are not."""
        if len(self.numbers) == 0:
            return np.full(len(numbers), -1)
        places = np.searchsorted(self.numbers, numbers).clip(max=len(self.numbers) - 1)
        return np.where(self.numbers[places] == numbers, places, -1)

    def search(
        self, queries: Tensor, skip: NDArray[np.int64], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Places and squared distances of the k nearest, without each query's own place ``skip``:
        (query, k), or fewer columns for fewer references; -1 and inf where one is missing."""
        k = min(k, len(self._rows))
        if k == 0 or len(queries) == 0:
            return np.zeros((len(queries), 0), dtype=np.int64), np.zeros((len(queries), 0))
        left_out = torch.from_numpy(skip).to(queries.device)
        wanted = min(k + _SPARE, len(self._rows))
        values, places = self._candidates(queries, left_out, wanted)
        places = places.sort(dim=1).values  # equal distances then stay in the order of numbers
        squares = self._measured(queries, places).masked_fill_(
            places == left_out[:, None], torch.inf
        )
        squares, order = squares.sort(dim=1, stable=True)
        squares, places = squares[:, :k], places.gather(1, order)[:, :k]
        for row in self._unsure(queries, squares[:, -1], values[:, -1], wanted).tolist():
            places[row], squares[row] = self._search_exactly(queries[row], int(skip[row]), k)
        places[squares == torch.inf] = -1
        return places.cpu().numpy(), squares.cpu().numpy()

    def _candidates(self, queries: Tensor, left_out: Tensor, wanted: int) -> tuple[Tensor, Tensor]:
        """The ``wanted`` smallest of |p|^2 - 2 p.q, ascending, and where they are."""
        stride = _STRIDE[queries.device.type]
        best = queries.new_empty(len(queries), 0)
        where = left_out.new_empty(len(queries), 0)
        for first in range(0, len(self._rows), stride):
            last = min(first + stride, len(self._rows))
            own = self._squares[first:last].float()
            block = torch.addmm(own, queries, self._rows[first:last].T, alpha=-2)
            inside = ((left_out >= first) & (left_out < last)).nonzero()[:, 0]
            block[inside, left_out[inside] - first] = torch.inf
            values, places = smallest(block, min(wanted, last - first))
            values, places = torch.cat([best, values], 1), torch.cat([where, places + first], 1)
            best, order = values.topk(min(wanted, values.shape[1]), largest=False)
            where = places.gather(1, order)
        return best, where

    def _measured(self, queries: Tensor, places: Tensor) -> Tensor:
        """Squared distances in float64, from differences; a few queries at a time."""
        made = torch.empty(places.shape, dtype=torch.float64, device=queries.device)
        for first in range(0, len(queries), 32):
            here = slice(first, first + 32)
            made[here] = _distances(self._rows[places[here]], queries[here, None])
        return made

    def _unsure(self, queries: Tensor, kth: Tensor, last: Tensor, wanted: int) -> Tensor:
        """Queries for which a reference that was not measured again could be as near as the k-th.

        A float32 inner product of w terms is off by at most about w u |p| |q|, the form that is
        compared by twice that and the rounding of |p|^2 and of the result.
        """
        if wanted == len(self._rows):
            return torch.zeros(0, dtype=torch.int64)
        own = _square_sums(queries)
        largest = self._squares.max()
        error = _bound(queries.shape[1], own, largest, torch.float32)
        return (last.double() - error <= kth - own).nonzero()[:, 0]

    def _search_exactly(self, query: Tensor, skip: int, k: int) -> tuple[Tensor, Tensor]:
        """One query in float64, measuring again all that could be among the k nearest."""
        parts = []
        exact = query.double()
        for first in range(0, len(self._rows), 1 << 14):
            part = self._rows[first : first + (1 << 14)].double()
            parts.append(part.square().sum(dim=1) - 2 * (part @ exact))
        values = torch.cat(parts)
        if skip >= 0:
            values[skip] = torch.inf
        kth = values.kthvalue(k).values
        largest = self._squares.max()
        error = _bound(len(query), exact.square().sum(), largest, torch.float64)
        places = (values <= kth + 2 * error).nonzero()[:, 0]
        found = [
            _distances(self._rows[places[first : first + 4096]], query[None])
            for first in range(0, len(places), 4096)
        ]
        squares, order = torch.cat(found).sort(stable=True)
        return places[order[:k]], squares[:k]


def smallest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` smallest of each row, ascending, and where they are.

    The row is cut into groups. The smallest elements lie in as many groups, those with the smallest
    minima, and to choose among minima is several times cheaper than to choose among all.
    """
    size = values.shape[1]
    per_group = size // _GROUPS
    if size % _GROUPS or count * 2 > per_group:
        return values.topk(count, largest=False)
    grouped = values.view(len(values), _GROUPS, per_group)  # element j is in group j % per_group
    groups = grouped.amin(dim=1).topk(count, largest=False).indices
    inside = grouped.gather(2, groups[:, None].expand(-1, _GROUPS, -1)).flatten(1)
    found, order = inside.topk(count, largest=False)
    places = groups.gather(1, order % count) + order.div(count, rounding_mode="floor") * per_group
    return found, places


def _square_sums(rows: Tensor) -> Tensor:
    """|x|^2 in float64, without a float64 copy of all rows."""
    made = torch.empty(len(rows), dtype=torch.float64, device=rows.device)
    for first in range(0, len(rows), 1024):
        made[first : first + 1024] = rows[first : first + 1024].double().square_().sum(dim=1)
    return made


def _distances(rows: Tensor, query: Tensor) -> Tensor:
    return (rows.double() - query.double()).square_().sum(dim=-1)


def _bound(width: int, own: Tensor, largest: Tensor, kind: torch.dtype) -> Tensor:
    """How far |p|^2 - 2 p.q may be off: sums of ``width`` terms, then two roundings."""
    roundoff = _ROUNDOFF[kind]
    product = (own * largest).sqrt()
    return roundoff * ((2 * width + 12) * product + (width + 4) * largest)
