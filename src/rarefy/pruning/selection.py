"""Which weights are kept: from scores of all layers to their masks, for each granularity.

    filter   of every filter the weights of largest score (TopK of 002)
    layer    of every layer
    global   of all layers together
    neuron   whole filters, by the norm of their scores (as in 000)
    N:M      of every M consecutive inputs of a filter the N largest; of a convolution at each place
             of its kernel, as the kernels and engines that make use of 2:4 want it

All choose by ``masks.keep_largest``: exact counts, of equal scores the first stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.pruning.distributions import Keep
from rarefy.pruning.filters import Filters
from rarefy.pruning.masks import keep_largest, kept_count

GRANULARITIES = ("filter", "layer", "global", "neuron")


@dataclass(frozen=True)
class Granularity:
    """``kind``: one of ``GRANULARITIES`` or "n:m", which keeps ``n`` of every ``m``."""

    kind: str
    n: int = 0
    m: int = 0

    @classmethod
    def parse(cls, word: str) -> Granularity:
        if word in GRANULARITIES:
            return cls(word)
        pattern = re.fullmatch(r"(\d{1,18}):(\d{1,18})", word)
        if pattern is None:
            known = ", ".join(GRANULARITIES)
            raise bad_value("granularity", word, f"must be one of {known}, or N:M such as '2:4'")
        n, m = int(pattern[1]), int(pattern[2])
        if not 1 <= n <= m:
            raise bad_value("granularity", word, "N:M needs 1 <= N <= M")
        return cls("n:m", n, m)

    def check(self, layers: Mapping[str, Filters], keep: Mapping[str, Keep]) -> None:
        """Refuse counts that a layer cannot have, naming it."""
        if self.kind == "global":
            count = next(iter(keep.values()))
            total = sum(each.count * each.size for each in layers.values())
            if isinstance(count, int) and count > total:
                raise bad_value("keep", count, f"all layers together have {total} weights")
            return
        for name, filters in layers.items():
            inputs = filters.dimensions[1]
            if self.kind == "n:m" and inputs % self.m:
                raise UsageError(
                    f"granularity {self.n}:{self.m}: {name} has {inputs} inputs per filter, "
                    f"not a multiple of {self.m}; leave it out with layers="
                )
            most, words = self._candidates(filters)
            count = keep[name]
            if self.kind != "n:m" and isinstance(count, int) and count > most:
                raise bad_value("keep", count, f"{name} has {words}")

    def _candidates(self, filters: Filters) -> tuple[int, str]:
        if self.kind == "filter":
            return filters.size, f"filters of {filters.size} weights"
        if self.kind == "neuron":
            return filters.count, f"{filters.count} filters"
        return filters.count * filters.size, f"{filters.count * filters.size} weights"

    def masks(
        self,
        layers: Mapping[str, Filters],
        scores: Mapping[str, Tensor],
        keep: Mapping[str, Keep],
        way: float = 0.0,
    ) -> dict[str, Tensor]:
        """True where a weight is kept, in the shape of each weight. ``way``: how far a gradual
        schedule still is from ``keep`` (1: everything stays)."""
        if self.kind == "global":
            return self._everywhere(layers, scores, next(iter(keep.values())), way)
        rows = {name: self.candidates(filters, scores[name]) for name, filters in layers.items()}
        found = {}
        for (_, count), names in self._alike(rows, keep, way).items():
            together = (
                torch.cat([rows[name] for name in names]) if len(names) > 1 else rows[names[0]]
            )
            pieces = keep_largest(together, count).split([len(rows[name]) for name in names])
            for name, kept in zip(names, pieces, strict=True):
                found[name] = self.spread(layers[name], kept)
        return {name: found[name] for name in layers}

    def _alike(
        self, rows: Mapping[str, Tensor], keep: Mapping[str, Keep], way: float
    ) -> dict[tuple[object, int], list[str]]:
        """Layers whose rows are chosen in one go: on a GPU those with rows of one length and count,
        because there a layer costs a launch, not its size; else each for itself."""
        groups: dict[tuple[object, int], list[str]] = {}
        for name, each in rows.items():
            share: Keep = self.n / self.m if self.kind == "n:m" else keep[name]
            kind = (each.shape[1], each.dtype, each.device) if each.is_cuda else name
            groups.setdefault((kind, count_to_keep(share, each.shape[1], way)), []).append(name)
        return groups

    def candidates(self, filters: Filters, scores: Tensor) -> Tensor:
        """Scores laid out so that each row keeps its own count: (row, candidate)."""
        if self.kind == "neuron":
            return filters.norms(scores)[None]
        rows = filters.rows(scores)
        if self.kind == "filter":
            return rows
        if self.kind in ("layer", "global"):
            return rows.reshape(1, -1)
        by_input = rows.reshape(filters.count, filters.dimensions[1], -1)
        return by_input.transpose(1, 2).reshape(-1, self.m)

    def spread(self, filters: Filters, kept: Tensor) -> Tensor:
        """From a mask of ``candidates`` to one of the weight."""
        if self.kind == "neuron":
            kept = kept.reshape(-1, 1).expand(filters.count, filters.size)
        if self.kind == "n:m":
            by_place = kept.reshape(filters.count, -1, filters.dimensions[1])
            kept = by_place.transpose(1, 2)
        return filters.weights(kept.reshape(filters.count, filters.size))

    def _everywhere(
        self, layers: Mapping[str, Filters], scores: Mapping[str, Tensor], keep: Keep, way: float
    ) -> dict[str, Tensor]:
        parts = {name: self.candidates(layers[name], scores[name]) for name in layers}
        together = torch.cat(list(parts.values()), dim=1)
        kept = keep_largest(together, count_to_keep(keep, together.shape[1], way))
        pieces = kept.split([part.shape[1] for part in parts.values()], dim=1)
        return {
            name: self.spread(layers[name], piece)
            for name, piece in zip(parts, pieces, strict=True)
        }


@lru_cache(maxsize=4096, typed=True)  # asked at every update; a count is not a share: 1 is not 1.0
def count_to_keep(keep: Keep, candidates: int, way: float = 0.0) -> int:
    """How many of ``candidates`` stay; ``way``: see ``Granularity.masks``."""
    if isinstance(keep, int):
        keep = keep / candidates
    share = keep + (1 - keep) * way
    return int(kept_count(torch.tensor(1 - share, dtype=torch.float64), candidates))
