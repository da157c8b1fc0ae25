"""Cell-steps per second of ``topk-phase`` at its published sizes against the plain autograd loop.

Both are timed in turn in one process, several rounds; the ratio of medians is the figure, since
absolute times depend on the machine and its mood. Wall time is what a user waits; core time
(seconds of all threads) is fair on a machine that is busy with other things. Also: nothing but the
matrix products of a step, the limit; time against the number of cells.

    python benchmarks/bench_topk_cpu.py [--rounds 5]
"""

from __future__ import annotations

from functools import partial

from harness import (
    asked,
    compared,
    in_turn,
    keep,
    plain_ways,
    products,
    size,
    timed,
    timed_study,
    wall_and_core,
)
from plain_topk import train_topk

from rarefy.core.settings import compiler_present
from rarefy.studies import get_study

STEPS = size(300, 1)
"""Far fewer than the 5000 of the study, enough that the store's files are not what is timed."""
CELLS = size(64, 8)
"""Four equal batches for two cores: 80 would be five, and one core would wait."""
SIGMA = tuple(round(0.12 * i, 2) for i in range(1, 9))
KEEP = (3, 10, 30, 60, 90, 120, 150, 180)


def library(cells: int, reading: str, compiled: bool, steps: int = STEPS) -> tuple[float, float]:
    """Seconds per cell-step, of the clock and of all threads."""
    study = get_study("topk-phase").at(
        "paper",
        seeds=1,
        reading=(reading,),
        sigma=SIGMA[: max(1, cells // len(KEEP))],
        keep=KEEP[: min(cells, len(KEEP))],
        steps=steps,
        test_samples=1,
    )
    return timed_study(study, compiled).per(cells * steps)


def plain(threads: int, prune: bool) -> tuple[float, float]:
    train = partial(train_topk, STEPS, seed=0, sigma=0.5, keep=60, prune=prune)
    return timed(train, threads).per(STEPS)


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    compilers = [False, True] if compiler_present() else [False]
    readings = {"pruned every step": "revive", "support fixed": "fixed", "dense": "dense"}
    ways = {
        words: partial(plain, count, name != "dense")
        for name in ("pruned every step", "dense")
        for words, count in plain_ways(name)
    }
    for compiled in compilers:
        library(8, "revive", compiled, steps=size(3, 1))  # compiled once
        for name, reading in readings.items():
            words = f"library, {name}, {'compiled' if compiled else 'eager'}"
            ways[words] = partial(library, CELLS, reading, compiled)
    forward, backward, gram = (200, 190, 200), (200, 210, 200), (200, 200, 200)
    ways["products alone, pruned every step"] = partial(products, CELLS, STEPS, forward, backward)
    ways["products alone, dense"] = partial(products, CELLS, STEPS, gram)
    seconds = in_turn(ways, arguments.rounds)
    median = wall_and_core(seconds)
    ratios = compared(median, lambda name: "dense" if "dense" in name else "pruned every step")
    scaling = {}
    for cells in size((8, 16, 32, CELLS), (CELLS,)):
        scaling[cells] = library(cells, "revive", compilers[-1])
        print(f"{cells:5d} cells: {scaling[cells][0] * 1e3:.3f} ms per cell-step")
    record = {
        "what": "topk-phase at its published sizes (n=d=200, T=10, m=20), per cell-step",
        "steps": STEPS,
        "cells": CELLS,
        "rounds": arguments.rounds,
        "order": ("wall", "core"),
        "seconds_per_cell_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios,
        "seconds_per_cell_step_by_cells": scaling,
    }
    keep(arguments, "topk-cpu", record)


if __name__ == "__main__":
    main()
