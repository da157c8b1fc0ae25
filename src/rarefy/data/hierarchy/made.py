"""Made levels: labels for pre-training where nobody wrote any, from features or from nothing.

``kmeans-within:K`` and ``rebalanced:K`` make K clusters inside each target class, so that each
made label lies in one target class; ``kmeans:K`` makes K clusters of the whole set, ``random:K``
K ids that mean nothing, ``random-within:K`` as many inside each target class, ``samples`` one id
per sample. All are of Hong et al. (Table 6 has ids within classes; whether those of Table 1 are
within superclasses it does not say) but ``rebalanced`` (App. A.1.1): they take per superclass the
finest of several clusterings whose smallest cluster is above a threshold (e.g. 1,000 samples), so
that superclasses differ in their number of clusters. Here K stays and samples move: no cluster is
smaller than half of the mean of its class. That compares with ``kmeans-within:K`` at the same
number of labels, and needs no threshold, which a small set would never reach.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.core.rng import key
from rarefy.data.hierarchy.clusters import Labels, Rows, comparable, k_means, rebalanced


def _shuffled(rows: Rows, count: int, seed: int) -> Labels:
    return np.random.default_rng(seed).permutation(np.arange(len(rows)) % count)


MADE = ("kmeans-within", "rebalanced", "kmeans", "random-within", "random", "samples")
MEANINGLESS = ("random-within", "random", "samples")
WITHIN: dict[str, Callable[[Rows, int, int], Labels]] = {
    "kmeans-within": k_means,
    "rebalanced": rebalanced,
    "random-within": _shuffled,
}


def kind_of(spec: str) -> str:
    """One of ``MADE``, or ``"given"``: a level that the set has, or nothing."""
    kind = spec.partition(":")[0]
    return kind if kind in MADE else "given"


def needs_features(spec: str) -> bool:
    return kind_of(spec) in ("kmeans-within", "rebalanced", "kmeans")


def check_spec(spec: str) -> None:
    """Raise a UsageError unless this is a made level."""
    _parts(spec)


def check_counts(spec: str, target: NDArray[np.int64], names: Sequence[str] = ()) -> None:
    """Raise a UsageError where there are more clusters than samples; ``names`` of the target's
    classes, for its words."""
    kind, count = _parts(spec)
    if count > len(target):
        raise _too_many(spec, f"there are {len(target):,}")
    if kind in WITHIN:
        for target_class, size in zip(*np.unique(target, return_counts=True), strict=True):
            if size < count:
                called = repr(names[target_class]) if names else target_class
                raise _too_many(spec, f"target class {called} has {size:,}")


def make_level(
    spec: str, target: NDArray[np.int64], features: NDArray[np.float32] | None, seed: int
) -> tuple[Labels, tuple[str, ...]]:
    """Labels 0..k-1 of the samples, none empty, and their names: ``3/0`` is cluster 0 of target
    class 3. The same for the same arguments, on any number of threads."""
    kind, count = _parts(spec)
    generator = np.random.default_rng([key("made level", kind, count, seed) & (2**63 - 1)])
    samples = len(target)
    if kind == "samples":
        return np.arange(samples), tuple(f"sample {number}" for number in range(samples))
    check_counts(spec, target)
    if kind == "random":
        labels = generator.permutation(np.arange(samples) % count)
        return labels, tuple(f"id {number}" for number in range(count))
    if needs_features(spec):
        rows = comparable(_checked(spec, features, samples))
    else:
        rows = np.zeros((samples, 1), dtype=np.float32)
    if kind == "kmeans":
        labels = k_means(rows, count, _seed(generator))
        return labels, tuple(f"cluster {number}" for number in range(labels.max() + 1))
    labels = np.empty(samples, dtype=np.int64)
    names: list[str] = []
    for target_class in np.unique(target):
        mine = np.flatnonzero(target == target_class)
        found = WITHIN[kind](rows[mine], count, _seed(generator))
        labels[mine] = found + len(names)
        names += [f"{target_class}/{number}" for number in range(found.max() + 1)]
    return labels, tuple(names)


def _parts(spec: str) -> tuple[str, int]:
    """Kind and number (0 for ``samples``)."""
    kind, colon, number = spec.partition(":")
    if kind not in MADE:
        raise unknown("made labels", kind, MADE)
    if kind == "samples":
        if colon:
            raise bad_value("labels", spec, "samples takes no number: it is one id per sample")
        return kind, 0
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise bad_value("labels", spec, f"must be {kind} with a whole number, e.g. {kind}:2")
    if int(number) < 2:
        why = "one per target class is the target" if kind in WITHIN else "one teaches nothing"
        raise bad_value("labels", spec, f"must be at least 2 ({why})")
    return kind, int(number)


def _checked(spec: str, features: NDArray | None, samples: int) -> NDArray:
    if features is None:
        raise bad_value("features", None, f"{spec} needs an embedding: one row per sample")
    check_rows(features)
    if len(features) != samples:
        raise UsageError(f"embedding has {len(features):,} rows, the training set {samples:,}")
    return features


def check_rows(features: NDArray, name: str = "embedding") -> None:
    """Raise a UsageError for what is no table of finite numbers."""
    if features.ndim < 2 or 0 in features.shape[1:] or features.dtype.kind not in "fiub":
        found = f"{features.dtype} {features.shape}"
        raise bad_value("features", found, f"{name} must be numbers, (samples, features)")
    finite = np.isfinite(features).all(axis=tuple(range(1, features.ndim)))
    if not finite.all():
        raise UsageError(f"{name}: row {finite.argmin()} has a value that is not finite")


def _too_many(spec: str, found: str) -> UsageError:
    return bad_value("labels", spec, f"more clusters than samples: {found}")


def _seed(generator: np.random.Generator) -> int:
    return int(generator.integers(2**31))
