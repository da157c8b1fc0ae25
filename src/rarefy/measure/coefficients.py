"""How much of each signal and of each training sample's noise the filters hold (002 Def. 5.1).

    w_jr = w_jr(0) + sum_tau gamma_jrt mu^-2 mu_tau + sum_i rho_jri |xi_i|^-2 xi_i

By the recursions of Def. D.1, accumulated while training.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.data.patches import PatchSamples


@dataclass(frozen=True)
class Coefficients:
    """gamma: (run, classes, m, classes), last axis the signal tau; rho: (run, classes, m, n)."""

    gamma: Tensor
    rho: Tensor

    @property
    def own_gamma(self) -> Tensor:
        """gamma_(tau, r, tau), a class's filters on its own signal: (run, classes, m)."""
        return torch.diagonal(self.gamma, dim1=1, dim2=3).transpose(1, 2)

    def own_rho(self, one_hot: Tensor) -> Tensor:
        """rho_(y_i, r, i), the filters of a sample's own class: (run, m, n)."""
        return torch.einsum("rkmn,rnk->rmn", self.rho, one_hot.expand(len(self.rho), -1, -1))


def accumulated_coefficients(accumulated: Tensor, samples: PatchSamples) -> Coefficients:
    """From what descent accumulated (``PatchClassifier``): coefficients of the patches in their
    units, (run, classes, m, n + classes), into those of Def. D.1 (7b) and (7c)."""
    n = len(samples)
    # a patch x = s p: the weight holds c p = (c/s) x; gamma, rho are c/s times |x|^2 = c s |p|^2
    norms = samples.noise.square().sum(dim=2) * samples.noise_scale[:, None]
    rho = accumulated[..., :n] * norms[:, None, None, :]
    gamma = accumulated[..., n : n + samples.classes] * samples.strength[:, None, None, :]
    return Coefficients(gamma, rho)
