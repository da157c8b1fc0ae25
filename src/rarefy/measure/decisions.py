"""Why a sample is classified as it is: its scores split into what each training sample put there.

A filter that plain descent has moved is w = w(0) + sum over training patches p of c_p x_p, and on
the set of patches that activate it ReLU does nothing. So a score is, exactly,

    F_k(x) = output_scale * sum over patches q of x and filters r active on q of
             [<w_kr(0), q> + sum_p c_krp <x_p, q>],

a sum of the initial weights' part, the learnt features' part and one part for the noise of every
training sample. (A filter with response 0 counts as inactive; its parts add up to 0 in any case.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.patches import PatchSamples
from rarefy.nets.patch_cnn import responses


@dataclass(frozen=True)
class Decisions:
    """Scores of samples in parts. start, features: (run, classes, sample); noise: (run, classes,
    sample, training sample)."""

    start: Tensor
    features: Tensor
    noise: Tensor

    @property
    def scores(self) -> Tensor:
        """F_k(x): (run, classes, sample), the parts added up."""
        return self.start + self.features + self.noise.sum(dim=3)

    def rivals(self, labels: Tensor) -> Tensor:
        """The class other than its own that a sample's score is largest for: (run, sample)."""
        index = self._index(labels)[:, None]
        return self.scores.scatter(1, index, -torch.inf).argmax(dim=1)

    def margin(self, labels: Tensor, rivals: Tensor | None = None) -> Margin:
        """The parts of F_y - F_j, j the strongest rival or the one given, (run or 1, sample)."""
        own = self._index(labels)
        other = self.rivals(labels) if rivals is None else self._index(rivals, "rivals")
        if bool((own == other).any()):
            raise bad_value("rivals", "a sample's own class", "must be another class")

        def between(part: Tensor) -> Tensor:
            def at(index: Tensor) -> Tensor:
                shaped = index.reshape(*index.shape[:1], 1, -1, *(1,) * (part.dim() - 3))
                return part.gather(1, shaped.expand(-1, -1, -1, *part.shape[3:]))[:, 0]

            return at(own) - at(other)

        return Margin(between(self.start), between(self.features), between(self.noise), other)

    def _index(self, labels: Tensor, name: str = "labels") -> Tensor:
        runs, classes, count = self.start.shape
        if labels.dim() != 2 or labels.shape[1] != count or len(labels) not in (1, runs):
            allowed = f"must be (run or 1, {count}) with {runs} runs"
            raise bad_value(name, tuple(labels.shape), allowed)
        if int(labels.min()) < 0 or int(labels.max()) >= classes:
            wrong = int(labels.min()) if int(labels.min()) < 0 else int(labels.max())
            raise bad_value(name, wrong, f"must be in 0..{classes - 1}")
        return labels.expand(runs, -1)


@dataclass(frozen=True)
class Margin:
    """F_y - F_j in parts: start, features: (run, sample); noise: (run, sample, training sample);
    rival: j, (run, sample)."""

    start: Tensor
    features: Tensor
    noise: Tensor
    rival: Tensor

    @property
    def total(self) -> Tensor:
        """(run, sample): positive where the own class wins."""
        return self.start + self.features + self.noise.sum(dim=2)

    def parts(self) -> Tensor:
        """All side by side, start and features first: (run, sample, 2 + training sample)."""
        first = torch.stack([self.start, self.features], dim=2)
        return torch.cat([first, self.noise], dim=2)

    def by_class(self, one_hot: Tensor) -> Tensor:
        """The noise parts added up over the training samples of each class: (run, sample, classes);
        ``one_hot`` of the training samples, (run or 1, training sample, classes)."""
        return self.noise @ one_hot.to(self.noise)


def decisions(
    initial: Tensor,
    accumulated: Tensor,
    trained_on: PatchSamples,
    samples: PatchSamples,
    output_scale: float,
    filters: Tensor | None = None,
) -> Decisions:
    """Split the scores of ``samples``.

    initial: w(0), (run, classes, m, d); accumulated: c in the units of the patches, as descent of
    ``PatchClassifier`` collects them, (run, classes, m, n + classes). filters: the trained filters,
    which decide who is active; made from the coefficients where they are not given.
    """
    n = len(trained_on)
    patches = trained_on.patches()
    if accumulated.shape[-1] != n + trained_on.classes:
        allowed = f"must have {n + trained_on.classes} coefficients: {n} samples and the classes"
        raise bad_value("accumulated", tuple(accumulated.shape), allowed)
    if filters is None:
        shared = patches[0] if len(patches) == 1 else patches[:, None]
        filters = initial + accumulated @ shared
    noise = _on_patches(initial, accumulated, patches, filters, samples.noise)
    feature = _on_patches(initial, accumulated, patches, filters, samples.features)
    one_hot = samples.one_hot().to(filters.dtype)
    wide = one_hot.expand(len(filters), -1, -1)
    # every sample has its class's feature patch
    both = noise * samples.noise_scale[:, None, None, None] + torch.einsum(
        "rkcp,rsc->rksp", feature * samples.strength[:, None, :, None], wide
    )
    both = output_scale * both
    return Decisions(both[..., 0], both[..., 1 + n :].sum(dim=3), both[..., 1 : 1 + n])


def _on_patches(
    initial: Tensor, accumulated: Tensor, patches: Tensor, filters: Tensor, seen: Tensor
) -> Tensor:
    """Parts of the pooled responses to patches ``seen``, (run or 1, s, d): (run, classes, s, 1 +
    training patch), the initial weights' part first."""
    active = (responses(filters, seen) > 0).to(filters.dtype)  # (run, classes, m, s)
    start = (active * responses(initial, seen)).sum(dim=2)
    overlap = seen @ patches.transpose(1, 2)  # <x_p, q>: (run or 1, s, training patch)
    learnt = (active.transpose(2, 3) @ accumulated) * overlap[:, None]
    return torch.cat([start[..., None], learnt], dim=3)
