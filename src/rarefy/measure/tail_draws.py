"""Test samples of which many lie in a tail, whichever way the tail is defined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_laws import law_of
from rarefy.data.patches import PatchSamples
from rarefy.data.tail_noise import TailSamples, stratified, tilted
from rarefy.measure.tails import balanced_log_weight


def strata_draw(
    data: ClassNoise, draws: Draws, edges: Sequence[float], count: int, chunk: int
) -> TailSamples:
    """``count`` samples, class after class, equally many in each stratum of |zeta| along the
    special direction."""
    return stratified(data, draws, _labels(data, draws, count), edges, "test", chunk)


@dataclass(frozen=True)
class TailDraws:
    """Half of the samples fill the strata of |zeta| along the special direction, half are shifted
    along A_k^T sum_r w_kr, where Definition 1's ratio is large once all neurons of the class are
    active. Called with how many samples (even) and the number of the chunk.

    filters: in the axes of the noise, (run, classes, m, d); edges: of the strata; shift: in stds.
    """

    data: ClassNoise
    draws: Draws
    filters: Tensor
    edges: tuple[float, ...]
    shift: float

    def __call__(self, count: int, chunk: int) -> TailSamples:
        half = count // 2
        labels = _labels(self.data, self.draws, half)
        outer = stratified(self.data, self.draws, labels, self.edges, "test", chunk)
        total = self.filters.sum(dim=2)  # (run, classes, d)
        along = total * self.data.eigenvalues.to(total)  # A_k^T sum_r w_kr
        shifted = tilted(
            self.data,
            self.draws,
            labels,
            self.shift,
            directions=along,
            two_sided=False,
            stream="shifted test",
            step=chunk,
        )
        both = _joined(outer.samples, shifted.samples)
        special = torch.cat([outer.special.expand(len(both.noise), -1), self._special(shifted)], 1)
        edges = torch.tensor(self.edges, dtype=torch.float64, device=special.device)
        stratum = torch.bucketize(special.abs().double(), edges, right=True)
        # where the samples came from does not matter, only how likely each law makes them
        projected = _own(torch.einsum("rkd,rnd->rkn", total, both.noise), both.labels)
        projected = projected.double() / _at(along.norm(dim=2), both.labels).double()
        log_weight = balanced_log_weight(
            [
                self._stratified_ratio(half).to(special.device)[stratum].log(),
                self.shift * projected - self.shift**2 / 2,
            ],
            (0.5, 0.5),
        )
        return TailSamples(both, special, stratum, log_weight)

    def _special(self, tail: TailSamples) -> Tensor:
        """zeta along the special direction of each sample's class."""
        noise, labels = tail.samples.noise, tail.samples.labels
        axis = self.data.special_axes().to(labels.device)
        table = self.data.eigenvalues.to(noise)[:, torch.arange(self.data.classes), axis.cpu()]
        there = noise.gather(2, axis[labels].expand(len(noise), -1)[:, :, None])[:, :, 0]
        return there / _at(table, labels)

    def _stratified_ratio(self, count: int) -> Tensor:
        """How much likelier each stratum is than in the data's own law."""
        law, strata = law_of(self.data.law), len(self.edges) + 1
        beyond = [1.0, *(law.exceedance(edge) for edge in self.edges), 0.0]
        chance = -torch.tensor(beyond, dtype=torch.float64).diff()
        each = count // self.data.classes
        filled = each // strata + (torch.arange(strata) < each % strata)
        return filled / (each * chance)


def _labels(data: ClassNoise, draws: Draws, count: int) -> Tensor:
    return (torch.arange(count, device=draws.keys.device) % data.classes)[None]


def _joined(first: PatchSamples, second: PatchSamples) -> PatchSamples:
    groups = max(len(first.noise), len(second.noise))
    parts = (first, second)
    return dataclasses.replace(
        second,
        labels=torch.cat([part.labels.expand(groups, -1) for part in parts], dim=1),
        noise=torch.cat([part.noise.expand(groups, -1, -1) for part in parts], dim=1),
    )


def _own(values: Tensor, labels: Tensor) -> Tensor:
    """Each sample's entry at its class: (run, n) from (run, classes, n)."""
    return values.gather(1, labels.expand(len(values), -1)[:, None, :])[:, 0]


def _at(values: Tensor, labels: Tensor) -> Tensor:
    """The same from (run or 1, classes)."""
    rows = max(len(values), len(labels))
    return values.expand(rows, -1).gather(1, labels.expand(rows, -1))
