"""All benign studies at scale ``paper`` on one GPU: cells, seconds, and the plain loop beside them.

    python benchmarks/bench_benign_gpu.py [--studies NAME ...] [--limit 120]

``--limit``: most seconds per study. The plain loop (``plain_topk.train_benign``: one network,
autograd) is timed for a few steps at the studies' size; what it would take for all cell-steps is
said as an extrapolation. Also: the outcome of 48 cells in TF32 against float32.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from harness import DEVICE, asked, keep, size, timed, timed_study
from plain_topk import train_benign

from rarefy.core.contracts import Context
from rarefy.studies import get_study, listed
from rarefy.sweep.grid import grid_of

SCALE = size("paper", "tiny")
PLAIN_STEPS = size(100, 1)


def grids(names: list[str], limit: float) -> dict[str, dict[str, float]]:
    """Each study through the runner, nothing compiled."""
    found = {}
    for name, entry in listed().items():
        if entry.lab == "benign" and name in (names or [name]):
            study = entry.load().at(SCALE, **size({}, {"seeds": 1}))
            taken = timed_study(study, False, DEVICE.type, max_seconds=limit)
            cells, done = taken.result.cells, taken.result.cells_done
            found[name] = {"cells": cells, "done": done, "seconds": taken.wall}
            print(f"{name:20} {done:5d} of {cells} cells {taken.wall:7.1f} s", flush=True)
    return found


def precisions(cells: int = size(48, 2)) -> dict[str, float]:
    """Largest differences between TF32 and float32 over cells of ``benign-correlation``."""
    ends = {}
    for precision in ("float32", "tf32"):
        kind = get_study("benign-correlation")
        study = kind.at(SCALE, precision=precision, law=("gaussian",), seeds=1)
        grid = grid_of(study)
        chosen = np.unique(np.linspace(0, len(grid) - 1, cells).astype(int))
        ends[precision] = study.simulate(grid.cells(chosen), Context(device=DEVICE))
    names = ("test_error", "train_loss")
    return {
        "cells": len(chosen),
        **{
            name: float(np.nanmax(np.abs(ends["tf32"][name] - ends["float32"][name])))
            for name in names
        },
    }


def main() -> None:
    arguments = asked(
        __doc__, gpu=True, studies=size([], ["benign-correlation"]), limit=size(120.0, 10.0)
    )
    train = partial(train_benign, seed=0, strength=1.0, special=10.0, device=DEVICE.type)
    train(size(3, 1))  # the card's start is not a study's
    found = grids(arguments.studies, arguments.limit)
    total = sum(entry["seconds"] for entry in found.values())
    plain = timed(partial(train, PLAIN_STEPS)).wall / PLAIN_STEPS
    record = {
        "what": "every benign study at scale paper through the runner, one after the other",
        "studies": found,
        "cells": sum(entry["cells"] for entry in found.values()),
        "seconds": total,
        "plain loop, seconds per cell-step": plain,
        "tf32 against float32, largest difference": precisions(),
    }
    print(
        f"{record['cells']} cells in {total:.1f} s; plain loop {plain * 1e3:.2f} ms per cell-step"
    )
    keep(arguments, "benign-gpu", record)


if __name__ == "__main__":
    main()
