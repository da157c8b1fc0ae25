"""Test error of a linear regression head against eps_min (000 Fig. 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.parameters import Count, NotNegative
from rarefy.measure.downstream import ErrorMoments, HeadMoments, along, check_head
from rarefy.studies.contrastive import downstream


@dataclass(frozen=True, kw_only=True)
class RegressionExperiment(downstream.DownstreamExperiment):
    """Test error of a linear head on the learned representation against eps_min."""

    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**downstream.FIGURE_TINY, "sigma": (0.05,), "head_pairs": 100},
        "quick": {**downstream.FIGURE_QUICK, "sigma": (0.05,)},
        "paper": {},
    }

    sigma: tuple[NotNegative, ...] = (0.03, 0.05, 0.075)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""
    head_pairs: Count = 1000
    """pairs on which the head is trained, with the frequencies of the test pairs; both members of
    a pair are samples, here and in the test"""
    ridge: NotNegative = 0.0
    """ridge term of the head in units of a neuron's variance; 0: least squares"""

    @property
    def drawn_pairs(self) -> tuple[int, ...]:
        return (self.head_pairs, self.test_pairs) * len(downstream.TEST_FREQUENCIES)

    def check(self) -> None:
        super().check()
        # the pure encoder has one neuron per feature and gets a head too
        check_head(self.head_pairs, max(self.neurons, self.d), self.ridge, "head_pairs")

    def outputs(self) -> tuple[Output, ...]:
        each, test = ("read", "test_frequencies"), ("test_frequencies",)
        return (
            Output("mse", each, "mean squared test error of the head"),
            Output("unexplained", each, "test error over the target's variance, 1 - R^2"),
            Output("pure_encoder", test, "test error with one neuron a feature and no bias"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        encoders = self.trained(self.setup(cells, context), context)
        direction = encoders.trial.draws.spawn("target").normal("target", (self.d,))
        unit = direction / torch.linalg.vector_norm(direction, dim=1, keepdim=True)
        found = [self._tested(encoders, test, unit) for test in downstream.TEST_FREQUENCIES]
        return self.collected(encoders, found)

    def _tested(self, encoders: downstream.Encoders, test: str, unit: Tensor) -> dict[str, Tensor]:
        """Every latent is regressed; the head of <unit, latents> follows by linearity."""
        trained, pure = HeadMoments(), HeadMoments()
        for pairs in encoders.pairs("head", self.head_pairs, test):
            f, f_pure, latents = encoders.samples(pairs)
            trained.add(f, latents[:, None])
            pure.add(f_pure, latents)
        head, pure_head = trained.solve(self.ridge), pure.solve(self.ridge)
        found, reference = ErrorMoments(), ErrorMoments()
        for pairs in encoders.pairs("test", self.test_pairs, test):
            f, f_pure, latents = encoders.samples(pairs)
            found.add(head.predict(f), latents[:, None])
            reference.add(pure_head.predict(f_pure), latents)
        mse, variance = along(found.error, unit[:, None]), along(found.covariance, unit[:, None])
        return {
            "mse": mse,
            "unexplained": mse / variance,
            "pure_encoder": along(reference.error, unit),
        }
