"""Cross-entropy of the patch network on stored samples, many runs at once, and its gradient.

The samples of a class share their feature patch, so n samples have n + classes different patches,
and one product with them does the forward pass, another the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rarefy.data.patches import PatchSamples
from rarefy.nets.patch_cnn import responses
from rarefy.train.optimisers import Rate
from rarefy.train.patch_coefficients import patch_coefficients, patch_loss


@dataclass(frozen=True)
class PatchClassifier:
    """Full-batch cross-entropy of the two-layer patch network (the TopK paper, Sec. 3; Xu & Chen,
    Eq. (2)); the parameter is ``filters``, (run, classes, m, d). ``PatchClassifier.of(samples,
    output_scale)`` makes it of samples.

    A second parameter, ``coefficients``, (run, classes, m, n + classes), may go along: its gradient
    is the coefficient of each patch in the filters' gradient, so that plain descent accumulates
    what the TopK paper (Def. D.1) calls gamma and rho (``rarefy.measure.coefficients`` has
    their units).

    ``open_at_zero``: ReLU'(0) = 1, as the TopK paper says, or 0, as PyTorch has it. It matters
    where pruning makes responses exactly zero.

    Arguments:
        patches, scales, one_hot: of the samples, as ``of`` takes them.
        output_scale: in front of the sum over filters: 1, or 1/m for the mean.
        compile_kernels: whether the gradient is compiled.
        open_at_zero: what ReLU'(0) is.
        noise_columns: the noise beyond the features' coordinates, if it has nothing there.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> data = rarefy.lab.SignalNoise(2, 50, mu=draws.per_run(1.0), sigma=draws.per_run(0.5))
        >>> learner = rarefy.lab.PatchClassifier.of(data.sample(draws, 20), output_scale=1.0)
        >>> filters = 0.01 * rarefy.lab.initial_filters(draws, classes=2, filters=10, d=50)
        >>> learner.loss({"filters": filters}).shape
        torch.Size([3])
    """

    patches: Tensor
    scales: Tensor
    one_hot: Tensor
    output_scale: float
    compile_kernels: bool = False
    open_at_zero: bool = True
    noise_columns: Tensor | None = None
    """(d - classes, n), where features are the first coordinates and noise has exactly nothing
    there, for all runs alike: responses then take a smaller product"""

    @classmethod
    def of(
        cls,
        samples: PatchSamples,
        output_scale: float,
        compile_kernels: bool = False,
        open_at_zero: bool = True,
    ) -> PatchClassifier:
        patches, scales = samples.patches(), samples.scales()
        # patches of zeros fill the rows to whole vectors: odd lengths halve the speed of a GPU, and
        # cost a fifth of a product on a CPU
        extra = -patches.shape[1] % (4 if patches.device.type == "cuda" else 8)
        patches = functional.pad(patches, (0, 0, 0, extra))
        scales = functional.pad(scales, (0, extra))
        columns = None
        if patches.device.type == "cpu" and _are_on_axes(samples):
            columns = samples.noise[0, :, samples.classes :].transpose(0, 1).contiguous()
        one_hot = samples.one_hot()
        return cls(patches, scales, one_hot, output_scale, compile_kernels, open_at_zero, columns)

    def loss(self, parameters: dict[str, Tensor], batch: Any = None) -> Tensor:
        """(run,); differentiable."""
        seen = responses(parameters["filters"], self.patches)
        return patch_loss(seen, self.scales, self.one_hot, self.output_scale)

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss and gradient; nothing is recorded for autograd, whose ReLU'(0) is always 0."""
        loss, parts = self._coefficients(parameters["filters"], 1.0)
        found = {"filters": combination(parts, self.patches)}
        if "coefficients" in parameters:
            found["coefficients"] = parts[..., : parameters["coefficients"].shape[-1]]
        return loss, found

    def step(self, parameters: dict[str, Tensor], lr: Rate, batch: Any = None) -> Tensor:
        """Plain descent, where the parameters lie; the loss before."""
        filters, sums = parameters["filters"], parameters.get("coefficients")
        loss, parts = self._coefficients(filters, lr, sums)
        subtract_combination(filters, parts, self.patches)
        return loss

    def _coefficients(
        self, filters: Tensor, factor: Rate, sums: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        seen, how = self._responses(filters), (self.open_at_zero, self.compile_kernels, sums)
        return patch_coefficients(seen, self.scales, self.one_hot, factor, self.output_scale, *how)

    def _responses(self, filters: Tensor) -> Tensor:
        if self.noise_columns is None:
            return responses(filters, self.patches)
        samples, classes = self.one_hot.shape[1:]
        seen = filters.new_empty(*filters.shape[:3], self.patches.shape[1])
        rows = filters.reshape(-1, filters.shape[3])[:, classes:]
        torch.mm(rows, self.noise_columns, out=seen.flatten(0, 2)[:, :samples])
        seen[..., samples : samples + classes] = filters[..., :classes]
        seen[..., samples + classes :] = 0.0
        return seen


def _are_on_axes(samples: PatchSamples) -> bool:
    """As in 002 Def. 3.1."""
    features, classes = samples.features, samples.classes
    axes = torch.eye(classes, features.shape[2], dtype=features.dtype, device=features.device)
    empty = not bool(samples.noise[..., :classes].any())
    return len(features) == 1 and empty and bool((features == axes).all())


def subtract_combination(whole: Tensor, coefficients: Tensor, patches: Tensor) -> None:
    """Take what ``combination`` gives from ``whole``, where that lies."""
    if len(patches) == 1:
        whole.flatten(0, 2).addmm_(coefficients.flatten(0, 2), patches[0], alpha=-1)
    else:
        whole.flatten(1, 2).baddbmm_(coefficients.flatten(1, 2), patches, alpha=-1)


def combination(coefficients: Tensor, patches: Tensor) -> Tensor:
    """Sum of patches with coefficients (run, classes, m, patch): (run, classes, m, d)."""
    runs, classes, m, count = coefficients.shape
    if len(patches) == 1:
        return (coefficients.reshape(-1, count) @ patches[0]).reshape(runs, classes, m, -1)
    return torch.bmm(coefficients.reshape(runs, -1, count), patches).reshape(runs, classes, m, -1)
