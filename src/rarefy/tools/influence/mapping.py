"""Where samples lie on a map: features brought to two numbers by PCA."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.measure.influence.neighbours import Space, make_space
from rarefy.tools.samples.samples import Samples


class SampleMap:
    """Positions of samples along the two leading principal directions, (k, 2), asked for by row."""

    words = "the two leading principal directions (PCA)"

    def __init__(self, samples: Samples, device: torch.device | str = "cpu"):
        self.samples, self.device = samples, device

    def __call__(self, rows: Sequence[int]) -> NDArray[np.float64]:
        features = np.asarray(self.samples.features[np.asarray(rows)], dtype=np.float64)
        device = self._space.mean.device
        coordinates = self._space.coordinates(torch.from_numpy(features).to(device)).cpu().numpy()
        positions = np.zeros((len(features), 2))
        positions[:, : coordinates.shape[1]] = coordinates[:, :2]
        return positions

    @cached_property
    def _space(self) -> Space:
        return make_space(self.samples.features, 2, device=self.device)
