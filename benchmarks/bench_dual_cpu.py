"""The dual form of the signal-and-noise labs on two cores: against the plain loop, and against d.

Unpruned training of 002 at n = d = 200 (T = 10, m = 20), per cell-step, through the runner: by
inner products alone (``topk-regimes --form dual``; a Gram matrix per cell), by the Gram matrix that
cells with shared noise have in common (``topk-phase``, dense), by weights (``--form primal``), and
the plain autograd loop. Then the same cells at d from 10^3 to 10^9, and nothing but the product of
a step, the limit. Wall time and core time (of all threads) as in ``bench_topk_cpu.py``.

    python benchmarks/bench_dual_cpu.py [--rounds 5]
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

from rarefy.core.contracts import Study
from rarefy.core.settings import compiler_present
from rarefy.studies import get_study

STEPS = size(600, 1)
"""With 300 the store's fixed half second would be a tenth."""
CELLS = size(64, 8)
KIND = "unpruned"


def regimes(d: int, form: str) -> Study:
    """Cells of ``topk-regimes`` at the sizes of 002's figure, one read, next to no test."""
    return get_study("topk-regimes").at(
        "paper",
        samples=(200,),
        classes=(10,),
        d=(d,),
        snr=tuple(0.01 * 1.2**i for i in range(min(16, CELLS))),
        seeds=max(1, CELLS // 16),
        steps=STEPS,
        reads=(STEPS,),
        test_samples=1,
        form=form,
    )


def shared() -> Study:
    """Unpruned cells of ``topk-phase``: one noise for all."""
    return get_study("topk-phase").at(
        "paper",
        seeds=1,
        reading=("dense",),
        sigma=tuple(round(0.12 * i, 2) for i in range(1, CELLS // 8 + 1)),
        keep=(3, 10, 30, 60, 90, 120, 150, 180),
        steps=STEPS,
        test_samples=1,
    )


def library(study: Study) -> tuple[float, float]:
    """Seconds per cell-step, of the clock and of all threads."""
    return timed_study(study, compiler_present()).per(CELLS * STEPS)


def plain(threads: int) -> tuple[float, float]:
    train = partial(train_topk, STEPS, seed=0, sigma=0.5, keep=60, prune=False)
    return timed(train, threads).per(STEPS)


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1))
    studies = {
        "dual, own noise per cell": regimes(200, "dual"),
        "dual, noise shared": shared(),
        "primal, own noise per cell": regimes(200, "primal"),
        **{f"dual, d = {d:.0e}": regimes(d, "dual") for d in (10**3, 10**6, 10**9)},
    }
    ways = {name: partial(library, study) for name, study in studies.items()}
    in_turn(ways, size(1, 0))  # compiled once
    ways |= {name: partial(plain, threads) for name, threads in plain_ways(KIND)}
    ways["product alone"] = partial(products, CELLS, STEPS, (200, 200, 200))
    seconds = in_turn(ways, arguments.rounds)
    median = wall_and_core(seconds)
    ratios = compared(median, lambda name: KIND)
    grown = median["core"]["dual, d = 1e+06"] / median["core"]["dual, d = 1e+03"]
    print(f"d = 10^6 takes {grown:.2f} times what d = 10^3 takes")
    record = {
        "what": "unpruned training of 002, n = 200, T = 10, m = 20, seconds per cell-step",
        "rounds": arguments.rounds,
        "order": ("wall", "core"),
        "seconds_per_cell_step": seconds,
        "median": median,
        "ratio_to_best_plain": ratios,
        "d = 10^6 over d = 10^3": grown,
    }
    keep(arguments, "dual-cpu", record)


if __name__ == "__main__":
    main()
