"""Cell-steps per second of ``granularity-detectors`` against the plain autograd loop.

A cell of the study trains two networks, one with coarse and one with fine labels; so does the plain
loop, one after the other. Both are timed in turn in one process, several rounds; the ratio of
medians is the figure, since absolute times depend on the machine and its mood. Wall time is what a
user waits; core time (seconds of all threads) is fair on a machine that is busy with other things.
Also: time against the number of cells.

    python benchmarks/bench_multi_view_cpu.py [--rounds 5]
"""

from __future__ import annotations

from functools import partial

from harness import (
    asked,
    compared,
    in_turn,
    keep,
    plain_ways,
    size,
    timed,
    timed_study,
    wall_and_core,
)
from plain_granularity import train_multi_view

from rarefy.core.settings import compiler_present
from rarefy.studies import get_study

STEPS, PLAIN_STEPS, CELLS = size((40, 20, 64), (1, 1, 1))
CASES = {"k=4": (4, 0.02), "k=8": (8, 0.02), "k=16": (16, 0.02), "k=8 quiet": (8, 0.002)}
"""Subclasses per side, and noise: that of the other studies, or that of this one, in which far
fewer neurons are within reach of a patch."""
SETTING = {
    "d": 100,
    "patches": 24,
    "feature_patches": 3,
    "neurons": 100,
    "batch": 64,
    "lr": 1.0,
    "sigma_0": 0.01,
    "threshold": 1.0,
    "spread": 0.1,
}
"""The same for both."""


def library(cells: int, case: str, compiled: bool, steps: int = STEPS) -> tuple[float, float]:
    """Seconds per cell-step (two networks)."""
    subclasses, sigma = CASES[case]
    study = get_study("granularity-detectors").at(
        "paper",
        seeds=cells,
        variation="as chosen",
        subclasses=subclasses,
        main=subclasses,
        steps=steps,
        reads=(0, steps),
        sigma=sigma,
        ratio=1,
        counts="fixed",
        **SETTING,
    )
    return timed_study(study, compiled).per(cells * steps)


def plain(threads: int, case: str) -> tuple[float, float]:
    """Seconds per step of one coarse and one fine network."""
    subclasses, sigma = CASES[case]

    def both() -> None:
        for fine in (False, True):
            train_multi_view(PLAIN_STEPS, 0, subclasses, fine, sigma=sigma, **SETTING)

    return timed(both, threads).per(PLAIN_STEPS)


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    compilers = [False, True] if compiler_present() else [False]
    for compiled in compilers:
        library(size(8, 1), "k=4", compiled, steps=size(3, 1))  # compiled once
    ways = {}
    for case in size(list(CASES), ["k=4"]):
        ways |= {words: partial(plain, count, case) for words, count in plain_ways(case)}
        for compiled in compilers:
            words = f"library, {case}, {'compiled' if compiled else 'eager'}"
            ways[words] = partial(library, CELLS, case, compiled)
    seconds = in_turn(ways, arguments.rounds)
    median = wall_and_core(seconds)
    ratios = compared(median, lambda name: name.split(", ")[1])
    scaling = {}
    for cells in size((4, 8, 16, 32, 64), (1,)):
        scaling[cells] = library(cells, "k=4", compilers[-1])
        print(f"{cells:5d} cells: {scaling[cells][0] * 1e3:.2f} ms per cell-step at k=4")
    record = {
        "what": "granularity-detectors (d=100, P=24, m=100, N=64), a coarse and a fine network",
        "rounds": arguments.rounds,
        "order": ("wall", "core"),
        "seconds_per_cell_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios,
        "seconds_per_cell_step_by_cells": scaling,
    }
    keep(arguments, "multi-view-cpu", record)


if __name__ == "__main__":
    main()
