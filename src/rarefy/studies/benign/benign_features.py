"""Test accuracy over feature strength and class size, and how fast the error falls with the ratio
of Theorem 1, 2(a) (003 Fig. 4a, Theorem 1 2(a) and 3, the feature axis of Fig. 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from rarefy.core.contracts import Cells, Context, Verdict
from rarefy.core.picture import Picture, Table
from rarefy.data.noise_spectrum import Spectrum, spectrum_for
from rarefy.studies._apart import simulate_apart
from rarefy.studies.benign._features_pictures import features_pictures, features_tables
from rarefy.studies.benign._features_verdicts import features_verdicts
from rarefy.studies.benign._strength import StrengthStudy


@dataclass(frozen=True, kw_only=True)
class BenignFeatures(StrengthStudy):
    """Benign overfitting through explicit features: strength against number of samples."""

    name: ClassVar[str] = "benign-features"
    title: ClassVar[str] = "How feature strength and class size make overfitting benign"
    paper_says: ClassVar[str] = (
        "Each class has a feature u in one patch and noise of its own kind in the other. Where "
        "|S|^2 |u|^4 is large against |S| |A_k^T A_j|_F^2, the test error is exponentially small "
        "in that ratio (003 Theorem 1, 2(a)); where it and the noise correlation ratio Gamma are "
        "both small, the error stays above a constant although the training loss is small "
        "(statement 3). At Gamma = 1.2 the accuracy rises with |u| = 0.01..4 and with |S| = "
        "10..200 (Fig. 4a). The printed training, 20 steps at rate 0.05, hardly begins; the "
        "theorem speaks of a small training loss. Both are run: 'trained' is our choice, made "
        "after seeing how little the printed one learns."
    )
    claims: ClassVar[tuple[str, ...]] = ("B3", "B5", "B6", "B7")
    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma", "size", "strength")
    needs: ClassVar[str] = "a CPU; a GPU at scale paper (a minute there, half a day on two cores)"
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "size": (4, 12),
            "strength": (0.01, 1.0, 3.0),
            "classes": 3,
            "d": 40,
            "filters": 8,
            "trained_steps": 120,
            "test_samples": 300,
        },
        "quick": {
            "seeds": 3,
            "size": (5, 10, 20, 40),
            "strength": (0.01, 0.5, 0.8, 1.0, 1.2, 1.5, 1.8, 2.1, 2.5, 4.0),
            "d": 200,
            "filters": 20,
            "test_samples": 20_000,
        },
        "paper": {
            "seeds": 3,
            "size": (10, 40, 100, 200),
            "strength": (0.01, 0.4, 0.7, 1.0, 1.3, 1.6, 2.0, 2.4, 2.8, 3.2, 3.6, 4.0),
            "test_samples": 40_000,
        },
    }

    gamma: tuple[float, ...] = (1.0, 1.2)
    """noise correlation ratio: 1 is noise of one kind for all classes, 1.2 that of Fig. 4a"""

    def check(self) -> None:
        super().check()
        for gamma in self.gamma:
            self.spectrum(gamma)  # refuses what is out of reach

    def spectrum(self, gamma: float) -> Spectrum:
        """That of A_k; for equal sizes it does not depend on the size."""
        return spectrum_for(gamma, self.d, self.classes, self.base)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def of_seed(seed: int, those: Cells) -> dict[str, np.ndarray]:
            return simulate_apart(
                those,
                "gamma",
                lambda gamma, part: self.train_and_test(part, self.spectrum(gamma), context),
            )

        return simulate_apart(cells, "seed", of_seed)

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        return features_verdicts(self, results, scale)

    def picture(self, results: xr.Dataset) -> list[Picture]:
        return features_pictures(self, results)

    def tables(self, results: xr.Dataset) -> list[Table]:
        return features_tables(self, results)
