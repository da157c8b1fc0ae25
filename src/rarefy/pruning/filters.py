"""A layer's weight as a matrix of filters, whatever the layer: one row for every output, with all
weights that lead to it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


@dataclass(frozen=True)
class Filters:
    """Layout of one weight. Most are (out, in, *kernel); a transposed convolution with g groups is
    (in, out/g, *kernel), and the inputs of group j lead to the outputs of group j."""

    shape: tuple[int, ...]
    transposed_groups: int = 0

    @classmethod
    def of(cls, module: nn.Module, weight: Tensor) -> Filters:
        groups = int(module.groups) if isinstance(module, TRANSPOSED) else 0
        return cls(tuple(weight.shape), groups)

    @property
    def count(self) -> int:
        """Filters of the layer."""
        return self.shape[1] * self.transposed_groups if self.transposed_groups else self.shape[0]

    @property
    def size(self) -> int:
        """Weights of a filter."""
        return math.prod(self.shape) // self.count

    @property
    def dimensions(self) -> tuple[int, ...]:
        """(out, in, *kernel)."""
        return (self.count, self.size // math.prod(self.shape[2:]), *self.shape[2:])

    def rows(self, weight: Tensor) -> Tensor:
        """(filter, weight of it)"""
        if not self.transposed_groups:
            return weight.reshape(self.shape[0], -1)
        split = weight.unflatten(0, (self.transposed_groups, -1))
        return split.transpose(1, 2).reshape(self.count, -1)

    def weights(self, rows: Tensor) -> Tensor:
        """Back from ``rows``."""
        if not self.transposed_groups:
            return rows.reshape(self.shape)
        groups, inputs = self.transposed_groups, self.shape[0]
        split = rows.reshape(groups, self.shape[1], inputs // groups, *self.shape[2:])
        return split.transpose(1, 2).reshape(self.shape)

    def sums(self, weight: Tensor) -> Tensor:
        """Sum of each filter's entries, whatever their order in memory: (filter,). Of a mask it is
        exact, up to 2^24 weights per filter."""
        if not self.transposed_groups:
            return weight.sum(dim=tuple(range(1, weight.dim())), dtype=torch.float32)
        split = weight.unflatten(0, (self.transposed_groups, -1))
        return split.sum(dim=(1, *range(3, split.dim())), dtype=torch.float32).flatten()

    def norms(self, scores: Tensor) -> Tensor:
        """Norm of each filter's scores: (filter,). Of |w| it is the filter's norm."""
        return torch.linalg.vector_norm(self.rows(scores), dim=1)
