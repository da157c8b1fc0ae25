"""Influence scores of whole data sets on a CPU: seconds and own memory, beside brute force and kNN.

Timed is ``score_classes``: the score with its terms, distance, Mahalanobis distance and norm of
every sample, from features in memory (or memory-mapped) to arrays. Each data set has a process of
its own, in which it is scored several times; the figure is the best of them, because a benchmark
machine is rarely alone, and all are kept. Own memory is the largest anonymous resident memory
(RssAnon of /proc/self/status, every 5 ms) of the first scoring above that before it: pages of a
memory map are not in it, what the libraries take for themselves is.

Beside it, in the same process:

- brute force: the covariance of one class without one sample, from scratch, for a few samples;
  times the number of samples.
- kNN: ten nearest neighbours of a few hundred samples among all, by scikit-learn's brute force and
  by our exact search; scaled to all samples.

    python benchmarks/bench_influence_cpu.py [--rounds 4]
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Memory, asked, keep, size

from rarefy.core.errors import RarefyError
from rarefy.data.images.catalog import load_images
from rarefy.measure.influence.forecast import calibrate, forecast_scores
from rarefy.measure.influence.neighbours import make_space, nearest
from rarefy.measure.influence.passes import score_classes

TARGETS = {"mnist": 5.0, "cifar10": 30.0, "million-10": 15.0, "million-100": 15.0}
"""Seconds on two cores."""
OWN_MEMORY = 10**9
LEFT_OUT, QUERIES, NEIGHBOURS = 3, size(512, 32), 10
ROWS, WIDTH, AT_ONCE = size((1_000_000, 512, 50_000), (2_000, 32, 1_000))
"""Of the made-up set."""


def data(name: str, folder: Path) -> tuple[np.ndarray, np.ndarray, int, float, str]:
    """Features, labels, classes, scale, and where they come from."""
    if name.startswith("million"):
        classes = int(name.partition("-")[2])
        labels = np.random.default_rng(classes).integers(0, classes, ROWS)
        features = np.load(_million(folder), mmap_mode="r")
        return features, labels, classes, 1.0, "made up: normal, spread falling from 3 to 0.1"
    shape = {"mnist": (60_000, 784), "cifar10": (50_000, 3072)}[name]
    try:
        train = load_images(name).train
        features = train.images.flatten(1).numpy()
        return features, train.labels.numpy(), 10, 1 / 255, "its training images"
    except RarefyError:
        random = np.random.default_rng(0)
        features = random.integers(0, 256, shape, dtype=np.uint8)
        return features, random.integers(0, 10, shape[0]), 10, 1 / 255, "made up: uniform pixels"


def _million(folder: Path) -> Path:
    path = folder / "million.npy"
    if not path.exists():
        rows = np.lib.format.open_memmap(path, "w+", np.float32, (ROWS, WIDTH))
        random = np.random.default_rng(0)
        spread = np.geomspace(3, 0.1, WIDTH, dtype=np.float32)
        for first in range(0, ROWS, AT_ONCE):
            drawn = random.standard_normal((AT_ONCE, WIDTH), dtype=np.float32)
            rows[first : first + AT_ONCE] = drawn * spread
        rows.flush()
    return path


def measured(name: str, folder: Path, rounds: int) -> dict[str, Any]:
    """All of one data set, in this process."""
    busy = os.getloadavg()[0]  # what else the machine did just before
    features, labels, classes, scale, source = data(name, folder)
    counts = np.bincount(labels, minlength=classes)
    forecast = forecast_scores(
        counts, features.shape[1], itemsize=features.itemsize, rates=calibrate()
    )
    seconds, processor, own = [], [], 0
    for turn in range(rounds):
        with Memory() as memory:
            used, start = time.process_time(), time.perf_counter()
            scores = score_classes(features, labels, classes, scale=scale)
            seconds.append(time.perf_counter() - start)
            processor.append(time.process_time() - used)
        own = memory.grown if turn == 0 else own
    brute = _brute_force(features, labels)
    sklearn, ours = _neighbours(features)
    best = min(seconds)
    return {
        "source": source,
        "samples": len(features),
        "width": features.shape[1],
        "type": str(features.dtype),
        "classes": classes,
        "routes": sorted(set(scores.routes)),
        "mahalanobis_directions": scores.directions,
        "load_average_before": busy,
        "seconds": seconds,
        "processor_seconds": processor,
        "best_seconds": best,
        "target_seconds": TARGETS[name],
        "forecast_seconds": forecast.seconds,
        "own_memory_bytes": own,
        "planned_memory_bytes": scores.memory,
        "brute_force_seconds": brute,
        "brute_force_over_score": brute / best,
        "sklearn_knn_seconds": sklearn,
        "sklearn_knn_over_score": sklearn / best,
        "own_knn_seconds": ours,
        "own_knn_over_score": ours / best,
    }


def _brute_force(features: np.ndarray, labels: np.ndarray) -> float:
    """One sample left out of its class takes as long as any other of that class."""
    mine = np.flatnonzero(labels == 0)
    rows = features[mine].astype(np.float64)

    def left_out(sample: int) -> None:
        rest = np.delete(rows, sample, axis=0)
        rest -= rest.mean(axis=0)
        float(((rest.T @ rest / (len(rest) - 1)) ** 2).sum())

    return _mean_seconds(left_out, LEFT_OUT) * len(features)


def _neighbours(features: np.ndarray) -> tuple[float, float]:
    """scikit-learn's and ours, for all samples."""
    from sklearn.neighbors import NearestNeighbors

    chosen = np.linspace(0, len(features) - 1, QUERIES).astype(np.int64)
    rows = np.asarray(features, dtype=np.float32)
    found = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, algorithm="brute").fit(rows)
    start = time.perf_counter()
    found.kneighbors(rows[chosen])
    sklearn = (time.perf_counter() - start) / QUERIES * len(features)
    del found, rows
    space = make_space(features)
    start = time.perf_counter()
    nearest(features, NEIGHBOURS, queries=chosen[:1], space=space, memory=1 << 33)
    once = time.perf_counter() - start  # references are prepared once, not once a query
    start = time.perf_counter()
    nearest(features, NEIGHBOURS, queries=chosen, space=space, memory=1 << 33)
    more = max(time.perf_counter() - start - once, 0.0)
    return sklearn, once + more / QUERIES * len(features)


def _mean_seconds(work: Callable[[int], None], times: int) -> float:
    work(0)
    start = time.perf_counter()
    for number in range(times):
        work(number)
    return (time.perf_counter() - start) / times


def show(results: dict[str, dict[str, Any]]) -> None:
    print(f"{'':12} {'best s':>7} {'target':>7} {'memory':>8} {'brute force':>16} {'kNN':>14}")
    for name, row in results.items():
        brute, ratio = row["brute_force_seconds"] / 3600, row["brute_force_over_score"]
        knn, times = row["sklearn_knn_seconds"], row["sklearn_knn_over_score"]
        print(
            f"{name:12} {row['best_seconds']:7.2f} {row['target_seconds']:7.0f} "
            f"{row['own_memory_bytes'] / 1e6:5.0f} MB {brute:7.1f} h x{ratio:<6.0f} "
            f"{knn:6.0f} s x{times:<4.0f}"
        )


def main() -> None:
    arguments = asked(__doc__, rounds=size(4, 1))
    results = {}
    alone = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for name in size(list(TARGETS), ["million-10"]):
            with alone.Pool(1) as pool:  # memory starts anew
                results[name] = pool.apply(measured, (name, Path(folder), arguments.rounds))
    show(results)
    record = {
        "what": "seconds to score all samples (score, terms, distance, Mahalanobis, norm); best of "
        "the rounds; own memory without features; brute force and kNN extrapolated",
        "own_memory_target_bytes": OWN_MEMORY,
        "extrapolated_from": {"left_out": LEFT_OUT, "queries": QUERIES, "neighbours": NEIGHBOURS},
        "results": results,
    }
    keep(arguments, "influence-cpu", record, "float64")  # the Mahalanobis distance is float32


if __name__ == "__main__":
    main()
