"""Run-steps per second of ``contrast-alignment`` (C10's paper sizes) against the plain loop.

Both are timed in turn in one process, several rounds; the ratio of medians is the figure, since
absolute times depend on the machine and its mood. Also: time against the number of runs.

    python benchmarks/bench_contrast_cpu.py [--rounds 5]
"""

from __future__ import annotations

from functools import partial

from harness import asked, compared, in_turn, keep, medians, plain_ways, size, timed, timed_study
from plain_contrastive import train

from rarefy.core.settings import compiler_present
from rarefy.studies import get_study

STEPS = size(100, 1)
KIND = "one run at a time"


def library(runs: int, compiled: bool, steps: int = STEPS) -> float:
    """Seconds per run-step."""
    study = get_study("contrast-alignment").at(
        "paper",
        seeds=runs,
        eps_min=(0.3,),
        sigma=(0.03,),
        bias_scale=(1.0,),
        steps=steps,
        reads=(steps,),
        figure_read=steps,
    )
    return timed_study(study, compiled).wall / (runs * steps)


def plain(threads: int) -> float:
    return timed(partial(train, STEPS, seed=0, eps_min=0.3, sigma=0.03), threads).wall / STEPS


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    compilers = [False, True] if compiler_present() else [False]
    ways = {name: partial(plain, threads) for name, threads in plain_ways(KIND)}
    for compiled in compilers:
        library(size(64, 2), compiled, steps=size(3, 1))  # compiled once
        name = f"library, {'compiled' if compiled else 'eager'}"
        ways[name] = partial(library, size(256 if compiled else 32, 2), compiled)
    seconds = in_turn(ways, arguments.rounds)
    median = medians(seconds)
    ratios = compared({"wall": median}, lambda name: KIND)
    scaling = {}
    for runs in size((64, 128, 256, 512), (2,)):
        scaling[runs] = library(runs, compilers[-1])
        print(f"{runs:5d} runs: {scaling[runs] * 1e3:.3f} ms per run-step")
    record = {
        "what": "contrast-alignment at paper sizes (d1=500, d=9, m=24, batch 64, 2 tokens)",
        "rounds": arguments.rounds,
        "seconds_per_run_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios["wall"],
        "seconds_per_run_step_by_runs": scaling,
    }
    keep(arguments, "contrast-cpu", record)


if __name__ == "__main__":
    main()
