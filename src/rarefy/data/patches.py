"""Labelled samples of two patches, one a class's feature and one noise (002 Def. 3.1, 003 Sec. 2).

Which of the two comes first is drawn by a coin in both papers. A network that treats all patches
alike and adds them up cannot see it, so the coin is never tossed. All samples of a class share
their feature patch: n samples of ``classes`` classes have only n + classes different patches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class PatchSamples:
    """Samples of a batch of runs. Leading axis ``group``: one entry a run, or a single one that all
    runs share up to the scales (a phase diagram then needs one product with the noise, not many).

    labels: (group, n), int64; noise: (group, n, d), in units of ``noise_scale``, (run,); features:
    (group, classes, d), orthonormal, in units of ``strength``, (run, classes).
    """

    labels: Tensor
    noise: Tensor
    features: Tensor
    noise_scale: Tensor
    strength: Tensor

    @property
    def classes(self) -> int:
        return self.features.shape[1]

    def __len__(self) -> int:
        """Samples per run."""
        return self.labels.shape[1]

    @property
    def runs(self) -> int:
        return len(self.noise_scale)

    def patches(self) -> Tensor:
        """All different patches, noise first, in their units: (group, n + classes, d)."""
        return torch.cat([self.noise, self.features], dim=1)

    def scales(self) -> Tensor:
        """The units of ``patches``: (run, n + classes)."""
        return torch.cat([self.noise_scale[:, None].expand(-1, len(self)), self.strength], dim=1)

    def one_hot(self) -> Tensor:
        """1 where a sample has the class: (group, n, classes)."""
        there = self.labels[:, :, None] == torch.arange(self.classes, device=self.labels.device)
        return there.to(self.noise.dtype)

    def class_sizes(self) -> Tensor:
        """|S_k|: (group, classes)."""
        return self.one_hot().sum(dim=1)

    def noise_norms(self) -> Tensor:
        """|xi_i|^2, scales included: (run, n)."""
        return self.noise_scale[:, None] ** 2 * self.noise.square().sum(dim=2)


def labels_by_size(sizes: Tensor) -> Tensor:
    """Labels of a training set with ``sizes``, (group, classes), samples per class: (group, n).

    Every group needs the same total; every class at least one sample.
    """
    if bool((sizes < 1).any()):
        smallest = int(sizes.min())
        raise bad_value("class_sizes", smallest, "every class needs at least 1 sample")
    totals = sizes.sum(dim=1)
    if bool((totals != totals[0]).any()):
        raise bad_value("class_sizes", totals.tolist(), "all runs need the same number of samples")
    ends = sizes.cumsum(dim=1)
    place = torch.arange(int(totals[0]), device=sizes.device)
    return (place[None, :, None] >= ends[:, None, :]).sum(dim=2)
