"""Samples of ``ClassNoise`` whose share in the tail is chosen (003 Sec. 3, claims B4 and B14).

Here a sample is long-tailed, without asking a trained model (compare 003 Definition 1), if |zeta|
along its class's special direction is large. Every way of drawing comes with the weights that turn
averages over its samples into averages over the model's own distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_laws import Law, law_of
from rarefy.data.patches import PatchSamples


@dataclass(frozen=True)
class TailSamples:
    """samples, and of each: ``special``, zeta along its class's special (or the tilted) direction;
    ``stratum``, 0 in the middle, larger further out; ``log_weight``, log of true over drawn
    probability. All (group, n).

    The mean of weight times f over a class's samples is an unbiased estimate of the mean of f over
    that class.
    """

    samples: PatchSamples
    special: Tensor
    stratum: Tensor
    log_weight: Tensor


def long_tailed(
    noise: ClassNoise,
    draws: Draws,
    labels: Tensor,
    share: Tensor | float,
    tail: float = 2.0,
    stream: str = "train",
    step: int = 0,
) -> TailSamples:
    """Samples, each of them long-tailed, |zeta| >= ``tail``, with probability ``share``: a number
    or (run,). Stratum 1 is the tail.

    Inside tail and middle zeta has its own law, so a share equal to the law's probability of the
    tail gives the model's own distribution. For one key the long-tailed samples at a small share
    are among those at a larger one. With share 0 or 1 the weights know nothing of the other part.
    """
    noise.check_labels(labels)
    labels = labels.to(draws.keys.device)
    law = _usable(noise)
    chance = law.exceedance(tail)
    if not 0 < chance < 1:
        raise bad_value("tail", tail, f"|zeta| >= tail has probability {chance:g} for {law.name}")
    wanted = torch.as_tensor(share, dtype=torch.float64, device=draws.keys.device).reshape(-1)
    if not bool(((wanted >= 0) & (wanted <= 1)).all()):
        wrong = wanted[~((wanted >= 0) & (wanted <= 1))][0].item()
        raise bad_value("share", wrong, "must be in [0, 1]: it is a share")
    count = labels.shape[-1]
    coin = draws.uniform(f"{stream} coin", (count,), step).double()
    stratum = (coin < wanted[:, None]).long()
    drawn = torch.stack([1 - wanted, wanted], dim=1)  # (run, stratum)
    chances = torch.tensor([1 - chance, chance], dtype=torch.float64, device=drawn.device)
    log_weight = (chances / drawn).log().expand(len(stratum), -1).gather(1, stratum)
    return _in_strata(noise, law, draws, labels, [tail], stratum, log_weight, stream, step)


def stratified(
    noise: ClassNoise,
    draws: Draws,
    labels: Tensor,
    edges: Sequence[float],
    stream: str = "test",
    step: int = 0,
) -> TailSamples:
    """Samples whose |zeta| fills the strata that ``edges`` cut, from 0 to infinity, equally in each
    class: rare events of the tail are then seen often, and weighted as rare as they are."""
    noise.check_labels(labels)
    labels = labels.to(draws.keys.device)
    law = _usable(noise)
    if not len(edges) or any(
        not 0 < edge < math.inf or edge <= before
        for before, edge in zip([0.0, *edges[:-1]], edges, strict=True)
    ):
        raise bad_value("edges", list(edges), "must be finite, more than 0 and increasing")
    beyond = [1.0, *(law.exceedance(edge) for edge in edges), 0.0]
    chances = [larger - smaller for larger, smaller in zip(beyond[:-1], beyond[1:], strict=True)]
    if min(chances) <= 0:
        empty = chances.index(min(chances))
        raise bad_value("edges", list(edges), f"stratum {empty} is empty under the law {law.name}")
    strata = len(chances)
    there = labels[:, :, None] == torch.arange(noise.classes, device=labels.device)
    place = (there.cumsum(dim=1) - 1).gather(2, labels[:, :, None])[:, :, 0]  # rank in its class
    stratum = place % strata
    sizes = there.sum(dim=1).gather(1, labels)  # of each sample's class
    if bool((sizes < strata).any()):
        allowed = f"every class that is there needs {strata} samples, one per stratum"
        raise bad_value("labels", int(sizes.min()), allowed)
    # the first size % strata of them have one sample more
    filled = sizes // strata + (stratum < sizes % strata)
    chance = torch.tensor(chances, dtype=torch.float64, device=labels.device)[stratum]
    log_weight = (chance * sizes / filled).log()
    return _in_strata(noise, law, draws, labels, edges, stratum, log_weight, stream, step)


def tilted(
    noise: ClassNoise,
    draws: Draws,
    labels: Tensor,
    shift: float = 0.0,
    spread: float = 1.0,
    directions: Tensor | None = None,
    two_sided: bool = True,
    stream: str = "test",
    step: int = 0,
) -> TailSamples:
    """Gaussian samples with mean ``shift`` and std ``spread`` in place of 0 and 1 along a direction
    for each class; ``two_sided``: the mean is plus or minus shift, by a fair coin.

    directions: in the axes of the noise, (run or 1, classes, d), default the special ones. For any
    other law, and for strata, use ``stratified``. The stratum is 0.
    """
    if law_of(noise.law).name != "gaussian":
        raise bad_value("law", law_of(noise.law).name, "tilting needs gaussian: use stratified")
    if not 0 < spread < math.inf or not math.isfinite(shift):
        raise bad_value("spread", spread, "spread must be more than 0, shift and spread finite")
    noise.check_labels(labels)
    labels = labels.to(draws.keys.device)
    zeta = noise.zeta(draws, labels.shape[-1], stream, step)
    if directions is None:
        axes = torch.eye(noise.d, dtype=zeta.dtype, device=zeta.device)
        directions = axes[noise.special_axes().to(zeta.device)][None]
    directions = directions.to(zeta)
    length = directions.norm(dim=2, keepdim=True)
    if directions.shape[1:] != noise.eigenvalues.shape[1:] or bool((length == 0).any()):
        allowed = f"must be (run or 1, {noise.classes}, {noise.d}), none of them 0"
        raise bad_value("directions", tuple(directions.shape), allowed)
    rows = max(len(directions), len(labels))
    row = torch.arange(rows, device=zeta.device)[:, None]
    unit = (directions / length).expand(rows, -1, -1)[row, labels.expand(rows, -1)]
    before = (zeta * unit).sum(dim=2)
    side = draws.sign(f"{stream} side", (labels.shape[-1],), step) if two_sided else 1.0
    after = shift * side + spread * before
    zeta = zeta + (after - before)[:, :, None] * unit
    where = after.double()
    parts = [-((where - mean) ** 2) / (2 * spread**2) for mean in (shift, -shift)]
    drawn = torch.logaddexp(*parts) - math.log(2) if two_sided else parts[0]
    log_weight = math.log(spread) - where**2 / 2 - drawn
    return TailSamples(
        noise.assemble(labels, zeta), after, torch.zeros_like(where).long(), log_weight
    )


def _usable(noise: ClassNoise) -> Law:
    law = law_of(noise.law)
    if noise.zeta_axes == "original" and noise.rotation is not None and law.name != "gaussian":
        allowed = "must be rotated: along the special direction a mixture of zetas has another law"
        raise bad_value("zeta_axes", noise.zeta_axes, allowed)
    return law


def _in_strata(
    noise: ClassNoise,
    law: Law,
    draws: Draws,
    labels: Tensor,
    edges: Sequence[float],
    stratum: Tensor,
    log_weight: Tensor,
    stream: str,
    step: int,
) -> TailSamples:
    """Samples as ``noise.sample`` draws them, but zeta's special coordinate follows its law given
    the stratum of its size: by inversion, nothing is thrown away."""
    count = labels.shape[-1]
    beyond = [1.0, *(law.exceedance(edge) for edge in edges), 0.0]
    at = torch.tensor(beyond, dtype=torch.float64, device=stratum.device)
    inside = draws.uniform(f"{stream} special", (count,), step).double()
    size = law.size(at[stratum + 1] + (at[stratum] - at[stratum + 1]) * inside)
    special = (size * draws.sign(f"{stream} side", (count,), step)).to(draws.dtype)
    zeta = noise.zeta(draws, count, stream, step)
    rows = max(len(special), len(labels), len(zeta))
    special, stratum, log_weight = (v.expand(rows, -1) for v in (special, stratum, log_weight))
    axis = noise.special_axes().to(labels.device)[labels].expand(rows, -1)
    zeta = zeta.expand(rows, -1, -1).scatter(2, axis[:, :, None], special[:, :, None])
    return TailSamples(noise.assemble(labels, zeta), special, stratum, log_weight)
