"""TopK pruning where 002 Theorems 4.4 and 4.5 speak: few samples in many dimensions.

Theorem 4.4 wants SNR <= 1/n and a K with sqrt(d log(1/delta)) <= K <= mu^2 sqrt(n)/(T sigma_p^2).
With SNR = 1/n there is such a K from d = log(1/delta) T^2 n^3 on: for n = 200, as in the paper's
figure, from 10^9 on, for n = 10 from 10^4 on. Pruning needs the d coordinates themselves, and the
GPU's selection takes rows of up to 16,384.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from rarefy.core.parameters import AtLeast, Count, OneOf, Positive
from rarefy.core.precision import PRECISIONS
from rarefy.data.signal_noise import LABELS
from rarefy.nets.patch_cnn import COMBINATIONS
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.theory.topk import logit_gain
from rarefy.train.optimisers import Rate


@dataclass(frozen=True, kw_only=True)
class WindowExperiment(PhaseExperiment):
    """Two noise levels: SNR = 1/n, where Theorem 4.4 speaks, and sigma_p = mu, where 4.5 does."""

    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 2, "d": 1600, "samples": 4, "filters": 4, "steps": 60}
        | {"sigma": (0.1, 1.0), "keep": (2, 70, 90, 1600), "test_samples": 100},
        "quick": {"seeds": 3, "d": 4096, "samples": 6, "sigma": (6 / 64, 1.0), "steps": 300}
        | {"keep": (5, 100, 125, 1000, 4096), "test_samples": 400},
        "paper": {},
    }

    classes: Annotated[int, AtLeast(2)] = 2
    samples: Count = 10
    d: Count = 16384
    filters: Count = 10
    sigma_0: Positive = 1e-7
    """std of the initial filters; as small as Condition 4.1 asks for at both noise levels"""
    lr: Positive = 2.0
    """learning rate in units of the rate at which logits move, so that all cells take about equally
    many updates; Condition 4.1 wants at most O(m T/mu^2)"""
    steps: Count = 3000
    combine: Annotated[str, OneOf(COMBINATIONS)] = "mean"
    labels: Annotated[str, OneOf(LABELS)] = "balanced"
    test_samples: Count = 1000
    sigma: tuple[Positive, ...] = (10 / 128, 1.0)
    """noise std sigma_p: SNR = mu/(sigma_p sqrt(d)) is 1/n at the first"""
    keep: tuple[int, ...] = (5, 50, 200, 225, 255, 500, 2500, 4900, 16384)
    """coordinates kept of every filter (K): 200 to 255 lie in Theorem 4.4's window at the first
    noise level, up to 4900 under Theorem 4.5's bound at the second; the last is dense"""

    precision: Annotated[str, OneOf(PRECISIONS)] = "float32"

    def rate(self, sigma: Tensor, keep: Tensor) -> Rate:
        # of d normal numbers the K largest in size have about K (1 + 2 log(d/K)) squares together
        largest = keep * (1 + 2 * torch.log(self.d / keep))
        speed = self.mu**2 / self.classes + sigma**2 * largest / self.samples
        return self.lr / (logit_gain(self.filters, self.scale) * speed)
