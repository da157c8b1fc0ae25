"""Similarity of positive test pairs against eps_min (000 Fig. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.parameters import NotNegative
from rarefy.measure.downstream import MaskedMean, pair_cosines
from rarefy.studies.contrastive import downstream


@dataclass(frozen=True, kw_only=True)
class SimilarityExperiment(downstream.DownstreamExperiment):
    """Mean cosine similarity of positive test pairs against eps_min."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**downstream.FIGURE_TINY, "sigma": (0.075,)},
        "quick": {**downstream.FIGURE_QUICK, "sigma": (0.075,)},
        "paper": {},
    }

    sigma: tuple[NotNegative, ...] = (0.05, 0.075, 0.1)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""

    def outputs(self) -> tuple[Output, ...]:
        each, test = ("read", "test_frequencies"), ("test_frequencies",)
        return (
            Output("similarity", each, "mean cosine of positive pairs; 0 where it is undefined"),
            Output("undefined", each, "share of pairs with an embedding that is exactly zero"),
            Output("latents", test, "mean cosine of the latents: a perfect encoder"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        encoders = self.trained(self.setup(cells, context), context)
        found = [self._tested(encoders, test) for test in downstream.TEST_FREQUENCIES]
        return self.collected(encoders, found)

    def _tested(self, encoders: downstream.Encoders, test: str) -> dict[str, Tensor]:
        similarity, undefined, latents = (MaskedMean() for _ in range(3))
        for pairs in encoders.pairs("test", self.test_pairs, test):
            f, _ = encoders.embed(pairs)
            cosine, defined = pair_cosines(f[:, 0], f[:, 1])
            similarity.add(cosine)
            undefined.add(~defined)
            summed = pairs.latents.sum(dim=3)
            latents.add(pair_cosines(summed[:, 0], summed[:, 1])[0])
        return {
            "similarity": similarity.value,
            "undefined": undefined.value,
            "latents": latents.value,
        }
