"""Run-steps a second of ``contrast-alignment`` (C10's paper sizes) against the plain loop.

Both are timed in turn in one process, several rounds; the ratio of medians is the figure, since
absolute times depend on the machine and its mood. Also: time against the number of runs.

    python benchmarks/bench_contrast_cpu.py [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from plain_contrastive import train

from rarefy.core.provenance import provenance
from rarefy.core.settings import compiler_present
from rarefy.studies.contrastive.alignment.study import ContrastAlignment
from rarefy.sweep.runner import execute

STEPS = 100
RUNS = 256


def library(runs: int, compiled: bool, steps: int = STEPS) -> float:
    """Seconds for ``runs`` runs of ``steps`` steps through the runner, store and all."""
    study = ContrastAlignment.at(
        "paper",
        seeds=runs,
        eps_min=(0.3,),
        sigma=(0.03,),
        bias_scale=(1.0,),
        steps=steps,
        reads=(steps,),
        figure_read=steps,
    )
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        execute(study, "paper", device="cpu", out=Path(folder) / "store", compiled=compiled)
        return time.perf_counter() - start


def plain(threads: int) -> float:
    """Seconds a run-step of the plain loop."""
    torch.set_num_threads(threads)
    start = time.perf_counter()
    train(STEPS, seed=0, eps_min=0.3, sigma=0.03)
    return (time.perf_counter() - start) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    rounds = parser.parse_args().rounds
    out = parser.parse_args().out
    threads = torch.get_num_threads()
    ways = [False, True] if compiler_present() else [False]
    for compiled in ways:
        library(64, compiled, steps=3)
    plain(threads)
    seconds: dict[str, list[float]] = {"plain": [], "plain, one thread": []}
    seconds.update({f"library, {'compiled' if c else 'eager'}": [] for c in ways})
    for _ in range(rounds):
        seconds["plain"].append(plain(threads))
        seconds["plain, one thread"].append(plain(1))
        torch.set_num_threads(threads)
        for compiled in ways:
            name = f"library, {'compiled' if compiled else 'eager'}"
            runs = RUNS if compiled else 32
            seconds[name].append(library(runs, compiled) / (runs * STEPS))
    median = {name: statistics.median(values) for name, values in seconds.items()}
    best_plain = min(median["plain"], median["plain, one thread"])
    print(f"{'':24} {'ms a run-step':>14} {'run-steps/s':>12} {'x plain':>8} {'x best plain':>12}")
    for name, value in median.items():
        print(
            f"{name:24} {value * 1e3:14.3f} {1 / value:12.0f} {median['plain'] / value:8.1f} "
            f"{best_plain / value:12.1f}"
        )
    scaling = {}
    for runs in (64, 128, 256, 512):
        scaling[runs] = library(runs, ways[-1]) / (runs * STEPS)
        print(f"{runs:5d} runs: {scaling[runs] * 1e3:.3f} ms a run-step")
    out.mkdir(exist_ok=True)
    record = {
        "what": "contrast-alignment at paper sizes (d1=500, d=9, m=24, batch 64, 2 tokens)",
        "rounds": rounds,
        "seconds_per_run_step": seconds,
        "median": median,
        "ratio_to_plain": {k: median["plain"] / v for k, v in median.items()},
        "ratio_to_best_plain": {k: best_plain / v for k, v in median.items()},
        "seconds_per_run_step_by_runs": scaling,
        "threads": threads,
        "provenance": provenance(torch.device("cpu"), "float32", 0.0),
    }
    (out / "contrast-cpu.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
