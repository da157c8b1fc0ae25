"""Does y grow with x among like cases? Rank correlation inside strata.

Arrays are laid out ``(block, run, unit)``: a block is one value of an axis that changes both x and
y (a frequency), a run one seed, a unit one thing measured in it (a feature). Units fall into groups
(majority, minority); a stratum is one group in one block. A value that is not finite is missing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from rarefy.core.errors import bad_value
from rarefy.measure.estimates import SEED, Band, Trend, bootstrap_interval

Array = NDArray[np.float64]


def pooled(values: ArrayLike) -> Array:
    """The same values as one block: (block, run, unit) to (1, block * run, unit)."""
    array = np.asarray(values, dtype=np.float64)
    return array.reshape(1, -1, array.shape[2])


def stratified_trend(
    x: ArrayLike,
    y: ArrayLike,
    groups: ArrayLike | None = None,
    most: float = np.inf,
    permutations: int = 9999,
    seed: int = SEED,
) -> Trend:
    """Spearman's rho with ranks taken inside each stratum, then pooled; ``groups``: (unit,).

    Units of one run share a network and are not independent, so whole runs are exchanged (inside
    their block) for the p-value and resampled for the interval. The rho of means is that of
    ``adjusted_means``, levels above ``most`` taken together.
    """
    x, y, groups = _laid_out(x, y, groups)
    there = np.isfinite(x) & np.isfinite(y)
    n = int(there.sum())
    x_rank, y_rank = (_ranks_in_strata(values, there, groups) for values in (x, y))
    product = np.einsum("bsu,bru->bsr", x_rank, y_rank)  # every run's x with every run's y
    own = np.einsum("bss->s", product)
    sizes = [(ranks**2).sum(axis=(0, 2)) for ranks in (x_rank, y_rank)]
    parts = np.stack([own, *sizes], axis=1)
    if not (parts[:, 1].sum() > 0 and parts[:, 2].sum() > 0):
        return Trend(np.nan, np.nan, np.nan, n)
    generator = np.random.default_rng(seed)
    order = np.tile(np.arange(x.shape[1]), (permutations, 1))
    exchanged = np.zeros(permutations)
    for block in product:
        shuffled = generator.permuted(order, axis=1)
        exchanged += block[shuffled, order].sum(axis=1)
    total = float(own.sum())
    as_extreme = int((np.abs(exchanged) >= abs(total) * (1 - 1e-12)).sum())
    rho = _ratio(parts)
    ends = bootstrap_interval(parts, _ratio)
    return Trend(
        rho,
        (1 + as_extreme) / (1 + permutations),
        _rho_of_means(x, y, groups, most),
        n,
        ends.low,
        ends.high,
    )


def adjusted_means(
    x: ArrayLike,
    y: ArrayLike,
    levels: ArrayLike,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> Band:
    """Mean of y at each level of x, the strata being equal: y = stratum + effect of the level.

    Plain means over all strata would compare easy strata, where x is large, with hard ones. The
    last level stands for all values from it on. NaN where no stratum sets a level against another;
    intervals treat a run as one observation. With one stratum these are the plain means.
    """
    x, y, groups = _laid_out(x, y, groups)
    levels = np.asarray(levels, dtype=np.float64)
    there = np.isfinite(x) & np.isfinite(y)
    dummies = (np.minimum(x, levels[-1])[..., None] == levels) & there[..., None]
    inside, relative = np.zeros(dummies.shape), np.zeros(y.shape)
    told = np.zeros(y.shape, dtype=bool)
    for stratum in _strata(x, groups):
        known = there[stratum]
        shares = dummies[stratum][known]
        if len(shares) and not (shares == shares[0]).all():  # x varies here
            inside[stratum] = np.where(
                known[..., None], dummies[stratum] - shares.mean(axis=0), 0.0
            )
            relative[stratum] = np.where(known, y[stratum] - y[stratum][known].mean(), 0.0)
            told[stratum] = known
    # singular: what all levels share belongs to the strata
    square = np.einsum("brul,bruk->lk", inside, inside)
    inverse = np.linalg.pinv(square, rcond=1e-10, hermitian=True)
    effect = inverse @ np.einsum("brul,bru->l", inside, relative)
    count = (dummies & told[..., None]).sum(axis=(0, 1, 2))
    seen = count > 0
    if not seen.any():
        nothing = np.full(len(levels), np.nan)
        return Band(nothing, nothing, nothing, count)
    share = count / count.sum()
    mean = effect + y[told].mean() - share @ effect
    # cluster-robust (Liang and Zeger 1986): what a run adds to each mean is one observation
    residual = relative - inside @ effect
    added = np.einsum("brul,bru->brl", inside, residual) @ inverse
    added += relative.sum(axis=2, keepdims=True) / count.sum() - (added @ share)[..., None]
    added = added.reshape(-1, len(levels))
    runs = int(told.any(axis=2).sum())
    variance = (added**2).sum(axis=0) * runs / max(runs - 1, 1)
    half = stats.t.ppf((1 + level) / 2, max(runs - 1, 1)) * np.sqrt(variance)
    mean, half = (np.where(seen, v, np.nan) for v in (mean, half))
    return Band(mean, mean - half, mean + half, count)


def _rho_of_means(x: Array, y: Array, groups: NDArray[np.generic], most: float) -> float:
    known = x[np.isfinite(x) & np.isfinite(y)]
    levels = np.unique(np.minimum(known, most))
    means = adjusted_means(x, y, levels, groups).mean
    seen = np.isfinite(means)
    if seen.sum() < 2 or np.ptp(means[seen]) == 0:
        return np.nan
    return float(stats.spearmanr(levels[seen], means[seen]).statistic)


def _ratio(parts: Array) -> float:
    own, x_size, y_size = parts.sum(axis=0)
    size = np.sqrt(x_size * y_size)
    return float(own / size) if size > 0 else np.nan


def _strata(x: Array, groups: NDArray[np.generic]) -> list[tuple[int, slice, NDArray[np.bool_]]]:
    return [
        (block, slice(None), groups == group)
        for block in range(len(x))
        for group in np.unique(groups)
    ]


def _ranks_in_strata(values: Array, there: NDArray[np.bool_], groups: NDArray[np.generic]) -> Array:
    """Centred ranks inside each stratum, ties shared; 0 for what is missing."""
    result = np.zeros(values.shape)
    for stratum in _strata(values, groups):
        known = there[stratum]
        if known.any():
            ranks = stats.rankdata(values[stratum][known])
            part = np.zeros(known.shape)
            part[known] = ranks - ranks.mean()
            result[stratum] = part
    return result


def _laid_out(
    x: ArrayLike, y: ArrayLike, groups: ArrayLike | None
) -> tuple[Array, Array, NDArray[np.generic]]:
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 3 or x.shape != y.shape:
        raise bad_value("y", y.shape, f"x and y must be (block, run, unit), and x is {x.shape}")
    named = np.zeros(x.shape[2]) if groups is None else np.asarray(groups)
    if named.shape != (x.shape[2],):
        raise bad_value("groups", named.shape, f"must name the group of each of {x.shape[2]} units")
    return x, y, named
