"""What all benchmarks share: the command line, clocks, the table beside the plain loop, the record.

``--tiny`` makes a benchmark do about one update of whatever it times, without a GPU on a CPU, and
keep nothing unless ``--out`` is given. The tests run every benchmark so.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch

from rarefy.core.contracts import Study
from rarefy.core.provenance import provenance
from rarefy.sweep.runner import execute

T = TypeVar("T")
RESULTS = Path(__file__).parent / "results"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""Of the benchmarks on a GPU, which ``asked`` ends where there is none (but a tiny one)."""


# ----------------------------------------------------------------------------------- what is asked


def size(full: T, tiny: T) -> T:
    return tiny if "--tiny" in sys.argv else full


def asked(doc: str, gpu: bool = False, **options: Any) -> argparse.Namespace:
    """``options`` with their defaults, which also say of what type they are; besides ``out``, the
    ``device`` and when it ``began``."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true", help="about one update: does it still run?")
    parser.add_argument("--out", type=Path, default=size(RESULTS, None), help="folder")
    for name, default in options.items():
        flag = f"--{name.replace('_', '-')}"
        if isinstance(default, bool):
            parser.add_argument(flag, action="store_true")
        elif isinstance(default, list):
            kind = type(default[0]) if default else str
            parser.add_argument(flag, nargs="+", type=kind, default=default)
        else:
            parser.add_argument(flag, type=type(default), default=default)
    found = parser.parse_args()
    if gpu and DEVICE.type == "cpu" and not found.tiny:
        print("no CUDA device here: nothing measured")
        raise SystemExit
    found.device, found.began = DEVICE if gpu else torch.device("cpu"), time.perf_counter()
    found.load = os.getloadavg()[0]
    return found


def keep(
    arguments: argparse.Namespace, name: str, record: Mapping[str, Any], dtype: str = "float32"
) -> None:
    """The record, with where it was made, as a file of this name."""
    if arguments.out is None:
        return
    made = provenance(arguments.device, dtype, time.perf_counter() - arguments.began)
    where = {"threads": torch.get_num_threads(), "provenance": made}
    busy = {"load_average_before": arguments.load}
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"{name}.json"
    path.write_text(json.dumps({**record, **busy, **where}, indent=1) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------ clocks


class Timed(NamedTuple):
    """Seconds of the clock, and of all threads together: fair on a machine that is busy."""

    wall: float
    core: float
    result: Any = None

    def per(self, count: int) -> tuple[float, float]:
        return self.wall / count, self.core / count


def timed(action: Callable[[], object], threads: int | None = None) -> Timed:
    """Until a GPU, if it is in use, has come to its end."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or before)
    wait()
    wall, core = time.perf_counter(), time.process_time()
    result = action()
    wait()
    found = Timed(time.perf_counter() - wall, time.process_time() - core, result)
    torch.set_num_threads(before)
    return found


def wait() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def timed_study(study: Study, compiled: bool, device: str = "cpu", **options: Any) -> Timed:
    """All cells of a study through the runner, store and all."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "store"
        run = partial(execute, study, "paper", device, out=out, compiled=compiled, **options)
        return timed(run)


class Memory:
    """``grown``: how much more anonymous memory there was at most; ``most``: and with that before.
    Looks every 5 ms. What lies free is given back first: filled again, it would not count."""

    def __enter__(self) -> Memory:
        with contextlib.suppress(AttributeError):  # (another C library than glibc)
            ctypes.CDLL(None).malloc_trim(0)
        self._before = self.most = _anonymous()
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look)
        self._watch.start()
        return self

    def _look(self) -> None:
        while not self._done.wait(0.005):
            self.most = max(self.most, _anonymous())

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()
        self.grown = self.most - self._before


def _anonymous() -> int:
    with open("/proc/self/status", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
    return 0


def device_seconds(action: Callable[[], object]) -> float:
    """By the GPU's own events; by the clock on a CPU."""
    if DEVICE.type == "cpu":
        return timed(action).wall
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    action()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def milliseconds(action: Callable[[], object], repeats: int = 10, warm_up: int = 3) -> float:
    """Median device time of ``action`` after some calls that do not count."""
    for _ in range(size(warm_up, 0)):
        action()
    return 1e3 * statistics.median(device_seconds(action) for _ in range(size(repeats, 1)))


def bf16_limit() -> float:
    """Operations per second of the best of several large bf16 products."""
    best = 0.0
    for width in size((4096, 8192), (64,)):
        a, b = (torch.randn(width, width, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        took = milliseconds(partial(torch.matmul, a, b), repeats=20, warm_up=10)
        best = max(best, 2 * width**3 / (took / 1e3))
    return best


def in_turn(
    ways: Mapping[str, Callable[[], T]], rounds: int, warm_up: int = 0
) -> dict[str, list[T]]:
    """What each gives, one after the other, round by round; every round begins with another one,
    so that none is always the first."""
    names = list(ways)
    for _ in range(warm_up):
        for name in names:
            ways[name]()
    found: dict[str, list[T]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn * 5 % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(ways[name]())
    return found


def medians(taken: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in taken.items()}


def wall_and_core(taken: Mapping[str, list[tuple[float, float]]]) -> dict[str, dict[str, float]]:
    """Medians of both clocks."""
    return {
        column: medians({name: [each[place] for each in values] for name, values in taken.items()})
        for place, column in enumerate(("wall", "core"))
    }


# ---------------------------------------------------------------------------- beside the plain loop


def products(cells: int, steps: int, *shapes: tuple[int, int, int]) -> tuple[float, float]:
    """Seconds per cell-step of nothing but the matrix products of a step, (rows of a cell, inner,
    columns) each, in four batches that the cores share as those of the runner: the limit."""
    count = max(1, cells // 4)
    factors = [(torch.randn(count * a, b), torch.randn(b, c)) for a, b, c in shapes]

    def batch(_: int) -> None:
        torch.set_num_threads(1)
        for _ in range(steps):
            for left, right in factors:
                left @ right

    def work() -> None:
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(batch, range(4)))

    return timed(work).per(4 * count * steps)


def plain_ways(kind: str) -> Iterator[tuple[str, int]]:
    """Names and threads of the plain loop's two ways to train a kind: the rival is the faster."""
    yield f"plain, {kind}", torch.get_num_threads()
    yield f"plain, {kind}, one thread", 1


def compared(
    columns: Mapping[str, Mapping[str, float]], kind_of: Callable[[str], str]
) -> dict[str, dict[str, float]]:
    """How many times as fast as the best plain loop of its kind each is, for every column of
    seconds per cell-step; printed with the times."""

    def best_plain(median: Mapping[str, float], name: str) -> float:
        return min(median[way] for way, _ in plain_ways(kind_of(name)))

    ratios = {
        column: {name: best_plain(median, name) / median[name] for name in median}
        for column, median in columns.items()
    }
    titles = "".join(f" {column:>10} {'x best plain':>13}" for column in columns)
    print(f"{'ms per cell-step':40}{titles}")
    for name in next(iter(columns.values())):
        cells = (
            f" {median[name] * 1e3:10.3f} {ratios[column][name]:13.1f}"
            for column, median in columns.items()
        )
        print(f"{name:40}" + "".join(cells))
    return ratios
