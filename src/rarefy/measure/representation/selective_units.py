"""Whose units are masked: the classes that single units respond to, beside a mask of the units.

000 Remark 2 says that the neurons that get pruned are those aligned with minority features. In a
real network that is a question about overlap: are the units that prefer a tail class masked more
often than chance would have it?
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws, key
from rarefy.measure.representation.labelled import check_labelled, class_counts, class_sums

_SILENT = 1e-9
"""A unit that varies this little beside its size is constant up to rounding."""
_VALUES = 1 << 21
_LEVEL = 0.95


@dataclass(frozen=True)
class Selectivity:
    """preferred: (unit,), the class with the largest mean activation, -1 for a silent unit;
    selectivity: (unit,), float64: how far that mean stands above the others'. On the CPU."""

    preferred: Tensor
    selectivity: Tensor


@dataclass(frozen=True)
class MaskedByClass:
    """Of the units that prefer each class, (class,) float64 all: ``share`` the mean masked share,
    ``difference`` that minus the mean of the null, ``low`` and ``high`` the central 95 % of the
    null, ``p_value`` two-sided; NaN for a class that no unit prefers. units: (class,), how many."""

    share: Tensor
    difference: Tensor
    low: Tensor
    high: Tensor
    p_value: Tensor
    units: Tensor


def class_selectivity(activations: Tensor, labels: Tensor, classes: int) -> Selectivity:
    """(mean of the preferred class - mean of the other classes' means) / pooled standard deviation
    within classes, of every unit. activations: (sample, unit).

    All classes weigh the same, whatever their size. The largest of several noisy means is too
    large, and the fewer samples a class has the noisier its mean: give as many of each class, or
    units that prefer nothing will seem to prefer the tail. A unit that varies only between classes
    has inf.
    """
    activations, labels = check_labelled((activations, labels), classes, "measured")
    counts = class_counts(labels, classes)
    there = counts > 0
    if int(there.sum()) < 2:
        raise bad_value("labels", int(there.sum()), "must hold at least two classes")
    means = class_sums(activations, labels, classes) / counts.clamp(min=1)[:, None]
    inside = torch.zeros(activations.shape[1], dtype=torch.float64, device=means.device)
    step = max(1, _VALUES // activations.shape[1])
    for first in range(0, len(activations), step):
        mine = labels[first : first + step]
        inside += (activations[first : first + step].double() - means[mine]).square().sum(dim=0)
    deviation = (inside / (len(labels) - there.sum()).clamp(min=1)).sqrt()
    best, preferred = means.masked_fill(~there[:, None], -torch.inf).max(dim=0)
    others = (torch.where(there[:, None], means, 0.0).sum(dim=0) - best) / (there.sum() - 1)
    size = _SILENT * activations.abs().amax(dim=0).double()
    gap = torch.where(best - others > size, best - others, 0.0)
    deviation = torch.where(deviation > size, deviation, 0.0)
    silent = (gap == 0) & (deviation == 0)
    selectivity = torch.where(silent, 0.0, gap / deviation)
    return Selectivity(torch.where(silent, -1, preferred).cpu(), selectivity.cpu())


def masked_by_class(
    masked_share: Tensor,
    preferred: Tensor,
    selectivity: Tensor,
    classes: int,
    *,
    least: float = 0.0,
    strata: Tensor | None = None,
    permutations: int = 999,
    seed: int = 0,
) -> MaskedByClass:
    """Mean masked share of the units that prefer each class, beside what chance would give.

    masked_share: (unit,), the share of a unit's weights that is masked (0 or 1 for whole filters);
    preferred, selectivity: (unit,), from ``class_selectivity``. Units that prefer no class or whose
    selectivity is below ``least`` take no part. Under the null it does not matter for masking which
    class a unit prefers: shares are exchanged among all units that take part, or within ``strata``,
    (unit,) whole numbers, such as the layer, when layers are masked to different degrees.
    """
    if permutations < 1:
        raise bad_value("permutations", permutations, "must be at least 1")
    if classes < 1:
        raise bad_value("classes", classes, "must be at least 1")
    layers = torch.zeros_like(preferred) if strata is None else strata
    for name, values in (
        ("preferred", preferred),
        ("selectivity", selectivity),
        ("strata", layers),
    ):
        if values.shape != masked_share.shape or values.ndim != 1:
            count = tuple(masked_share.shape)
            raise bad_value(name, tuple(values.shape), f"must be {count}, one per unit")
    if len(preferred) and not -1 <= int(preferred.min()) <= int(preferred.max()) < classes:
        ends = (int(preferred.min()), int(preferred.max()))
        raise bad_value("preferred", ends, f"must be in -1..{classes - 1}")
    if not bool(torch.isfinite(masked_share).all()):
        raise bad_value("masked_share", int((~masked_share.isfinite()).sum()), "must be finite")
    part = ((preferred >= 0) & (selectivity >= least)).cpu()
    shares, mine = masked_share.detach().cpu().double()[part], preferred.cpu()[part]
    member = (mine == torch.arange(classes)[:, None]).double()
    units = member.sum(dim=1)
    observed = member @ shares / units
    null = _null(shares, layers.cpu()[part], member, permutations, seed) / units
    middle = null.mean(dim=0)
    # ties with rounding count as extreme, and so does what was seen
    far = (null - middle).abs() >= (observed - middle).abs() - 1e-12
    chance = (far.sum(dim=0) + 1) / (permutations + 1)
    low, high = null.quantile((1 - _LEVEL) / 2, dim=0), null.quantile((1 + _LEVEL) / 2, dim=0)
    return MaskedByClass(
        observed,
        observed - middle,
        low,
        high,
        torch.where(units > 0, chance.double(), torch.nan),
        units.long(),
    )


def _null(shares: Tensor, layers: Tensor, member: Tensor, permutations: int, seed: int) -> Tensor:
    """(permutation, class): sums over the units of each class, the shares exchanged at random
    within each layer; a few permutations at a time."""
    _, layer = layers.unique(return_inverse=True)
    home = layer.argsort(stable=True)
    sums = []
    step = max(1, _VALUES // max(1, len(shares)))
    for first in range(0, permutations, step):
        which = range(first, min(first + step, permutations))
        draws = Draws([key("masked by class", seed, number) for number in which])
        chance = draws.integers("order", 1 << 31, (len(shares),))
        # both orders go layer by layer: the n-th of a layer gets the share of the n-th drawn of it
        drawn = (layer * (1 << 31) + chance).argsort(dim=1)
        made = torch.empty(len(which), len(shares), dtype=torch.float64)
        made[:, home] = shares[drawn]
        sums.append(made @ member.T)
    return torch.cat(sums)
