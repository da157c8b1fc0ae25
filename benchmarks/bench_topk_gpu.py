"""``topk-phase`` and the benign labs on one GPU: exactness, precision, speed, limits, scaling.

    python benchmarks/bench_topk_gpu.py [--out benchmarks/results]

1. The selection kernel against a stable sort, with ties, zeros and denormal numbers.
2. 400 cells trained in full in float32 and in TF32: do they end alike?
3. Milliseconds a step of the published grid (19,900 cells, pruned every step), what share of the
   card's memory and arithmetic limits (both measured here) that is, and the plain loop beside it.
4. Time against the number of cells and of seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from gpu_timing import milliseconds
from plain_topk import train_benign, train_topk

from rarefy.core.contracts import Cells, Context
from rarefy.core.precision import matrix_products
from rarefy.core.provenance import provenance
from rarefy.core.rng import key
from rarefy.pruning import cuda_selection
from rarefy.pruning.masks import keep_largest
from rarefy.studies.topk.phase.study import TopKPhase
from rarefy.train.topk_pruning import TopKPruning

DEVICE = torch.device("cuda")
LEARNT = 2.0


def exact_selection() -> dict[str, bool]:
    """Rows with ties, zeros and denormal numbers: the same as a stable sort gives?"""
    generator = torch.Generator(DEVICE).manual_seed(0)
    found = {}
    for rows, width in ((4000, 200), (500, 37), (300, 1000), (100, 3000), (50, 1), (64, 64)):
        scores = torch.randn(rows, width, generator=generator, device=DEVICE)
        absent = torch.rand(rows, width, generator=generator, device=DEVICE) < 0.3
        scores = torch.where(absent, 0.0, scores)
        scores[: rows // 4] = (scores[: rows // 4] * 2).round() / 2
        scores[-rows // 8 :] *= 1e-42
        keep = torch.randint(0, width + 1, (rows,), generator=generator, device=DEVICE)
        same = True
        for some in (scores, scores.abs()):
            mask = cuda_selection.keep_largest(some, keep).cpu()
            same &= torch.equal(mask, keep_largest(some.cpu().double(), keep.cpu()))
        values = cuda_selection.project_largest(scores, keep).cpu()
        same &= torch.equal(values, torch.where(mask, scores.cpu(), 0.0))
        found[f"{rows} rows of {width}"] = bool(same)
    return found


def cells_of(study: TopKPhase, count: int, seeds: int = 1) -> Cells:
    """``count`` cells spread over the published grid."""
    sigma, keep = np.meshgrid(study.sigma, study.keep, indexing="ij")
    place = np.resize(np.arange(sigma.size), count // seeds)
    if count < sigma.size:
        place = np.linspace(0, sigma.size - 1, count // seeds).astype(int)
    place = np.tile(place, seeds)
    seed = np.repeat(np.arange(seeds), count // seeds)
    values = {"sigma": sigma.ravel()[place], "keep": keep.ravel()[place], "seed": seed}
    return Cells(values, np.array([key("benchmark", int(s)) for s in seed]))


def compare_precisions(cells: int = 400) -> dict[str, object]:
    """The same cells in full length, in both precisions; also float32 in two halves, which differs
    in rounding alone and shows how much chance there is in an outcome."""
    context = Context(device=DEVICE, compiled=True)
    found: dict[str, object] = {}
    for reading in ("revive", "fixed"):
        losses = {}
        for name in ("float32", "tf32", "float32, other batches"):
            study = TopKPhase.at("paper", reading=(reading,), precision=name.split(",")[0])
            batch = cells_of(study, cells)
            batch = Cells({**batch.values, "reading": np.full(cells, reading)}, batch.keys)
            start = time.perf_counter()
            parts = [batch]
            if "other" in name:
                parts = [batch.take(np.arange(i, cells, 3)) for i in range(3)]
            loss = np.concatenate([study.simulate(p, context)["test_loss"][:, -1] for p in parts])
            if "other" in name:
                order = np.concatenate([np.arange(i, cells, 3) for i in range(3)])
                loss = loss[np.argsort(order)]
            losses[name] = loss
            print(reading, name, f"{time.perf_counter() - start:.1f} s", flush=True)
        sure = losses["float32"]
        found[reading] = {
            name: {
                "same outcome": int(((loss < LEARNT) == (sure < LEARNT)).sum()),
                "of": cells,
                "differing cells' float32 losses": sure[
                    (loss < LEARNT) != (sure < LEARNT)
                ].tolist(),
                "largest difference of test loss": float(np.abs(loss - sure).max()),
                "median difference": float(np.median(np.abs(loss - sure))),
            }
            for name, loss in losses.items()
            if name != "float32"
        }
    return found


def step_time(count: int, reading: str, precision: str, steps: int = 20, seeds: int = 1) -> float:
    """Milliseconds a step of ``count`` cells; seeds one after the other, as the study does."""
    study, context = TopKPhase.at("paper"), Context(device=DEVICE, compiled=True)
    cells = cells_of(study, count, seeds)
    total = 0.0
    for seed in range(seeds):
        part = cells.take(np.flatnonzero(cells.values["seed"] == seed))
        sigma, keep = part.column("sigma", context), part.column("keep", context).long()
        experiment = study.setup(part, context, sigma=sigma, mu=torch.ones_like(sigma))

        def train() -> object:
            pruning = TopKPruning(keep, reading, (10, 20, 200))  # noqa: B023
            last = {"loss": lambda state: state.loss}
            return experiment.train(context, study.lr, steps, last, [steps], pruning)  # noqa: B023

        with matrix_products(precision, DEVICE):
            total += milliseconds(train, 3) / steps
    return total


def limits() -> dict[str, float]:
    """What the card can do: memory by a copy, arithmetic by a large product."""
    big = torch.empty(2**29, device=DEVICE)
    copied = torch.empty_like(big)
    bandwidth = 2 * big.numel() * 4 / (milliseconds(lambda: copied.copy_(big)) / 1e3)
    square = torch.randn(8192, 8192, device=DEVICE)
    found = {"memory, bytes a second": bandwidth}
    for precision in ("float32", "tf32"):
        with matrix_products(precision, DEVICE):
            taken = milliseconds(lambda: square @ square) / 1e3
        found[f"{precision}, flop a second"] = 2 * 8192**3 / taken
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument(
        "--keep-precision",
        action="store_true",
        help="keep the comparison of precisions of the committed file (minutes)",
    )
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("no CUDA device here: nothing measured")
        return
    record: dict[str, object] = {"cells": 19900, "steps": 5000}
    arguments.out.mkdir(parents=True, exist_ok=True)

    def note(name: str, value: object) -> None:
        record[name] = value
        print(name, json.dumps(value, indent=1), flush=True)
        text = json.dumps(record | {"provenance": provenance(DEVICE, "float32", 0.0)}, indent=1)
        (arguments.out / "topk-gpu.json").write_text(text + "\n")

    note("selection equals a stable sort", exact_selection())
    card = limits()
    note("limits", card)
    rows, d, patches = 19900 * 200, 200, 212
    # two products; passes over memory that no fusion of ours removes
    flop, passes = 4.0 * rows * d * patches, 4.0 * rows * (6 * d + 5 * patches)
    published = {}
    for precision in ("tf32", "float32"):
        for reading in ("revive", "fixed", "dense"):
            taken = step_time(19900, reading, precision)
            published[f"{reading}, {precision}"] = {
                "ms a step": taken,
                "seconds for 5,000 steps": 5 * taken,
                "share of arithmetic limit": flop
                / (taken / 1e3)
                / card[f"{precision}, flop a second"],
                "share of memory limit": passes / (taken / 1e3) / card["memory, bytes a second"],
            }
    note("published grid", published)
    train_topk(5, 0, 0.5, 60, "cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    train_topk(200, 0, 0.5, 60, "cuda")
    torch.cuda.synchronize()
    plain = (time.perf_counter() - start) / 200
    best = published["revive, tf32"]["ms a step"] / 1e3 / 19900
    note("plain loop on this GPU", {"ms a cell-step": 1e3 * plain, "times slower": plain / best})
    train_benign(5, 0, 1.0, 10.0, "cuda")
    torch.cuda.synchronize()
    start = time.perf_counter()
    train_benign(100, 0, 1.0, 10.0, "cuda")
    torch.cuda.synchronize()
    note("plain benign loop on this GPU, ms a cell-step", 10 * (time.perf_counter() - start))
    scaling = {
        count: step_time(count, "revive", "tf32") / count * 1e3
        for count in (128, 512, 2048, 8192, 19900, 39800, 79600)
    }
    note("microseconds a cell-step by cells", scaling)
    by_seeds = {
        s: step_time(2048 * s, "revive", "tf32", seeds=s) / (2048 * s) * 1e3 for s in (1, 2, 4)
    }
    note("microseconds a cell-step by seeds of 2,048 cells", by_seeds)
    if arguments.keep_precision:
        committed = Path(__file__).parent / "results" / "topk-gpu.json"
        earlier = json.loads(committed.read_text())
        when = earlier["provenance"]
        note("precision", earlier["precision"])
        note("precision, compared by", earlier.get("precision, compared by", when))
    else:
        note("precision", compare_precisions())


if __name__ == "__main__":
    main()
