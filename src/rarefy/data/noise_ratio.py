"""Eigenvalues with a wanted noise correlation ratio Gamma (003 Theorem 1, the family of Sec. 5.1).

Of each class all eigenvalues are ``base`` but the special one, lambda_k. Let x_k = lambda_k^2 /
base^2 and r the rank. Where every class has noise along all special directions,

    Gamma_kj = |S_k| (r - 1 + x_k^2) / (|S_j| (r - 2 + x_k + x_j)),

and min over j of Gamma_kj = Gamma for all k says that x_k is the larger root of a quadratic whose
coefficients grow with the others' x: a fixed point of an increasing map. Started above it the map
descends to its greatest fixed point. Any solution lies below its own image under the map, so if
there is a solution the greatest fixed point is one, and what is reachable at Gamma is reachable at
every larger Gamma. No table of any kind reaches a common Gamma below 1: going from each class to
the one with which its ratio is least ends in a cycle, along which the sizes cancel, and the product
of ratios is at least 1 by Cauchy and Schwarz.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.data.noise_spectrum import Spectrum, special_spectrum
from rarefy.data.noise_structure import check_rank, check_sizes

RESIDUAL = 1e-9
"""Largest relative error of a ratio that counts as met; float64 gives about 1e-15."""
DESCENT, NEWTON = 100, 60
"""Steps of the map, which settle who limits whom, then of Newton's method from above, whose error
halves per step in the worst case (Gamma at the end of the range)."""


def spectrum_for(
    gamma: Tensor | float,
    sizes: Tensor | Sequence[int] | int,
    d: int,
    classes: int,
    base: float = 0.5,
    rank: int | None = None,
    own: bool | None = None,
) -> Spectrum:
    """Noise with min over j != k of Gamma_kj = ``gamma``, a number or (run,), for every class k;
    for equal sizes all Gamma_kj are equal to it. Its cost does not depend on d.

    sizes: |S_k|, one number, (classes,) or (run or 1, classes); ``rank`` and ``own`` as in
    ``special_spectrum``. Refuses a ratio out of reach, with the range.
    """
    rank, own = check_rank(d, classes, rank, own)
    wanted = torch.as_tensor(gamma, dtype=torch.float64).reshape(-1)
    amount = torch.as_tensor(sizes, dtype=torch.float64, device=wanted.device)
    amount = amount.expand(classes) if amount.dim() == 0 else amount
    amount = amount[None] if amount.dim() == 1 else amount
    check_sizes(amount, classes)
    runs = max(len(wanted), len(amount))
    if len(wanted) not in (1, runs) or len(amount) not in (1, runs):
        raise bad_value("gamma", len(wanted), f"needs one value for each of {runs} rows of sizes")
    wanted, amount = wanted.expand(runs), amount.expand(runs, -1)
    if rank == 1:
        raise bad_value("rank", rank, "must be at least 2: otherwise every ratio is infinite")
    squared = _own_squares(wanted, amount, rank) if own else _shared_squares(wanted, amount, rank)
    missed = torch.isnan(squared).any(dim=1)
    if bool(missed.any()):
        row = int(missed.nonzero()[0])
        where = f"with rank {rank} and class sizes {[int(s) for s in amount[row].tolist()]}"
        raise bad_value(
            "gamma",
            wanted[row].item(),
            f"{where} the reachable range is {_range(amount[row : row + 1], rank, own)}",
        )
    return special_spectrum(base * squared.sqrt(), d, classes, base, rank, own)


def smallest_gamma(sizes: Tensor, rank: int, own: bool = False) -> float:
    """The lower end of the reachable ratios for ``sizes``, (1, classes): met (and found from above,
    up to 1e-7) where classes share their special directions, not met with ``own``."""
    first, second = sizes.flatten().sort(descending=True).values[:2].tolist()
    # homogeneous noise has it; with own directions it is the limit of x_k = 0 in the largest class
    low, high = 1.0, first / second
    if own or bool((sizes == first).all()):
        return high
    while high - low > 1e-7 * high:
        tried = torch.linspace(low, high, 65, dtype=torch.float64, device=sizes.device)[1:-1]
        squares = _shared_squares(tried, sizes.expand(len(tried), -1), rank)
        reached = tried[~torch.isnan(squares).any(dim=1)].tolist()
        step = (high - low) / 64
        high = min(reached, default=high)
        low = max(low, high - step)
    return high


def _range(sizes: Tensor, rank: int, own: bool) -> str:
    """The reachable ratios in words, the end rounded up so that it may be asked for."""
    least = smallest_gamma(sizes, rank, own)
    digits = 10.0 ** (6 - math.ceil(math.log10(least) + 1e-12))
    least = least if least == round(least) else math.ceil(least * digits) / digits
    return f"({least:g}, inf)" if own else f"[{least:g}, inf)"


def _own_squares(gamma: Tensor, sizes: Tensor, rank: int) -> Tensor:
    """x_k where the special directions are the classes' own: Gamma_kj = |S_k| (r - 1 + x_k^2) /
    (|S_j| (r - 1)), least for the largest other class. NaN out of reach."""
    others = sizes[:, None, :].expand(-1, sizes.shape[1], -1)
    largest = others.masked_fill(_diagonal(others), 0).amax(dim=2)
    square = (rank - 1) * (gamma[:, None] * largest / sizes - 1)
    return torch.where(square > 0, square, math.nan).sqrt()


def _shared_squares(gamma: Tensor, sizes: Tensor, rank: int) -> Tensor:
    """x_k where all classes have noise along all special directions: (run, classes), or NaN."""
    ratio = gamma[:, None, None] * sizes[:, None, :] / sizes[:, :, None]  # Gamma |S_j| / |S_k|
    ratio = ratio.masked_fill(_diagonal(ratio), 0)
    # above every fixed point: the root if all ratios were the largest one
    most = ratio.amax(dim=(1, 2))
    x = (most + (most.square() + most * (rank - 2)).sqrt())[:, None].expand_as(sizes)
    for _ in range(DESCENT):
        x = _larger_roots(x, ratio, rank)
    for _ in range(NEWTON):
        below = _newton(x, ratio, rank)
        descended = (below <= x) & (below > 0) & (_larger_roots(below, ratio, rank) <= below)
        x = torch.where(descended.all(dim=1, keepdim=True), below, _larger_roots(x, ratio, rank))
    # equal sizes: all x are equal, (Gamma - 1)(Gamma + r - 1) = (x - Gamma)^2
    same = (sizes == sizes[:, :1]).all(dim=1)
    inside = (gamma - 1) * (gamma + rank - 1)
    closed = gamma + torch.where(inside >= 0, inside, math.nan).sqrt()
    x = torch.where(same[:, None], closed[:, None], x)
    limits = (ratio * (rank - 2 + x[:, :, None] + x[:, None, :])).amax(dim=2)
    met = ((rank - 1 + x.square()) / limits - 1).abs() < RESIDUAL
    return torch.where(met.all(dim=1, keepdim=True), x, math.nan)


def _larger_roots(x: Tensor, ratio: Tensor, rank: int) -> Tensor:
    """The map: the largest x_k at which some j has Gamma_kj = Gamma, given the others. NaN where
    Gamma_kj is larger for all x_k and j: the others' x are too small for this Gamma."""
    inside = (ratio / 2).square() + ratio * (rank - 2 + x[:, None, :]) - (rank - 1)
    root = ratio / 2 + torch.where(inside >= 0, inside, -math.inf).clamp(min=0).sqrt()
    there = (inside >= 0) & (ratio > 0)
    best = root.masked_fill(~there, -math.inf).amax(dim=2)
    return torch.where(torch.isinf(best), math.nan, best)


def _newton(x: Tensor, ratio: Tensor, rank: int) -> Tensor:
    """Newton's step for r - 1 + x_k^2 = Gamma |S_j|/|S_k| (r - 2 + x_k + x_j), with the j that
    limits k at x: (run, classes). NaN in, or a singular system, gives NaN out."""
    there = x.nan_to_num(1.0)
    limits = ratio * (rank - 2 + there[:, :, None] + there[:, None, :])
    level, who = limits.max(dim=2)
    slope = ratio.gather(2, who[:, :, None])
    matrix = torch.diag_embed(2 * there - slope[:, :, 0]).scatter_add(2, who[:, :, None], -slope)
    gap = rank - 1 + there.square() - level
    step, info = torch.linalg.solve_ex(matrix, gap)
    return torch.where((info == 0)[:, None] & ~torch.isnan(x), there - step, math.nan)


def _diagonal(table: Tensor) -> Tensor:
    return torch.eye(table.shape[-1], dtype=torch.bool, device=table.device).expand_as(table)
