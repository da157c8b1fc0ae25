"""All benign studies at scale ``paper`` on one GPU: cells, seconds, and the plain loop beside them.

    python benchmarks/bench_benign_gpu.py [--out benchmarks/results] [--studies NAME ...]

The plain loop (``plain_topk.train_benign``: one network, autograd) is timed for a few steps at the
studies' size; what it would take for all cell-steps is said as an extrapolation. Also: the outcome
of 48 cells in TF32 against float32.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from plain_topk import train_benign

from rarefy.core.contracts import Context
from rarefy.core.provenance import provenance
from rarefy.studies import load_studies
from rarefy.studies.benign.correlation.study import BenignCorrelation
from rarefy.sweep.grid import grid_of
from rarefy.sweep.runner import execute


def grids(names: list[str], limit: float) -> dict[str, dict[str, float]]:
    """Each study through the runner, store and all, nothing compiled."""
    found = {}
    for name, kind in load_studies().items():
        if kind.lab != "benign" or (names and name not in names):
            continue
        study = kind.at("paper")
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            done = execute(
                study,
                "paper",
                "cuda",
                out=Path(folder) / "store",
                compiled=False,
                max_seconds=limit,
            )
            seconds = time.perf_counter() - start
        found[name] = {"cells": done.cells, "done": done.cells_done, "seconds": seconds}
        print(f"{name:20} {done.cells_done:5d} of {done.cells} cells {seconds:7.1f} s", flush=True)
    return found


def precisions(cells: int = 48) -> dict[str, float]:
    """Largest differences between TF32 and float32 over cells of ``benign-correlation``."""
    ends = {}
    for precision in ("float32", "tf32"):
        study = BenignCorrelation.at("paper", precision=precision, law=("gaussian",), seeds=1)
        grid = grid_of(study)
        chosen = np.unique(np.linspace(0, len(grid) - 1, cells).astype(int))
        ends[precision] = study.simulate(grid.cells(chosen), Context(device=torch.device("cuda")))
    names = ("test_error", "stratum_error", "train_loss")
    return {
        "cells": len(chosen),
        **{
            name: float(np.nanmax(np.abs(ends["tf32"][name] - ends["float32"][name])))
            for name in names
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--studies", nargs="*", default=[])
    parser.add_argument("--limit", type=float, default=120.0, help="most seconds a study")
    arguments = parser.parse_args()
    device = torch.device("cuda")
    torch.zeros(1, device=device)  # the card's start is not a study's
    begun = time.perf_counter()
    found = grids(arguments.studies, arguments.limit)
    total = time.perf_counter() - begun
    train_benign(3, 0, 1.0, 10.0, "cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    train_benign(100, 0, 1.0, 10.0, "cuda")
    torch.cuda.synchronize()
    plain = (time.perf_counter() - start) / 100
    record = {
        "what": "every benign study at scale paper through the runner, one after the other",
        "studies": found,
        "cells": sum(entry["cells"] for entry in found.values()),
        "seconds": total,
        "plain loop, seconds a cell-step": plain,
        "tf32 against float32, largest difference": precisions(),
        "provenance": provenance(device, "float32", total),
    }
    print(f"{record['cells']} cells in {total:.1f} s; plain loop {plain * 1e3:.2f} ms a cell-step")
    arguments.out.mkdir(exist_ok=True)
    (arguments.out / "benign-gpu.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
