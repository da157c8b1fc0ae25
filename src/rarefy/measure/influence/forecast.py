"""What a scoring or a search for neighbours will cost, told before it begins."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.precision import matrix_products
from rarefy.measure.influence.core_pool import CorePool, cores
from rarefy.measure.influence.leave_one_out import row_squares
from rarefy.measure.influence.plan import GramStep, make_plan
from rarefy.measure.influence.products import add_scatter, gram_squares, times_upper
from rarefy.measure.influence.rows import MEMORY
from rarefy.measure.influence.search import smallest

SECONDS = 0.08
"""For which each kind of work is tried on all cores."""
_ROWS, _WIDTH = 512, 512


@dataclass(frozen=True)
class Rates:
    """What this machine does in a second, all cores together."""

    flops: float
    """float64, in symmetric, triangular and general products of some hundred rows."""
    values: float
    """Features read, made float64, centred and squared."""
    search_flops: float
    """float32, in products of queries and references."""
    pairs: float
    """Distances gone through for the smallest."""


@dataclass(frozen=True)
class Forecast:
    """FLOPs (symmetric products counted half), bytes of memory at the peak, and seconds where the
    rates are known."""

    flops: float
    memory: int
    seconds: float | None = None


def calibrate(device: torch.device | str = "cpu") -> Rates:
    """Try each kind of work for a moment: about a third of a second in all."""
    where = torch.device(device)
    draws = torch.Generator().manual_seed(0)
    taken = torch.randn(_ROWS, _WIDTH, generator=draws)
    mean = taken.mean(dim=0).double().to(where)
    rows = taken.double().to(where)
    single = taken.to(where)
    width = 16 * _ROWS  # references

    def products(scatter: torch.Tensor) -> None:
        add_scatter(scatter, rows)
        times_upper(rows.clone(), scatter)
        gram_squares(rows, rows)

    def read(_: torch.Tensor) -> None:
        row_squares(taken.to(where).double().sub_(mean).sub_(mean))

    def search(_: torch.Tensor) -> None:
        torch.mm(single, single.T)

    def choose(distances: torch.Tensor) -> None:
        smallest(distances, 16)

    with CorePool(where) as pool, matrix_products("float32", where):
        square = [rows.new_zeros(_WIDTH, _WIDTH) for _ in range(pool.size)]
        wide = [torch.randn(64, width, generator=draws).to(where) for _ in range(pool.size)]
        cube = float(_ROWS * _WIDTH**2)
        return Rates(
            flops=_rate(pool, products, square, 4 * cube, where),
            values=_rate(pool, read, square, _ROWS * _WIDTH, where),
            search_flops=_rate(pool, search, square, 2 * cube, where),
            pairs=_rate(pool, choose, wide, 64 * width, where),
        )


def forecast_scores(
    counts: NDArray[np.int64],
    width: int,
    *,
    itemsize: int = 4,
    mapped: bool = False,
    memory: int = MEMORY,
    device: torch.device | str = "cpu",
    rates: Rates | None = None,
) -> Forecast:
    """Of ``score_classes`` for classes of these sizes; ``itemsize``: bytes of a feature,
    ``mapped``: they lie in a file."""
    counts = np.asarray(counts, dtype=np.int64)
    plan = make_plan(counts, width, itemsize, memory, None, cores(torch.device(device)), mapped)
    flops = sum(plan.flops(step, counts, width) for step in plan.steps)
    rows = 0
    for step in plan.steps:
        if not isinstance(step, GramStep):
            rows += 2 * int(counts[list(step.labels)].sum())
            continue
        count = int(counts[step.label])
        strips = -(-count // step.tile)
        # read once if kept; else for the mean, for half of all pairs of strips, for the distances
        rows += count if step.kept else count * 4 + count * (strips + 1) // 2
    seconds = None if rates is None else flops / rates.flops + rows * width / rates.values
    return Forecast(flops, plan.memory, seconds)


def forecast_neighbours(
    queries: int,
    references: int,
    width: int,
    *,
    dimensions: int | None = None,
    rates: Rates | None = None,
) -> Forecast:
    """Of ``nearest``; ``dimensions``: of the space, None: all."""
    inside = width if dimensions is None else min(width, dimensions)
    flops = 2.0 * queries * references * inside
    rows = queries + references
    projecting = 0.0 if inside == width else 2.0 * rows * width * inside
    seconds = None
    if rates is not None:
        seconds = flops / rates.search_flops + queries * references / rates.pairs
        seconds += projecting / rates.flops + rows * width / rates.values
    memory = 4 * references * inside + 8 * width * inside * (inside < width)
    return Forecast(flops + projecting, memory, seconds)


def _rate(
    pool: CorePool,
    work: Callable[[torch.Tensor], None],
    on: list[torch.Tensor],
    amount: float,
    device: torch.device,
) -> float:
    """Amount of work per second when every core does it."""

    def repeat(tensor: torch.Tensor) -> float:
        work(tensor)  # once to warm up
        _wait(device)
        start, times = time.perf_counter(), 0
        while (now := time.perf_counter()) - start < SECONDS:
            work(tensor)
            _wait(device)
            times += 1
        return times * amount / (now - start)

    return sum(pool.map(repeat, on))


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
