"""Many cells, images, rows and workers: what the machinery costs beside the bare computation.

    python benchmarks/bench_load.py [--rounds 5] [--only cells gallery]

- cells: a study whose cells cost next to nothing, through runner and store, beside the same batches
  in a plain loop in the same process; files in the store; also in batches as large as on a GPU.
- writing: what the parent does with a batch of a size, by which it limits the number of workers.
- parent: the same with sending it to a worker of a local cluster and fetching what it gave.
- gallery: from the scores of 60,000 images of 28 x 28 to table and page (MNIST where it is there).
- command: the whole of ``rarefy influence mnist``, from files to page, once.
- influence: scores of 10^6 x 64 rows from a .npy file to the table, with few and many classes;
  without neighbours and label check, whose work is bounded by another rule (docs/influence.md).
- workers: strong and weak scaling over 1 and 2 of them, threads and processes of a local cluster.

Each is measured in a process of its own, several times; kept are all seconds, of the clock and of
all threads together (a benchmark machine is rarely alone), and the most memory: own is anonymous
resident memory above that before.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from harness import Memory, Timed, asked, keep, size, timed

from rarefy.core.contracts import Cells, Context, Cost, Output, Study
from rarefy.core.errors import RarefyError
from rarefy.report.gallery import write_gallery
from rarefy.sweep.choices import BATCH_CUDA
from rarefy.sweep.grid import grid_of
from rarefy.sweep.runner import execute
from rarefy.sweep.store import Store
from rarefy.tools.influence.mapping import SampleMap
from rarefy.tools.influence.scoring import ScoreSettings, score_samples
from rarefy.tools.influence.writing import write_table
from rarefy.tools.samples.arrays import from_arrays, from_npy
from rarefy.tools.samples.opening import open_samples

COUNTS = size((5_000, 10_000, 20_000), (50,))
BATCHES = size((32, 256, 1024), (32,))
IMAGES = size(60_000, 60)
ROWS, CLASSES = size((1_000_000, (10, 1_000, 20_000)), (2_000, (10,)))
WORKERS, WAYS = (1, 2), size(("threads", "cluster"), ("threads",))
PARENT_CELLS = (400, 2_800)
WORKED_CELLS, PRODUCTS = size((25, 200), (25, 1))
"""Of a study whose cells cost something, per worker where scaling is weak: matrix products."""


@dataclass(frozen=True, kw_only=True)
class Bare(Study):
    """Cells that cost next to nothing, or ``products`` of matrices each."""

    name: ClassVar[str] = "bare"
    title: ClassVar[str] = "The machinery alone"
    papers: ClassVar[tuple[str, ...]] = ()
    shows: ClassVar[str] = "what a cell costs besides its computation"
    claims: ClassVar[tuple[str, ...]] = ()
    paper_says: ClassVar[str] = ""
    axes: ClassVar[tuple[str, ...]] = ("slope", "offset")
    scales: ClassVar[dict[str, dict[str, Any]]] = {"tiny": {}, "quick": {}, "paper": {}}

    slope: tuple[float, ...] = tuple(range(5))
    offset: tuple[float, ...] = tuple(range(5, 10))
    products: int = 0

    def outputs(self) -> tuple[Output, ...]:
        return Output("end", (), "the last place"), Output("path", ("step",), "all places")

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"step": np.arange(10)}

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=1000, steps_per_cell=1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        slope, offset = (cells.values[name][:, None] for name in self.axes)
        for _ in range(self.products * len(cells)):
            np.full((300, 300), 0.1) @ np.full((300, 300), 0.1)
        path = slope * np.arange(10) + offset
        return {"end": path[:, -1], "path": path}

    def verdicts(self, results: Any, scale: str) -> list[Any]:
        return []

    def picture(self, results: Any) -> list[Any]:
        return []


def bare(cells: int, products: int = 0) -> Bare:
    return Bare(seeds=cells // 25, products=products)


def repeated(action: Callable[[], Timed], rounds: int) -> dict[str, Any]:
    """Of each round; memory of the first, which has nothing to reuse."""
    with Memory() as memory:
        found = [action()]
    found += [action() for _ in range(rounds - 1)]
    return {
        "wall": [each.wall for each in found],
        "core": [each.core for each in found],
        "own_memory_bytes": memory.grown,
        "process_memory_bytes": memory.most,
    }


def run_bare(study: Bare, seen: dict[str, int] | None = None, **options: Any) -> Timed:
    """Through runner and store; what lies there goes to ``seen``."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        found = timed(partial(execute, study, "paper", "cpu", out=store, compiled=False, **options))
        if seen is not None:
            files = [path for path in store.rglob("*") if path.is_file()]
            seen |= {"files": len(files), "bytes": sum(path.stat().st_size for path in files)}
    return found._replace(result=None)


def plain_loop(study: Bare, batch: int) -> None:
    grid, context = grid_of(study), Context(device=torch.device("cpu"), dtype=torch.float32)
    for first in range(0, len(grid), batch):
        study.simulate(grid.cells(np.arange(first, min(first + batch, len(grid)))), context)


# ------------------------------------------------------------------------------ what is measured


def cells(count: int, rounds: int) -> dict[str, Any]:
    study, seen = bare(count), dict[str, int]()
    run_bare(bare(25))  # what is imported late
    found = repeated(partial(run_bare, study, seen), rounds)
    plain = repeated(lambda: timed(partial(plain_loop, study, BATCHES[0])), rounds)
    large, few = BATCH_CUDA, dict[str, int]()
    in_large = repeated(partial(run_bare, study, few, batch=large), rounds)
    in_large |= {"batch": large, "files": few["files"]}
    return {"cells": count, "study": found, "plain": plain, **seen, "large_batches": in_large}


def writing(batch: int, rounds: int) -> dict[str, Any]:
    """Seconds of one batch of each round's ten."""
    study, times = bare(batch * 10 // 25 * 25 + 25), 10
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "store", study, "paper", "float32")
        store.begin(batch)
        outputs = {"end": np.ones(batch), "path": np.ones((batch, 10))}
        outputs["nonfinite_step"] = -outputs["end"]

        def write() -> None:
            for turn in range(times):
                store.write(np.arange(turn * batch, (turn + 1) * batch), outputs, 1.0)

        found = [timed(write) for _ in range(rounds)]
        store.close()
    wall, core = zip(*(each.per(times) for each in found), strict=True)
    return {"batch": batch, "wall": wall, "core": core}


def parent(rounds: int) -> dict[str, Any]:
    """What a batch of 32 costs the parent and scheduler of a cluster, sending, fetching and
    writing: many batches less few of them, per batch more."""
    with cluster_of(1) as client:
        run_bare(bare(25), cluster=client)
        few, many = (
            [run_bare(bare(count), cluster=client) for _ in range(rounds)] for count in PARENT_CELLS
        )
    batches = (PARENT_CELLS[1] - PARENT_CELLS[0]) / BATCHES[0]
    wall, core = (
        [(getattr(b, clock) - getattr(a, clock)) / batches for a, b in zip(few, many, strict=True)]
        for clock in ("wall", "core")
    )
    return {"batch": BATCHES[0], "wall": wall, "core": core}


def gallery(images: int, rounds: int) -> dict[str, Any]:
    try:
        samples, source = open_samples("mnist"), "MNIST"
        if len(samples) != images:
            raise RarefyError("another number is asked for")
    except RarefyError:
        random, source = np.random.default_rng(0), "made up: uniform pixels"
        pixels = random.integers(0, 256, (images, 28, 28), dtype=np.uint8)
        samples = from_arrays(pixels, np.arange(images) % 10)
    scored = score_samples(samples, ScoreSettings(check_labels=False))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"

        def write() -> None:
            write_table(scored.table, page.with_name("scores.parquet"))
            write_gallery(
                page,
                scored.table,
                title="load",
                classes=scored.table.attrs["classes"],
                thumbnail=samples.images,
                positions=SampleMap(samples, scored.device),
                neighbours=scored.typical_neighbours,
                facts=scored.facts(),
                columns=scored.columns,
            )

        found = repeated(lambda: timed(write), rounds)
        return {"images": images, "source": source, "bytes": page.stat().st_size, **found}


def command() -> dict[str, Any]:
    """Processor time of all threads, and the most memory, of a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "rarefy", "influence", "mnist", "--out", f"{folder}/out"]
        began = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True)
        wall, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    core = used.ru_utime + used.ru_stime
    return {"wall": [wall], "core": [core], "process_memory_bytes": used.ru_maxrss * 1024}


def influence(rows: int, classes: int, rounds: int) -> dict[str, Any]:
    random = np.random.default_rng(classes)
    labels = np.concatenate([np.arange(classes), random.integers(0, classes, rows - classes)])
    with tempfile.TemporaryDirectory() as folder:
        path, width = Path(folder) / "rows.npy", 64
        np.save(path, random.standard_normal((rows, width), dtype=np.float32))

        def score() -> None:
            settings = ScoreSettings(neighbours=0, check_labels=False)
            table = score_samples(from_npy(path, labels), settings).table
            write_table(table, path.with_name("scores.parquet"))

        found = repeated(lambda: timed(score), rounds)
    return {"rows": rows, "width": width, "classes": classes, **found}


def workers(way: str, count: int, rounds: int) -> dict[str, Any]:
    """Strong: the same cells by each number of workers; weak: so many per worker."""
    torch.set_num_threads(count)
    record: dict[str, Any] = {"way": way, "workers": count}
    with cluster_of(count) if way == "cluster" else contextlib.nullcontext() as client:
        run_bare(bare(25), batch=1, cluster=client)
        for kind, many in (("strong", WORKED_CELLS), ("weak", WORKED_CELLS * count)):
            run = partial(run_bare, bare(many, PRODUCTS), batch=1, cluster=client)
            record[kind] = {"cells": many, **repeated(run, rounds)}
    return record


@contextlib.contextmanager
def cluster_of(count: int) -> Iterator[Any]:
    """Processes here, once for all rounds: to start them takes seconds."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


# ---------------------------------------------------------------------------------- the whole of it


def planned(rounds: int) -> dict[str, list[tuple[Callable[..., Any], tuple[Any, ...]]]]:
    return {
        "cells": [(cells, (count, rounds)) for count in COUNTS],
        "writing": [(writing, (batch, rounds)) for batch in BATCHES],
        "parent": size([(parent, (rounds,))], []),
        "gallery": [(gallery, (IMAGES, rounds))],
        "command": size([(command, ())], []),
        "influence": [(influence, (ROWS, classes, rounds)) for classes in CLASSES],
        "workers": [
            (workers, (way, count, rounds)) for way in WAYS for count in WORKERS
        ],
    }  # fmt: skip


def alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """In a process of its own, where memory starts anew; with how busy the machine was."""
    busy = os.getloadavg()[0]
    # (a daemon, as those of a pool are, could start no cluster)
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, function.__name__, arguments))
    process.start()
    theirs.close()
    try:
        found = mine.recv()
    except EOFError:
        raise SystemExit(f"{function.__name__}{arguments} did not end well") from None
    process.join()
    return {**found, "load_average_before": busy}


def _answer(pipe: Any, name: str, arguments: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    # (under the name by which workers of a cluster find the study too)
    pipe.send(getattr(importlib.import_module("bench_load"), name)(*arguments))


def line(row: dict[str, Any]) -> str:
    kinds = {name: value for name, value in row.items() if isinstance(value, dict)} or {"": row}
    told = [f"{name} {value}" for name, value in row.items() if isinstance(value, int | str)]
    for name, kind in kinds.items():
        wall, core = (statistics.median(kind[clock]) for clock in ("wall", "core"))
        own = kind.get("own_memory_bytes", 0) / 1e6
        told.append(f"{name} wall {wall:.4g} s, core {core:.4g} s, own {own:.0f} MB")
    return ", ".join(told)


def main() -> None:
    arguments = asked(__doc__, rounds=size(5, 1), only=list(planned(1)))
    for name, parts in planned(arguments.rounds).items():
        if name not in arguments.only:
            continue
        found = []
        for function, given in parts:
            found.append(alone(function, given) if not arguments.tiny else function(*given))
            print(f"{name}: {line(found[-1])}", flush=True)
        what = "seconds of the clock (wall) and of all threads (core) of each round"
        keep(arguments, f"load-{name}", {"what": what, "results": found})


if __name__ == "__main__":
    main()
