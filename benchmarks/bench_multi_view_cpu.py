"""Cell-steps a second of ``granularity-detectors`` against the plain autograd loop.

A cell of the study trains two networks, one with coarse and one with fine labels; so does the plain
loop, one after the other. Both are timed in turn in one process, several rounds; the ratio of
medians is the figure, since absolute times depend on the machine and its mood. Wall time is what a
user waits; core time (seconds of all threads) is fair on a machine that is busy with other things.
Also: time against the number of cells.

    python benchmarks/bench_multi_view_cpu.py [--rounds 5]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
from beside_plain import asked, compared, keep, plain_ways
from plain_multi_view import train_multi_view

from rarefy.core.settings import compiler_present
from rarefy.studies.granularity.detectors.study import GranularityDetectors
from rarefy.sweep.runner import execute

STEPS, PLAIN_STEPS, CELLS = 40, 20, 64
CASES = {"k=4": (4, 0.02), "k=8": (8, 0.02), "k=16": (16, 0.02), "k=8 quiet": (8, 0.002)}
"""Subclasses a side, and noise: that of the other studies, or that of this one, in which far fewer
neurons are within reach of a patch."""
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


class Times(NamedTuple):
    """Seconds."""

    wall: float
    core: float


class Watch:
    """Started when made."""

    def __init__(self) -> None:
        self.wall, self.core = time.perf_counter(), time.process_time()

    def times(self, count: int) -> Times:
        wall, core = time.perf_counter() - self.wall, time.process_time() - self.core
        return Times(wall / count, core / count)


def library(cells: int, case: str, compiled: bool, steps: int = STEPS) -> Times:
    """Of a cell-step (two networks), through the runner, store and all."""
    subclasses, sigma = CASES[case]
    study = GranularityDetectors.at(
        "paper",
        seeds=cells,
        variation="as chosen",
        subclasses=subclasses,
        main=subclasses,
        steps=steps,
        reads=(0, 1, steps),
        sigma=sigma,
        **SETTING,
    )
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch()
        execute(study, "paper", device="cpu", out=Path(folder) / "store", compiled=compiled)
        return watch.times(cells * steps)


def plain(threads: int, case: str) -> Times:
    """Of a step of one coarse and one fine network."""
    subclasses, sigma = CASES[case]
    torch.set_num_threads(threads)
    watch = Watch()
    for fine in (False, True):
        train_multi_view(PLAIN_STEPS, 0, subclasses, fine, sigma=sigma, **SETTING)
    return watch.times(PLAIN_STEPS)


def main() -> None:
    arguments = asked(__doc__)
    threads = torch.get_num_threads()
    ways = [False, True] if compiler_present() else [False]
    for compiled in ways:
        library(8, "k=4", compiled, steps=3)
    seconds: dict[str, list[Times]] = {}
    for _ in range(arguments.rounds):
        for case in CASES:
            for words, count in plain_ways(case, threads):
                seconds.setdefault(words, []).append(plain(count, case))
            torch.set_num_threads(threads)
            for compiled in ways:
                words = f"library, {case}, {'compiled' if compiled else 'eager'}"
                seconds.setdefault(words, []).append(library(CELLS, case, compiled))
    median = {
        column: {
            name: statistics.median(each[place] for each in values)
            for name, values in seconds.items()
        }
        for place, column in enumerate(Times._fields)
    }
    ratios = compared(median, lambda name: name.split(", ")[1])
    scaling = {}
    for cells in (4, 8, 16, 32, 64):
        scaling[cells] = library(cells, "k=4", ways[-1])
        print(f"{cells:5d} cells: {scaling[cells].wall * 1e3:.2f} ms a cell-step at k=4")
    record = {
        "what": "granularity-detectors (d=100, P=24, m=100, N=64), a coarse and a fine network",
        "rounds": arguments.rounds,
        "order": Times._fields,
        "seconds_per_cell_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios,
        "seconds_per_cell_step_by_cells": scaling,
    }
    keep(arguments.out / "multi-view-cpu.json", record, threads)


if __name__ == "__main__":
    main()
