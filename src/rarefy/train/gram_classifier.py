"""Training the patch network without its weights: what a step needs is the Gram matrix of patches.

Full-batch descent moves a filter only along the patches it is trained on, w = w(0) + sum_p c_p x_p,
so responses h_p = <w, x_p> and coefficients c_p say all there is (002 Def. 5.1):

    h <- h - eta g G,   c <- c - eta g,   G_pq = <x_p, x_q>

with g the coefficients of the patches in the gradient. One product with G, (patches, patches),
takes the place of two with the patches, (patches, d): cheaper when there are fewer than 2 d of
them, and more exact, because only increments are rounded. Pruning acts on weights, and needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rarefy.data.patches import PatchSamples
from rarefy.nets.patch_cnn import responses
from rarefy.train.optimisers import Rate
from rarefy.train.patch_classifier import combination, subtract_combination
from rarefy.train.patch_coefficients import gram_step, patch_coefficients, patch_loss


@dataclass(frozen=True)
class GramClassifier:
    """The problem of ``PatchClassifier`` in responses, (run, classes, m, n + classes), and
    ``coefficients`` of the same shape."""

    gram: Tensor
    scales: Tensor
    one_hot: Tensor
    output_scale: float
    compile_kernels: bool = False
    noise_apart: bool = False
    """noise has exactly nothing along the features: a smaller product"""

    @classmethod
    def of(
        cls, samples: PatchSamples, output_scale: float, compile_kernels: bool = False
    ) -> GramClassifier:
        patches = samples.patches()
        gram = patches @ patches.transpose(1, 2)
        apart = _has_noise_apart(gram, len(samples))
        return cls(gram, samples.scales(), samples.one_hot(), output_scale, compile_kernels, apart)

    def loss(self, parameters: dict[str, Tensor], batch: Any = None) -> Tensor:
        """(run,)."""
        return patch_loss(parameters["responses"], self.scales, self.one_hot, self.output_scale)

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss, and what plain descent subtracts (times its rate) from both parameters. It is the
        gradient in the weights, seen through the patches; not that in the responses."""
        loss, parts = self._coefficients(parameters["responses"], 1.0)
        return loss, {"responses": combination(parts, self.gram), "coefficients": parts}

    def step(self, parameters: dict[str, Tensor], lr: Rate, batch: Any = None) -> Tensor:
        """Plain descent, where the parameters lie; the loss before."""
        seen, sums, n = parameters["responses"], parameters["coefficients"], self.one_hot.shape[1]
        if self.compile_kernels:
            inner = n if self.noise_apart else seen.shape[3]
            how = self.gram, inner, self.scales, self.one_hot, lr, self.output_scale
            if (loss := gram_step(seen, sums, *how)) is not None:
                return loss
        loss, parts = self._coefficients(seen, lr, sums)
        if self.noise_apart:
            subtract_combination(seen[..., :n], parts[..., :n], self.gram[:, :n, :n])
            seen[..., n:] -= parts[..., n:]  # features are orthonormal
        else:
            subtract_combination(seen, parts, self.gram)
        return loss

    def _coefficients(
        self, seen: Tensor, factor: Rate, sums: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        how = True, self.compile_kernels, sums
        return patch_coefficients(seen, self.scales, self.one_hot, factor, self.output_scale, *how)


def _has_noise_apart(gram: Tensor, samples: int) -> bool:
    features = gram[:, samples:, samples:]
    unit = torch.eye(features.shape[1], dtype=gram.dtype, device=gram.device)
    return bool((features == unit).all()) and not bool(gram[:, :samples, samples:].any())


def start_of(filters: Tensor, samples: PatchSamples) -> dict[str, Tensor]:
    """The parameters that stand for ``filters``, (run, classes, m, d), before training."""
    seen = responses(filters, samples.patches())
    return {"responses": seen, "coefficients": torch.zeros_like(seen)}


def filters_of(initial: Tensor, coefficients: Tensor, samples: PatchSamples) -> Tensor:
    """The filters that coefficients stand for, from those training began with."""
    return initial + combination(coefficients, samples.patches())


class Unfolded(dict[str, Tensor]):
    """Parameters of this form that also have ``filters``, computed when first asked for."""

    def __init__(
        self, parameters: dict[str, Tensor], initial: Tensor, samples: PatchSamples
    ) -> None:
        super().__init__(parameters)
        self._initial, self._samples = initial, samples

    def __missing__(self, name: str) -> Tensor:
        if name != "filters":
            raise KeyError(name)
        self[name] = filters_of(self._initial, self["coefficients"], self._samples)
        return self[name]


def is_cheaper(samples: PatchSamples) -> bool:
    """Whether a step in this form takes less work than one with weights."""
    return len(samples) + samples.classes < 2 * samples.noise.shape[2]
