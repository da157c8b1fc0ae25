"""Cell-steps a second of ``topk-phase`` at its published sizes against the plain autograd loop.

Both are timed in turn in one process, several rounds; the ratio of medians is the figure, since
absolute times depend on the machine and its mood. Also: time against the number of cells.

    python benchmarks/bench_topk_cpu.py [--rounds 5]
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import torch
from beside_plain import asked, compared, keep, plain_ways
from plain_topk import train_topk

from rarefy.core.settings import compiler_present
from rarefy.studies.topk.phase.study import TopKPhase
from rarefy.sweep.runner import execute

STEPS = 300
"""Far fewer than the 5000 of the study, enough that the store's files are not what is timed."""
CELLS = 64
"""Four equal batches for two cores: 80 would be five, and one core would wait."""
SIGMA = tuple(round(0.12 * i, 2) for i in range(1, 9))
KEEP = (3, 10, 30, 60, 90, 120, 150, 180)


def library(cells: int, reading: str, compiled: bool, steps: int = STEPS) -> float:
    """Seconds for ``cells`` cells of ``steps`` steps through the runner, store and all."""
    study = TopKPhase.at(
        "paper",
        seeds=1,
        reading=(reading,),
        sigma=SIGMA[: max(1, cells // len(KEEP))],
        keep=KEEP[: min(cells, len(KEEP))],
        steps=steps,
        reads=(steps,),
        test_samples=1,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        execute(study, "paper", device="cpu", out=Path(folder) / "store", compiled=compiled)
        return time.perf_counter() - start


def plain(threads: int, prune: bool) -> float:
    """Seconds a cell-step of the plain loop."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    train_topk(STEPS, seed=0, sigma=0.5, keep=60, prune=prune)
    return (time.perf_counter() - start) / STEPS


def main() -> None:
    arguments = asked(__doc__)
    threads = torch.get_num_threads()
    ways = [False, True] if compiler_present() else [False]
    readings = {"pruned every step": "revive", "support fixed": "fixed", "dense": "dense"}
    for compiled in ways:
        library(8, "revive", compiled, steps=3)
    seconds: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for name, prune in (("pruned every step", True), ("dense", False)):
            for words, count in plain_ways(name, threads):
                seconds.setdefault(words, []).append(plain(count, prune))
        torch.set_num_threads(threads)
        for compiled in ways:
            for name, reading in readings.items():
                words = f"library, {name}, {'compiled' if compiled else 'eager'}"
                taken = library(CELLS, reading, compiled) / (CELLS * STEPS)
                seconds.setdefault(words, []).append(taken)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    ratios = compared(
        {"wall": median}, lambda name: "dense" if "dense" in name else "pruned every step"
    )
    scaling = {}
    for cells in (8, 16, 32, CELLS):
        scaling[cells] = library(cells, "revive", ways[-1]) / (cells * STEPS)
        print(f"{cells:5d} cells: {scaling[cells] * 1e3:.3f} ms a cell-step")
    record = {
        "what": "topk-phase at its published sizes (n=d=200, T=10, m=20), per cell-step",
        "steps": STEPS,
        "cells": CELLS,
        "rounds": arguments.rounds,
        "seconds_per_cell_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios["wall"],
        "seconds_per_cell_step_by_cells": scaling,
    }
    keep(arguments.out / "topk-cpu.json", record, threads)


if __name__ == "__main__":
    main()
