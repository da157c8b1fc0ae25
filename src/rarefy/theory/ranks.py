"""Where one coordinate stands among many: laws of ranks, averaged over settings.

Given that each of ``many`` independent coordinates is larger with chance p, and k of a ``few``
others are with a known law, the rank is a binomial plus that law. An average over thousands of
settings is affordable because the settings are first gathered on a grid of p: ``RankTally``.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rarefy.core.errors import bad_value

Array = NDArray[np.float64]
MOST_NODES = 12
_NO_ATOM = 1e-9
_TINY = 1e-150
"""Stands for 0 in a logarithm."""


def binomial_law(count: int, chance: Array) -> Array:
    """P(k of ``count``), k = 0 .. count: (node, count + 1) from chances (node,)."""
    inside = np.asarray(chance, dtype=np.float64)
    if not ((inside >= 0) & (inside <= 1)).all():
        raise bad_value("chance", chance, "must be between 0 and 1")
    return _law(count, np.log(np.maximum(inside, _TINY)), np.log1p(-inside.clip(max=1 - 1e-16)))


def _law(count: int, log_chance: Array, log_rest: Array) -> Array:
    k = np.arange(count + 1)
    choose = special.gammaln(count + 1) - special.gammaln(k + 1) - special.gammaln(count - k + 1)
    return np.exp(choose + log_chance[:, None] * k + log_rest[:, None] * (count - k))


@lru_cache(maxsize=4096)
def binomial_nodes(count: float, chance: float) -> tuple[tuple[float, float], ...]:
    """Binomial(count, chance) as (value, probability) pairs: itself where it has few atoms, else
    its Gauss quadrature, exact for polynomials up to degree 23 (Jacobi matrix of the Krawtchouk
    polynomials, which makes sense for a count that is not whole, too)."""
    if not 0 <= count < math.inf:
        raise bad_value("count", count, "must be finite and at least 0")
    if not 0 < chance < 1:
        raise bad_value("chance", chance, "must lie between 0 and 1")
    if count == int(count):
        law = binomial_law(int(count), np.array([chance]))[0]
        atoms = np.flatnonzero(law > _NO_ATOM)
        if len(atoms) <= 2 * MOST_NODES:
            return tuple((float(k), float(law[k] / law[atoms].sum())) for k in atoms)
    order = np.arange(min(MOST_NODES, math.floor(count) + 1))
    on = chance * (count - order) + order * (1 - chance)
    beside = np.sqrt(order * chance * (1 - chance) * (count - order + 1))[1:]
    nodes, vectors = np.linalg.eigh(np.diag(on) + np.diag(beside, 1) + np.diag(beside, -1))
    values = nodes.clip(0, count)
    return tuple((float(k), float(v**2)) for k, v in zip(values, vectors[0], strict=True))


class RankTally:
    """Law of how many of ``many`` + ``few`` coordinates are larger, averaged over added nodes.

    The grid is one of arcsin(sqrt(p)), on which every binomial is about equally wide; putting a
    node between its two neighbours widens it by less than one part in a thousand.
    """

    def __init__(self, many: int, few: int) -> None:
        self.many, self.few = many, few
        self._weight = np.zeros((_grid_size(many) + 1, few + 1))

    def add(self, weight: Array, chance: Array, few: Array) -> None:
        """weight, chance (that one of the many is larger): (node,); few: P(k of the few are
        larger), (node, few + 1)."""
        last = len(self._weight) - 1
        place = np.arcsin(np.sqrt(chance)) / (math.pi / 2) * last
        low = np.minimum(place.astype(int), last - 1)
        share = (place - low)[:, None]
        values = weight[:, None] * few
        np.add.at(self._weight, low, values * (1 - share))
        np.add.at(self._weight, low + 1, values * share)

    def law(self) -> Array:
        """P(exactly k are larger), k = 0 .. many + few; read-only."""
        rows = self._weight.T @ _many_law(self.many)
        found = np.zeros(self.many + self.few + 1)
        for larger, row in enumerate(rows):
            found[larger : larger + len(row)] += row
        found /= found.sum()
        found.flags.writeable = False  # callers cache it
        return found


def _grid_size(many: int) -> int:
    return math.ceil(100 * math.sqrt(many))


@lru_cache(maxsize=8)
def _many_law(many: int) -> Array:
    """Binomial laws on the grid, (grid, many + 1)."""
    angle = np.linspace(0, math.pi / 2, _grid_size(many) + 1)
    up, down = (2 * np.log(np.maximum(side, _TINY)) for side in (np.sin(angle), np.cos(angle)))
    return _law(many, up, down)
