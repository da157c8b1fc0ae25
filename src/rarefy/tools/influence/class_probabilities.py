"""Cross-validated class probabilities: what classifiers that have not seen a sample make of it.

Three plain classifiers, none tuned to the data, and a mixture of them whose weights are those under
which the labels are likeliest out of fold: logistic regression, the same on random features of a
Gaussian kernel, and extremely randomised trees. Classes count as often as they occur: with balanced
weights true samples of large classes are drowned by the few of a rare one (tried, see
``docs/influence.md``).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from rarefy.core.errors import OutOfTime
from rarefy.core.threads import limited
from rarefy.measure.influence.neighbours import make_space, reference_rows
from rarefy.measure.influence.rows import Rows
from rarefy.tools.influence.edges import edges_of
from rarefy.tools.samples.samples import Samples

FOLDS = 5
WIDTH = 128
"""Features from which their leading principal components are taken instead."""
TRAINED = 20_000
"""Samples that a classifier is fitted to at most; of rare classes all, or at least 50."""
LOGISTIC, KERNEL, TREES = "logistic regression", "kernel logistic regression", "trees"
CLASSIFIERS = (LOGISTIC, KERNEL, TREES)
STEPS, KERNEL_FEATURES, GROWN = 100, 300, 100
EVEN = 100.0
"""Samples' worth of trust that all classifiers have alike before the labels are asked."""
ROUNDS, FEW = 2, 5000
"""How often folds are drawn for so few samples; more are asked once."""
SMALL = 2000
"""Samples up to which starting threads takes longer than what they do."""
LEAST = 1e-6
PIECE = 1 << 25

Numbers = NDArray[np.float32]


def classifier(name: str, fitted: int, count: int, width: int) -> Any:
    """One of ``CLASSIFIERS``, to be fitted to so many of so many samples."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if name == TREES:
        threads = -1 if count > SMALL else None
        return ExtraTreesClassifier(GROWN, min_samples_leaf=2, random_state=0, n_jobs=threads)
    if name == LOGISTIC:
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS))
    kept = max(1, min(KERNEL_FEATURES, int(0.7 * count), fitted))
    # distances between standardised rows are about sqrt(2 width)
    features = Nystroem(gamma=0.5 / width, n_components=kept, random_state=0)
    return make_pipeline(StandardScaler(), features, LogisticRegression(C=10.0, max_iter=STEPS))


def numbers_of(samples: Samples, device: torch.device) -> Numbers:
    """What classifiers see: features, or their leading principal components where these are many,
    and of images histograms of edges beside."""
    rows = Rows(samples.features, samples.labels, len(samples.classes))
    space = make_space(samples.features, WIDTH, device=device)
    found = np.empty((len(rows), space.width()), dtype=np.float32)
    step = max(1, PIECE // rows.width)
    for first in range(0, len(rows), step):
        places = np.arange(first, min(first + step, len(rows)))
        found[places] = space.coordinates(rows.take(places, device)).cpu().numpy()
    if samples.image is None:
        return found
    edges = edges_of(samples.features, samples.image, samples.channels_last)
    return np.concatenate([found, edges], axis=1)


def class_probabilities(
    numbers: Numbers,
    labels: NDArray[np.int64],
    classes: int,
    *,
    content: NDArray[np.int64] | None = None,
    folds: int = FOLDS,
    progress: Callable[[float], None] | None = None,
    deadline: Callable[[], bool] | None = None,
) -> NDArray[np.float64]:
    """(n, classes): of each sample by classifiers fitted to the other folds, over which every class
    is spread. A class of which the other folds have no sample has probability 0: one of a single
    sample, asked for that sample. ``content``: the same for copies, (n,)."""
    content = np.arange(len(labels)) if content is None else content
    rounds = _rounds(len(labels))
    found = np.zeros((len(CLASSIFIERS), len(labels), classes))
    each = [(turn, fold) for turn in range(rounds) for fold in range(folds)]
    for turn, left_out in each:
        asked = _folds(labels, content, folds, turn) == left_out
        told, known = np.flatnonzero(asked), np.flatnonzero(~asked)
        if len(known) > TRAINED:
            known = known[reference_rows(labels[known], classes, TRAINED)]
        for place, name in enumerate(CLASSIFIERS):
            if deadline is not None and deadline():
                raise OutOfTime("stopped while checking labels")
            if len(told) and len(known):
                model = classifier(name, len(known), len(labels), numbers.shape[1])
                found[place][told] += _probabilities(
                    model, numbers[known], labels[known], numbers[told], classes
                )
            if progress is not None:
                progress(1 / (len(each) * len(CLASSIFIERS)))
    found /= rounds
    own = found[:, np.arange(len(labels)), labels]
    mixed: NDArray[np.float64] = np.tensordot(mixture(own), found, axes=1)
    return mixed


def in_one_fold(
    labels: NDArray[np.int64], content: NDArray[np.int64], folds: int
) -> NDArray[np.bool_]:
    """Which classes the other folds have no sample of, in some round: one sample, or copies."""
    places = [_folds(labels, content, folds, turn) for turn in range(_rounds(len(labels)))]
    spread = pd.DataFrame(np.transpose(places)).groupby(labels).nunique()
    return (spread < 2).any(axis=1).to_numpy()


def _rounds(count: int) -> int:
    return ROUNDS if count <= FEW else 1


def mixture(own: NDArray[np.float64], even: float = EVEN) -> NDArray[np.float64]:
    """Weights under which the given labels are likeliest, by expectation maximisation, then drawn
    towards even ones as if so many more samples had spoken for these. own: (classifier, sample),
    the probabilities of the given labels."""
    own = np.maximum(own, LEAST)
    weights = np.full(len(own), 1 / len(own))
    for _ in range(100):
        parts = weights[:, None] * own
        weights = (parts / parts.sum(axis=0)).mean(axis=1)
    count = own.shape[1]
    return (count * weights + even / len(own)) / (count + even)


def _folds(
    labels: NDArray[np.int64], content: NDArray[np.int64], folds: int, turn: int
) -> NDArray[np.int64]:
    """Which fold each sample is in, every class spread over as many as it has samples. Copies stand
    in one fold, or a classifier would have seen what it is asked for."""
    _, first, same = np.unique(content, return_index=True, return_inverse=True)
    first.sort()
    order = first[np.random.default_rng(turn).permutation(len(first))]
    found = np.empty(len(labels), dtype=np.int64)
    found[order] = pd.Series(labels[order]).groupby(labels[order]).cumcount() % folds
    leads = np.full(same.max() + 1, -1)
    leads[same[first]] = first
    return found[leads[same]]


def _probabilities(
    model: Any, known: Numbers, labels: NDArray[np.int64], told: Numbers, classes: int
) -> NDArray[np.float64]:
    from sklearn.exceptions import ConvergenceWarning

    found = np.zeros((len(told), classes))
    present = np.unique(labels)
    if len(present) == 1:  # classifiers want two
        found[:, present] = 1.0
        return found
    # threads for matrices this small wait for each other: 30 times slower on a busy machine
    with warnings.catch_warnings(), limited(1):
        # its regularised optimum is near long before the last digit settles
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model.fit(known, labels)
        found[:, model.classes_] = model.predict_proba(told)
    return found
