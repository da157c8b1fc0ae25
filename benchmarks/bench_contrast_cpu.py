"""Run-steps per second of ``contrast-alignment`` (C10's paper sizes) against the plain loop.

Both are timed in turn in one process, several rounds; the ratio of medians is the figure, since
absolute times depend on the machine and its mood. Wall time is what a user waits; core time
(seconds of all threads) is fair on a machine that is busy with other things. Also: time against the
number of runs, and where a core's time goes.

    python benchmarks/bench_contrast_cpu.py [--rounds 5]
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
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
from plain_contrastive import train

from rarefy.core.contracts import Context
from rarefy.core.settings import compiler_present
from rarefy.studies import get_study
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.sweep.grid import grid_of

STEPS = size(200, 1)
"""Of 1,600 in the study: with fewer, the store's fixed half second would count."""
RUNS = size(256, 2)
KIND = "one run at a time"


def asked_for(runs: int, steps: int) -> AlignmentExperiment:
    return get_study("contrast-alignment").at(
        "paper",
        seeds=runs,
        eps_min=(0.3,),
        sigma=(0.03,),
        bias_scale=(1.0,),
        steps=steps,
        reads=(steps,),
        figure_read=steps,
    )


def library(runs: int, compiled: bool, steps: int = STEPS) -> tuple[float, float]:
    """Seconds per run-step; not compiled: as where there is no compiler."""
    os.environ["RAREFY_COMPILE"] = str(int(compiled))
    found = timed_study(asked_for(runs, steps), compiled).per(runs * steps)
    del os.environ["RAREFY_COMPILE"]
    return found


def plain(threads: int) -> tuple[float, float]:
    return timed(partial(train, STEPS, seed=0, eps_min=0.3, sigma=0.03), threads).per(STEPS)


def parts(compiled: bool) -> dict[str, Callable[[], tuple[float, float]]]:
    """Seconds per run-step of each part, one thread, a batch of runs as the runner takes them."""
    runs, repeats = size((32, 10), (2, 1))
    cells = grid_of(asked_for(runs, 1)).cells(np.arange(runs))
    trial = asked_for(runs, 1).setup(cells, Context(compiled=compiled))
    pairs = trial.data.content(trial.draws, trial.experiment.batch, 0)
    batch = trial.data.seen(trial.draws, pairs, 0)
    tokens, weights = batch.tokens.flatten(1, 3), trial.weights
    back = torch.randn(runs, weights.shape[1], tokens.shape[1] // 2)

    def products() -> None:
        torch.bmm(weights, tokens.transpose(1, 2))
        torch.bmm(back, tokens[:, : back.shape[2]])

    @torch.no_grad()
    def seconds(action: Callable[[], object]) -> tuple[float, float]:
        os.environ["RAREFY_COMPILE"] = str(int(compiled))
        action()
        found = timed(lambda: [action() for _ in range(repeats)], 1).per(runs * repeats)
        del os.environ["RAREFY_COMPILE"]
        return found

    gradients = partial(trial.problem.gradients, trial.parameters, batch)
    found: dict[str, Callable[[], object]] = {
        "noise": lambda: trial.data.seen(trial.draws, pairs, 0).tokens,
        "all draws and tokens": lambda: trial.batch(0).tokens,
        "products with the weights": products,
        "loss and gradient, products and all" + ", with the noise" * compiled: gradients,
    }
    words = "compiled" if compiled else "eager"
    return {f"{name}, {words}": partial(seconds, action) for name, action in found.items()}


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    compilers = [False, True] if compiler_present() else [False]
    ways = {name: partial(plain, threads) for name, threads in plain_ways(KIND)}
    for compiled in compilers:
        library(size(64, 2), compiled, steps=size(3, 1))  # compiled once
        name = f"library, {'compiled' if compiled else 'eager'}"
        ways[name] = partial(library, RUNS, compiled)
    seconds = in_turn(ways, arguments.rounds)
    median = wall_and_core(seconds)
    ratios = compared(median, lambda name: KIND)
    pieces = {name: way for compiled in compilers for name, way in parts(compiled).items()}
    core = wall_and_core(in_turn(pieces, arguments.rounds))["core"]
    rival = min(median["core"][name] for name, _ in plain_ways(KIND))
    for name, took in core.items():
        print(f"{name:50} {took * 1e3:.3f} ms of a core, plain loop {rival / took:.1f} times that")
    scaling = {}
    for runs in size((64, 128, 256, 512), (2,)):
        scaling[runs] = library(runs, compilers[-1])
        print(f"{runs:5d} runs: {scaling[runs][0] * 1e3:.3f} ms per run-step")
    record = {
        "what": "contrast-alignment at paper sizes (d1=500, d=9, m=24, batch 64, 2 tokens)",
        "rounds": arguments.rounds,
        "order": ("wall", "core"),
        "seconds_per_run_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios,
        "core_seconds_per_run_step_of_parts": core,
        "seconds_per_run_step_by_runs": scaling,
    }
    keep(arguments, "contrast-cpu", record)


if __name__ == "__main__":
    main()
