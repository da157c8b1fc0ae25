"""``topk-phase`` and the benign labs on one GPU: exactness, precision, speed, limits, scaling.

    python benchmarks/bench_topk_gpu.py [--keep-precision]

1. The selection kernel against a stable sort, with ties, zeros and denormal numbers.
2. 400 cells trained in full in float32 and in TF32: do they end alike?
3. Milliseconds per step of the published grid (19,900 cells, pruned every step), what share of the
   card's memory and arithmetic limits (both measured here) that is, and the plain loop beside it.
4. Time against the number of cells and of seeds.

``--keep-precision`` keeps the second of the committed file: it takes minutes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from harness import DEVICE, RESULTS, asked, keep, milliseconds, size, timed
from plain_topk import train_benign, train_topk

from rarefy.core.contracts import Cells, Context
from rarefy.core.precision import matrix_products
from rarefy.core.rng import key
from rarefy.pruning import cuda_selection
from rarefy.pruning.masks import keep_largest
from rarefy.studies import get_study
from rarefy.train.topk_pruning import TopKPruning

CELLS = size(19900, 4)
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


def cells_of(count: int, seeds: int = 1) -> Cells:
    """``count`` cells spread over the published grid."""
    sigma, keep = np.meshgrid(np.arange(1, 101) / 100, np.arange(2, 201), indexing="ij")
    place = np.resize(np.arange(sigma.size), count // seeds)
    if count < sigma.size:
        place = np.linspace(0, sigma.size - 1, count // seeds).astype(int)
    place = np.tile(place, seeds)
    seed = np.repeat(np.arange(seeds), count // seeds)
    values = {"sigma": sigma.ravel()[place], "keep": keep.ravel()[place], "seed": seed}
    return Cells(values, np.array([key("benchmark", int(s)) for s in seed]))


def compare_precisions(cells: int = size(400, 4)) -> dict[str, object]:
    """The same cells in full length, in both precisions; also float32 in two halves, which differs
    in rounding alone and shows how much chance there is in an outcome."""
    context = Context(device=DEVICE, compiled=True)
    found: dict[str, object] = {}
    for reading in ("revive", "fixed"):
        losses = {}
        for name in ("float32", "tf32", "float32, other batches"):
            chosen = size({}, {"steps": 1})
            precision = name.split(",")[0]
            study = get_study("topk-phase").at(
                "paper", reading=(reading,), precision=precision, **chosen
            )
            batch = cells_of(cells)
            batch = Cells({**batch.values, "reading": np.full(cells, reading)}, batch.keys)
            thirds = [np.arange(i, cells, 3) for i in range(3)]
            order = thirds if "other" in name else [np.arange(cells)]
            taken = timed(
                lambda: [study.simulate(batch.take(part), context) for part in order]  # noqa: B023
            )
            loss = np.concatenate([each["test_loss"] for each in taken.result])
            losses[name] = loss[np.argsort(np.concatenate(order))]
            print(reading, name, f"{taken.wall:.1f} s", flush=True)
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


def step_time(count: int, reading: str, precision: str, seeds: int = 1) -> float:
    """Milliseconds per step of ``count`` cells; seeds one after the other, as the study does."""
    steps, context = size(20, 1), Context(device=DEVICE, compiled=True)
    study = get_study("topk-phase").at("paper", steps=steps)
    cells = cells_of(count, seeds)
    total = 0.0
    for seed in range(seeds):
        part = cells.take(np.flatnonzero(cells.values["seed"] == seed))
        keep, trial = part.column("keep", context).long(), study.setup(part, context)

        def train() -> object:
            pruning = TopKPruning(keep, reading, (10, 20, 200))  # noqa: B023
            last = {"loss": lambda state: state.loss}
            return study.train(trial, context, last, [steps], pruning)  # noqa: B023

        with matrix_products(precision, DEVICE):
            total += milliseconds(train, 3) / steps
    return total


def limits() -> dict[str, float]:
    """What the card can do: memory by a copy, arithmetic by a large product."""
    big = torch.empty(size(2**29, 2**10), device=DEVICE)
    copied = torch.empty_like(big)
    bandwidth = 2 * big.numel() * 4 / (milliseconds(lambda: copied.copy_(big)) / 1e3)
    width = size(8192, 64)
    square = torch.randn(width, width, device=DEVICE)
    found = {"memory, bytes per second": bandwidth}
    for precision in ("float32", "tf32"):
        with matrix_products(precision, DEVICE):
            taken = milliseconds(lambda: square @ square) / 1e3
        found[f"{precision}, flop per second"] = 2 * width**3 / taken
    return found


def main() -> None:
    arguments = asked(__doc__, gpu=True, keep_precision=False)
    record: dict[str, object] = {"cells": CELLS, "steps": 5000}

    def note(name: str, value: object) -> None:
        record[name] = value
        print(name, json.dumps(value, indent=1), flush=True)
        keep(arguments, "topk-gpu", record)

    if DEVICE.type == "cuda":
        note("selection equals a stable sort", exact_selection())
    card = limits()
    note("limits", card)
    rows, d, patches = CELLS * 200, 200, 212
    # two products; passes over memory that no fusion of ours removes
    flop, passes = 4.0 * rows * d * patches, 4.0 * rows * (6 * d + 5 * patches)
    published = {}
    for precision in ("tf32", "float32"):
        for reading in ("revive", "fixed", "dense"):
            taken = step_time(CELLS, reading, precision)
            arithmetic, memory = (
                card[f"{name} per second"] for name in (f"{precision}, flop", "memory, bytes")
            )
            published[f"{reading}, {precision}"] = {
                "ms per step": taken,
                "seconds for 5,000 steps": 5 * taken,
                "share of arithmetic limit": flop / (taken / 1e3) / arithmetic,
                "share of memory limit": passes / (taken / 1e3) / memory,
            }
    note("published grid", published)
    train = partial(train_topk, seed=0, sigma=0.5, keep=60, device=DEVICE.type)
    plain = milliseconds_per_step(train, size(200, 1))
    best = published["revive, tf32"]["ms per step"] / CELLS
    note("plain loop on this GPU", {"ms per cell-step": plain, "times slower": plain / best})
    train = partial(train_benign, seed=0, strength=1.0, special=10.0, device=DEVICE.type)
    plain = milliseconds_per_step(train, size(100, 1))
    note("plain benign loop on this GPU, ms per cell-step", plain)
    scaling = {
        count: step_time(count, "revive", "tf32") / count * 1e3
        for count in size((128, 512, 2048, 8192, 19900, 39800, 79600), (4,))
    }
    note("microseconds per cell-step by cells", scaling)
    by_seeds = {}
    for seeds in size((1, 2, 4), (2,)):
        count = size(2048, 2) * seeds
        by_seeds[seeds] = step_time(count, "revive", "tf32", seeds=seeds) / count * 1e3
    note("microseconds per cell-step by seeds of 2,048 cells", by_seeds)
    if arguments.keep_precision:
        earlier = json.loads((RESULTS / "topk-gpu.json").read_text("utf-8"))
        when = earlier["provenance"]
        note("precision", earlier["precision"])
        note("precision, compared by", earlier.get("precision, compared by", when))
    else:
        note("precision", compare_precisions())


def milliseconds_per_step(train: Callable[[int], object], steps: int) -> float:
    train(size(5, 1))
    return 1e3 * timed(partial(train, steps)).wall / steps


if __name__ == "__main__":
    main()
