"""Clusters of 50,000 x 512 features on a CPU: ours beside scikit-learn's and faiss-cpu's, by time
and inertia.

Two sets of features: a made-up tree of 20 x 5 x 9 normal clusters (spread of the features falling
from 3 to 0.1, that of samples 1.2 of it, of the levels 1, 0.7 and 0.5) and, where CIFAR-100 is,
its pixels by a random projection. Three tasks: 1,000 clusters of the whole, 43 in each of 20
classes, and the latter rebalanced. Plain is scikit-learn's KMeans as it comes, with one start and
all threads; ours has one thread. All of a set run one after the other, once (``--rounds``);
processor seconds are fair on a machine that is busy. Inertia is that of the whole features.

    python benchmarks/bench_clusters_cpu.py [--rounds 1]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import sklearn
from harness import Timed, asked, in_turn, keep, size, timed
from sklearn.cluster import KMeans, MiniBatchKMeans

from rarefy.core.errors import RarefyError
from rarefy.data.hierarchy.clusters import ROUNDS
from rarefy.data.hierarchy.made import make_level
from rarefy.data.images.catalog import load_images

try:
    import faiss  # type: ignore[import-not-found]  # no dependency: timed where it is
except ImportError:
    faiss = None

SAMPLES, WIDTH, CLUSTERS, WITHIN = size((50_000, 512, 1000, 43), (600, 130, 12, 3))
TARGET_SECONDS = 60.0
"""For the clusters of the whole, on two cores."""


def made_up() -> tuple[np.ndarray, np.ndarray]:
    """Features, and which of 20 classes."""
    random = np.random.default_rng(0)
    spread = np.geomspace(3, 0.1, WIDTH, dtype=np.float32)

    def around(centres: np.ndarray, times: float) -> np.ndarray:
        return centres + random.standard_normal(centres.shape, dtype=np.float32) * spread * times

    classes = around(np.zeros((20, WIDTH), dtype=np.float32), 1.0)
    leaves = around(around(classes.repeat(5, axis=0), 0.7).repeat(9, axis=0), 0.5)
    leaf = random.integers(0, len(leaves), SAMPLES)
    return around(leaves[leaf], 1.2), leaf // 45


def pixels() -> tuple[np.ndarray, np.ndarray]:
    train = load_images("cifar100").train
    rows = train.images.flatten(1).numpy()[:SAMPLES].astype(np.float32) / 255
    projection = np.random.default_rng(0).standard_normal((rows.shape[1], WIDTH), dtype=np.float32)
    return (rows - rows.mean(axis=0)) @ projection / 55, train.levels["coarse"][0].numpy()


def plain(rows: np.ndarray, clusters: int, **options: Any) -> np.ndarray:
    return KMeans(clusters, n_init=1, random_state=0, **options).fit(rows).labels_


def plain_within(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    labels = np.empty(len(rows), dtype=np.int64)
    for number in range(20):
        mine = np.flatnonzero(target == number)
        labels[mine] = plain(rows[mine], WITHIN) + WITHIN * number
    return labels


def mini_batches(rows: np.ndarray) -> np.ndarray:
    loop = MiniBatchKMeans(CLUSTERS, n_init=1, init="random", batch_size=4096, random_state=0)
    return loop.fit(rows).labels_


def by_faiss(rows: np.ndarray) -> np.ndarray:
    loop = faiss.Kmeans(WIDTH, CLUSTERS, niter=ROUNDS, seed=0, max_points_per_centroid=len(rows))
    loop.train(rows)
    return loop.index.search(rows, 1)[1][:, 0]


def inertia(rows: np.ndarray, labels: np.ndarray) -> float:
    ordered = rows[np.argsort(labels, kind="stable")].astype(np.float64)
    sizes = np.unique(labels, return_counts=True)[1]
    sums = np.add.reduceat(ordered, np.cumsum(sizes) - sizes, axis=0)
    return float((ordered**2).sum() - ((sums**2).sum(axis=1) / sizes).sum())


def measured(rows: np.ndarray, target: np.ndarray, rounds: int) -> dict[str, dict[str, Any]]:
    """Per task and way: seconds, how many times as fast as plain, and the inertia over plain's."""

    def ours(kind: str, number: int) -> Callable[[], np.ndarray]:
        return lambda: make_level(f"{kind}:{number}", target, rows, 0)[0]

    whole = {
        "plain": partial(plain, rows, CLUSTERS),
        "random starts": partial(plain, rows, CLUSTERS, init="random", max_iter=ROUNDS),
        "Elkan, random starts": partial(
            plain, rows, CLUSTERS, init="random", max_iter=ROUNDS, algorithm="elkan"
        ),
        "mini batches": partial(mini_batches, rows),
        "ours": ours("kmeans", CLUSTERS),
    }
    if faiss is not None:
        whole["faiss"] = partial(by_faiss, rows)
    within = {
        "plain": partial(plain_within, rows, target),
        "ours": ours("kmeans-within", WITHIN),
        "ours, rebalanced": ours("rebalanced", WITHIN),
    }
    found = {}
    for task, ways in {"whole": whole, "within": within}.items():
        clocked = {name: partial(timed, way) for name, way in ways.items()}
        took = in_turn(clocked, rounds)
        found[task] = summary(rows, took)
    return found


def summary(rows: np.ndarray, took: dict[str, list[Timed]]) -> dict[str, Any]:
    best = {
        name: (min(t.wall for t in all_), min(t.core for t in all_)) for name, all_ in took.items()
    }
    spread = {name: inertia(rows, all_[0].result) for name, all_ in took.items()}
    sizes = {name: np.unique(all_[0].result, return_counts=True)[1] for name, all_ in took.items()}
    return {
        name: {
            "seconds": best[name][0],
            "processor_seconds": best[name][1],
            "times_as_fast_as_plain": best["plain"][0] / best[name][0],
            "times_as_fast_by_processor": best["plain"][1] / best[name][1],
            "inertia_over_plain": spread[name] / spread["plain"],
            "clusters": len(sizes[name]),
            "smallest": int(sizes[name].min()),
        }
        for name in took
    }


def main() -> None:
    arguments = asked(__doc__, rounds=1)
    warnings.filterwarnings("ignore", category=sklearn.exceptions.ConvergenceWarning)
    data = {"made-up": made_up}
    try:
        load_images("cifar100")
        data |= size({"cifar100 pixels": pixels}, {})
    except RarefyError:
        pass
    results = {name: measured(*make(), arguments.rounds) for name, make in data.items()}
    print(f"{'':44} {'seconds':>8} {'cores':>7} {'x plain':>8} {'inertia':>8} {'smallest':>8}")
    for name, tasks in results.items():
        for task, ways in tasks.items():
            for way, one in ways.items():
                print(
                    f"{name + ', ' + task + ': ' + way:44} {one['seconds']:8.1f} "
                    f"{one['processor_seconds']:7.1f} {one['times_as_fast_as_plain']:8.1f} "
                    f"{one['inertia_over_plain']:8.4f} {one['smallest']:8}"
                )
    record = {
        "what": "seconds for all samples, best of the rounds; plain: scikit-learn's KMeans as it "
        "comes, one start, all threads; ours: one thread",
        "samples": SAMPLES,
        "width": WIDTH,
        "clusters": {"whole": CLUSTERS, "within": [20, WITHIN]},
        "rounds": arguments.rounds,
        "target_seconds": TARGET_SECONDS,
        "scikit-learn": sklearn.__version__,
        "faiss": getattr(faiss, "__version__", None),
        "results": results,
    }
    keep(arguments, "clusters-cpu", record)


if __name__ == "__main__":
    main()
