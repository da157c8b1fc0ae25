"""Where samples lie on a map: features brought to two numbers, by PCA or, where installed, UMAP."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.measure.influence.neighbours import Space, make_space
from rarefy.tools.influence.neighbours import WIDTH
from rarefy.tools.samples.samples import Samples

KINDS = ("pca", "umap", "none")
LEARNT_FROM = 5_000
"""Samples from which UMAP learns the map; others are then put onto it."""


class SampleMap:
    """Positions of samples, (k, 2), asked for by row. ``by``: ``pca`` (the two leading principal
    directions) or ``umap``."""

    def __init__(self, samples: Samples, by: str = "pca", device: torch.device | str = "cpu"):
        if by not in KINDS[:2]:
            raise bad_value("map", by, f"must be one of {', '.join(KINDS)}")
        if by == "umap" and importlib.util.find_spec("umap") is None:
            raise UsageError("map='umap': needs the package umap-learn: pip install umap-learn")
        self.samples, self.by, self.device = samples, by, device

    def __call__(self, rows: Sequence[int]) -> NDArray[np.float64]:
        if self.by == "umap":
            return np.asarray(self._learnt.transform(self._coordinates(rows)), dtype=np.float64)
        found = self._coordinates(rows)
        wide = np.zeros((len(found), 2))
        wide[:, : min(2, found.shape[1])] = found[:, :2]
        return wide

    @property
    def words(self) -> str:
        return {"pca": "the two leading principal directions (PCA)", "umap": "UMAP"}[self.by]

    @cached_property
    def _space(self) -> Space:
        width = WIDTH if self.by == "umap" else 2
        return make_space(self.samples.features, width, device=self.device)

    @cached_property
    def _learnt(self) -> Any:
        umap = importlib.import_module("umap")
        step = max(1, -(-len(self.samples) // LEARNT_FROM))
        some = self._coordinates(range(0, len(self.samples), step))
        return umap.UMAP(random_state=0, n_neighbors=min(15, len(some) - 1)).fit(some)

    def _coordinates(self, rows: Sequence[int]) -> NDArray[np.float64]:
        held = np.asarray(self.samples.features[np.asarray(rows)], dtype=np.float64)
        found = self._space.coordinates(torch.from_numpy(held).to(self._space.mean.device))
        return np.asarray(found.cpu().numpy(), dtype=np.float64)
