"""Test accuracy over feature strength and class size, and how fast the error falls with the ratio
of Theorem 1, 2(a) (003 Fig. 4a, Theorem 1 2(a) and 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context
from rarefy.core.parameters import Count, Positive
from rarefy.studies.benign.setting import TINY, Ratio
from rarefy.studies.benign.strength import StrengthExperiment
from rarefy.sweep.batches import split_by_axes


@dataclass(frozen=True, kw_only=True)
class FeaturesExperiment(StrengthExperiment):
    """Benign overfitting through explicit features: strength against number of samples."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma", "size", "strength")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY
        | {"size": (4, 12), "strength": (0.01, 1.0, 3.0), "filters": 8, "trained_steps": 120},
        "quick": {"seeds": 5, "size": (5, 10, 20, 40), "test_samples": 20_000}
        | {"strength": (0.01, 0.5, 0.8, 1.0, 1.2, 1.5, 1.8, 2.1, 2.5, 4.0)}
        | {"d": 200, "filters": 20},
        "paper": {},
    }

    gamma: tuple[Ratio, ...] = (1.0, 1.2)
    """noise correlation ratio: 1 is noise of one kind for all classes, 1.2 that of Fig. 4a"""
    size: tuple[Count, ...] = (10, 40, 100, 200)
    strength: tuple[Positive, ...] = (
        *(0.01, 0.4, 0.7, 1.0, 1.2, 1.4, 1.6, 1.8, 2.1, 2.5, 3.0, 4.0),
    )
    test_samples: Count = 40_000

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, gamma: float, part: Cells) -> dict[str, np.ndarray]:
            return self.train_and_test(part, self.spectrum(gamma), context)

        return split_by_axes(cells, ("seed", "gamma"), run)
