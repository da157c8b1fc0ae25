"""Clusters of samples by their features: k-means, and k-means with a least size.

scikit-learn's Lloyd loop, on one thread: 50,000 x 512 into 1,000 clusters in 12 processor seconds
(``benchmarks/bench_clusters_cpu.py``, one run on two sets of features). ``KMeans`` as it comes
takes 420 to 540 for 0.3 to 0.6 % less inertia. Two things save the time: starting points are
chosen among ten samples per cluster instead of all, and wide features are reduced to 128
components (a third of the time; over three seeds 0.2 to 0.5 % more inertia on made-up features,
0.7 % less on projected pixels). MiniBatchKMeans is as fast at 0.9 to 6 % more inertia.

faiss-cpu on the same 128 components takes 5 seconds where ours takes 8, because it starts at
random: 0.6 to 1 % more inertia on made-up features, 0.3 % less on pixels. That is no reason for
66 MB more to install, where scikit-learn is a dependency already and a minute would do.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.threads import exactly

WIDTH = 128
"""Features at most: by components."""
ROUNDS = 25
"""Of Lloyd's loop at most; to converge takes up to 70, and lowers the inertia by
less than 0.1 %."""
STARTERS, FEW = 10, 2000
"""Starting points are chosen among so many samples per cluster, and never among fewer than so
many."""
REBALANCES = 5
"""Rounds of centring and filling up."""

Rows = NDArray[np.float32]
Labels = NDArray[np.int64]


def comparable(features: NDArray[Any]) -> Rows:
    """Features of which squares neither overflow nor vanish, around 0; at most ``WIDTH`` of them,
    the principal components. Equal rows stay equal."""
    from sklearn.decomposition import PCA

    rows = features.reshape(len(features), -1)
    largest = max(abs(float(rows.max())), abs(float(rows.min())))
    rows = np.asarray(rows / (largest or 1.0), dtype=np.float32)
    first, same = _distinct(rows)
    if min(len(first), rows.shape[1]) <= WIDTH:
        return rows - rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    with exactly(1):
        reduction = PCA(WIDTH, svd_solver="randomized", iterated_power=2, random_state=0)
        return reduction.fit(rows).transform(rows[first])[same]


def k_means(rows: Rows, clusters: int, seed: int) -> Labels:
    """Labels 0..k-1, none empty: as many as asked for, or as there are distinct rows.

    On one thread, because another number of them adds up in another order, and other clusters come
    out.
    """
    from sklearn.cluster import KMeans, kmeans_plusplus
    from sklearn.exceptions import ConvergenceWarning

    first, same = _distinct(rows)
    if len(first) <= clusters:
        return same
    random = np.random.RandomState(seed)  # (scikit-learn takes no other)
    among = random.permutation(first)[: max(STARTERS * clusters, FEW)]
    with exactly(1), warnings.catch_warnings():
        # fewer clusters than asked for, where rows differ by less than rounding
        warnings.simplefilter("ignore", ConvergenceWarning)
        starts, _ = kmeans_plusplus(rows[among], clusters, random_state=random)
        found = KMeans(clusters, init=starts, n_init=1, max_iter=ROUNDS).fit(rows).labels_
    return np.unique(found, return_inverse=True)[1]  # without gaps


def rebalanced(rows: Rows, clusters: int, seed: int) -> Labels:
    """k-means with none smaller than half of the mean size.

    Samples are moved into a cluster that is too small, those first that lose least by it (by
    squared distance to the centre), never out of one that would be too small then; centres
    follow; a few times.
    """
    labels = k_means(rows, clusters, seed)
    sizes = np.bincount(labels)
    least = -(-len(rows) // (2 * len(sizes)))
    if sizes.min() >= least:
        return labels
    with exactly(1):
        for _ in range(REBALANCES):
            before, sizes = labels, np.bincount(labels)
            ordered = rows[np.argsort(labels, kind="stable")]
            sums = np.add.reduceat(ordered, np.cumsum(sizes) - sizes, axis=0)
            centres = sums / sizes[:, None].astype(np.float32)
            # squared distances, less the row's own square
            labels = filled_up((centres**2).sum(axis=1) - 2 * rows @ centres.T, least)
            if np.array_equal(labels, before):
                break
    return labels


def filled_up(away: Rows, least: int) -> Labels:
    """The nearest centre of each row, but for the rows that fill up small clusters.

    One pass fills all: while one is too small another is too large, since there are enough rows
    for all; none becomes too large on the way, so what was passed by would be passed by again.
    """
    labels = away.argmin(axis=1)
    sizes = np.bincount(labels, minlength=away.shape[1])
    small = np.flatnonzero(sizes < least)
    missing = int((least - sizes[small]).sum())
    loss = away[:, small] - away.min(axis=1, keepdims=True)
    for place in np.argsort(loss, axis=None, kind="stable"):
        if not missing:
            break
        row, to = place // len(small), small[place % len(small)]
        if sizes[to] < least < sizes[labels[row]]:
            sizes[labels[row]] -= 1
            sizes[to] += 1
            labels[row], missing = to, missing - 1
    return labels


def _distinct(rows: Rows) -> tuple[Labels, Labels]:
    """Where each distinct row is first, and which of them each row is."""
    whole = (rows + np.float32(0)).view(f"V{rows.shape[1] * rows.itemsize}").ravel()
    # (by its bytes -0 would be another number than 0)
    _, first, same = np.unique(whole, return_index=True, return_inverse=True)
    return first, same
