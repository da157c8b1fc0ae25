"""Does y grow with x among like cases? Rank correlation inside strata.

Arrays are laid out ``(block, run, unit)``: a block is one value of an axis that changes both x and
y (a frequency), a run one seed, a unit one thing measured in it (a feature). Units fall into groups
(majority, minority); a stratum is one group in one block. A value that is not finite is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from rarefy.core.errors import bad_value
from rarefy.measure.estimates import SEED, Band, bootstrap_interval, t_quantile
from rarefy.measure.shared_draws import drawn_once
from rarefy.measure.trends import Trend, spearman_rho

Array = NDArray[np.float64]

LEAST_RUNS = 30
"""A mean is shown, and ranked among others, if at least so many runs stand behind it; a mean of one
or two runs is an anecdote, and a cluster-robust interval of it is far too narrow. Where there are
fewer than four times as many runs, a quarter of them is asked for."""


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

    Strata in which x or y does not vary have no rank correlation and are left out. Units of one
    run share a network and are not independent, so whole runs are exchanged (inside their block)
    for the p-value, resampled for the interval, and counted by ``n``. What is compared with
    exchanged runs is the sum over its standard error: fewer units meet where values are missing, so
    that plain sums would scatter less than the one of the data (Janssen 1997). Hardly any may meet
    if few runs have values at all; then the signs of what the runs add are flipped too, and the
    larger p-value counts. The rho of means is that of ``adjusted_means``, levels above ``most``
    taken together.
    """
    x, y, groups = _laid_out(x, y, groups)
    there = np.isfinite(x) & np.isfinite(y)
    x_rank, y_rank = (_ranks_in_strata(values, there, groups) for values in (x, y))
    compared, complete = np.zeros(x.shape, dtype=bool), True
    for stratum in _strata(x, groups):
        if x_rank[stratum].any() and y_rank[stratum].any():
            compared[stratum] = there[stratum]
            complete &= bool(there[stratum].all())
    x_rank, y_rank = (np.where(compared, ranks, 0.0) for ranks in (x_rank, y_rank))
    n = int((compared if compared.any() else there).any(axis=2).sum())
    product = np.einsum("bsu,bru->bsr", x_rank, y_rank)  # every run's x with every run's y
    own = np.einsum("bss->s", product)
    sizes = [(ranks**2).sum(axis=(0, 2)) for ranks in (x_rank, y_rank)]
    parts = np.stack([own, *sizes], axis=1)
    if not compared.any():
        return Trend(np.nan, np.nan, np.nan, n)
    blocks, runs, _ = product.shape
    exchanged, generator = _exchanged_runs(blocks, runs, permutations, seed)
    sums, squares = np.zeros(permutations), np.zeros(permutations)
    for block, places in zip(product, exchanged, strict=True):
        met = block.ravel().take(places)  # (by two indices it takes ten times as long)
        sums += met.sum(axis=1)
        squares += np.einsum("ij,ij->i", met, met)
    mine = np.einsum("bss->bs", product).ravel()
    found = abs(mine.sum()) * (1 - 1e-12)
    error = np.sqrt((mine**2).sum())
    # found/error against sums/sqrt(squares), without dividing by 0
    as_extreme = int((np.abs(sums) * error >= found * np.sqrt(squares)).sum())
    if not complete:
        mine = mine[mine != 0]
        signs = generator.integers(0, 2, (permutations, len(mine))) * 2 - 1
        as_extreme = max(as_extreme, int((np.abs(signs @ mine) >= found).sum()))
    rho = bootstrap_interval(parts, _ratio)
    p_value = (1 + as_extreme) / (1 + permutations)
    return Trend(rho.mean, p_value, _rho_of_means(x, y, groups, most), n, rho.low, rho.high)


def _exchanged_runs(
    blocks: int, runs: int, permutations: int, seed: int
) -> tuple[list[NDArray[np.intp]], np.random.Generator]:
    """Where in a table (run, run) of each block exchanged runs meet the others, (permutation, run),
    and the generator after them."""
    place = np.arange(runs)
    order = np.tile(place, (permutations, 1))

    def drawn(generator: np.random.Generator) -> list[NDArray[np.intp]]:
        return [generator.permuted(order, axis=1) * runs + place for _ in range(blocks)]

    return drawn_once("runs", (blocks, runs, permutations), seed, drawn)


def adjusted_means(
    x: ArrayLike,
    y: ArrayLike,
    levels: ArrayLike,
    groups: ArrayLike | None = None,
    level: float = 0.95,
) -> Band:
    """Mean of y at each level of x, the strata being equal: y = stratum + effect of the level.

    Plain means over all strata would compare easy strata, where x is large, with hard ones. The
    last level stands for all values from it on. A level that fewer than ``LEAST_RUNS`` runs show
    is counted with the one below it (the lowest: with the one above) and its own mean is NaN; so is
    that of a level which no stratum sets against another. Intervals treat a run as one observation.
    With one stratum these are the plain means.
    """
    x, y, groups = _laid_out(x, y, groups)
    levels = np.asarray(levels, dtype=np.float64)
    there = np.isfinite(x) & np.isfinite(y)
    dummies = (np.minimum(x, levels[-1])[..., None] == levels) & there[..., None]
    dummies = _merged(dummies, groups)
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
    half = t_quantile(max(runs - 1, 1), level) * np.sqrt(variance)
    mean, half = (np.where(seen, v, np.nan) for v in (mean, half))
    return Band(mean, mean - half, mean + half, count)


def _merged(dummies: NDArray[np.bool_], groups: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Levels that too few runs show, taken together with a neighbour; (block, run, unit, level).

    Runs count only in strata where levels differ: elsewhere they say nothing of a level.
    """
    told = np.zeros(dummies.shape[:3], dtype=bool)
    for stratum in _strata(told, groups):
        told[stratum] = np.any(dummies[stratum], axis=(0, 1)).sum() > 1
    shown = np.any(dummies & told[..., None], axis=2)  # (block, run, level)
    least = min(LEAST_RUNS, np.any(shown, axis=2).sum() / 4)
    merged = dummies.copy()

    def move(source: int, target: int) -> None:
        for array in (merged, shown):
            array[..., target] |= array[..., source]
            array[..., source] = False

    for level in range(dummies.shape[3] - 1, 0, -1):
        if shown[..., level].sum() < least:
            move(level, level - 1)
    kept = np.flatnonzero(np.any(shown, axis=(0, 1)))
    if len(kept) > 1 and shown[..., kept[0]].sum() < least:
        move(kept[1], kept[0])
    return merged


def _rho_of_means(x: Array, y: Array, groups: NDArray[np.generic], most: float) -> float:
    known = x[np.isfinite(x) & np.isfinite(y)]
    levels = np.unique(np.minimum(known, most))
    means = adjusted_means(x, y, levels, groups).mean
    seen = np.isfinite(means)
    if seen.sum() < 2 or np.ptp(means[seen]) == 0:
        return np.nan
    return spearman_rho(levels[seen], means[seen])


def _ratio(parts: Array) -> Array:
    own, x_size, y_size = np.moveaxis(parts.sum(axis=1), -1, 0)
    size = np.sqrt(x_size * y_size)
    return np.asarray(own / np.where(size > 0, size, np.nan))


def _strata(
    x: NDArray[Any], groups: NDArray[np.generic]
) -> list[tuple[int, slice, NDArray[np.bool_]]]:
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
            ranks = pd.Series(values[stratum][known]).rank().to_numpy()
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
