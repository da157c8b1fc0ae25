"""The dual form of the signal-and-noise labs on two cores: against the plain loop, and against d.

Unpruned training of 002 at n = d = 200 (T = 10, m = 20), per cell-step, through the runner: by
inner products alone (``topk-regimes --form dual``; a Gram matrix a cell), by the Gram matrix that
cells with shared noise have in common (``topk-phase``, dense), by weights (``--form primal``), and
the plain autograd loop. Then the same cells at d from 10^3 to 10^9.

    python benchmarks/bench_dual_cpu.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import torch
from plain_topk import train_topk

from rarefy.core.contracts import Study
from rarefy.core.provenance import provenance
from rarefy.core.settings import compiler_present
from rarefy.studies.topk.phase.study import TopKPhase
from rarefy.studies.topk.regimes.study import TopKRegimes
from rarefy.sweep.runner import execute

STEPS = 300
CELLS = 64


def regimes(d: int, form: str) -> TopKRegimes:
    """64 cells of ``topk-regimes`` at the sizes of 002's figure, one read, next to no test."""
    found = TopKRegimes.at(
        "paper",
        samples=(200,),
        classes=(10,),
        d=(d,),
        snr=tuple(0.01 * 1.2**i for i in range(16)),
        seeds=CELLS // 16,
        steps=STEPS,
        reads=(STEPS,),
        test_samples=1,
        form=form,
    )
    assert isinstance(found, TopKRegimes)
    return found


def shared() -> TopKPhase:
    """64 unpruned cells of ``topk-phase``: one noise for all."""
    found = TopKPhase.at(
        "paper",
        seeds=1,
        reading=("dense",),
        sigma=tuple(round(0.12 * i, 2) for i in range(1, 9)),
        keep=(3, 10, 30, 60, 90, 120, 150, 180),
        steps=STEPS,
        reads=(STEPS,),
        test_samples=1,
    )
    assert isinstance(found, TopKPhase)
    return found


def seconds(study: Study) -> float:
    """A cell-step, store and all."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        execute(
            study, "paper", device="cpu", out=Path(folder) / "store", compiled=compiler_present()
        )
        return (time.perf_counter() - start) / (CELLS * STEPS)


def plain(threads: int) -> float:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    start = time.perf_counter()
    train_topk(STEPS, seed=0, sigma=0.5, keep=60, prune=False)
    torch.set_num_threads(before)
    return (time.perf_counter() - start) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    threads = torch.get_num_threads()
    ways = {
        "dual, own noise a cell": regimes(200, "dual"),
        "dual, noise shared": shared(),
        "primal, own noise a cell": regimes(200, "primal"),
    }
    ways |= {f"dual, d = {d:.0e}": regimes(d, "dual") for d in (10**3, 10**6, 10**9)}
    for study in ways.values():
        seconds(study)  # compiled once
    taken: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for count in (1, threads):
            taken.setdefault(f"plain, {count} threads", []).append(plain(count))
        for name, study in ways.items():
            taken.setdefault(name, []).append(seconds(study))
    median = {name: statistics.median(values) for name, values in taken.items()}
    best = min(value for name, value in median.items() if name.startswith("plain"))
    for name, value in median.items():
        print(f"{name:28} {value * 1e3:8.3f} ms a cell-step {best / value:6.1f} x the plain loop")
    grown = median["dual, d = 1e+06"] / median["dual, d = 1e+03"]
    print(f"d = 10^6 takes {grown:.2f} times what d = 10^3 takes")
    record = {
        "what": "unpruned training of 002, n = 200, T = 10, m = 20, seconds a cell-step",
        "rounds": arguments.rounds,
        "seconds_per_cell_step": taken,
        "median": median,
        "ratio_to_best_plain": {name: best / value for name, value in median.items()},
        "d = 10^6 over d = 10^3": grown,
        "threads": threads,
        "provenance": provenance(torch.device("cpu"), "float32", 0.0),
    }
    arguments.out.mkdir(exist_ok=True)
    (arguments.out / "dual-cpu.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
