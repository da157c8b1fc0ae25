"""How hard each sample is for classifiers that have never seen it, and how lonely in its class."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.rng import Draws
from rarefy.measure.influence.neighbours import nearest
from rarefy.tools.influence.drawn_parts import drawn_order
from rarefy.tools.samples.samples import Samples

LOGISTIC, NEIGHBOURS = "logistic regression", "nearest neighbours"
CLASSIFIERS = (LOGISTIC, NEIGHBOURS)
ASKED = 10
"""Neighbours that vote."""
STEPS = 300
LEAST = 1e-12


@dataclass(frozen=True)
class Hardness:
    """Of every sample, by a classifier trained without it."""

    wrong: NDArray[np.bool_]
    loss: NDArray[np.float64]
    """-log probability of its label (logistic regression); share of neighbours of other labels."""


def folds_of(draws: Draws, labels: NDArray[np.int64], folds: int) -> NDArray[np.int64]:
    """Which fold each sample is in, every class spread over all of them."""
    order = drawn_order(draws, "folds", len(labels))
    found = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        mine = order[labels[order] == label]
        found[mine] = np.arange(len(mine)) % folds
    return found


def out_of_fold(samples: Samples, fold: NDArray[np.int64], components: int) -> dict[str, Hardness]:
    """Both classifiers see principal components, found without the samples that are asked."""
    labels = samples.labels
    chances = {name: np.empty((len(samples), len(samples.classes))) for name in CLASSIFIERS}
    pixels = samples.features.astype(np.float32) * np.float32(samples.scale)
    for left_out in np.unique(fold):
        asked = fold == left_out
        known, told = _components(pixels[~asked], pixels[asked], components)
        for name, fit in FITS.items():
            model = fit(known, labels[~asked])
            chances[name][np.ix_(asked, model.classes_)] = model.predict_proba(told)
            missing = np.setdiff1d(np.arange(len(samples.classes)), model.classes_)
            chances[name][np.ix_(asked, missing)] = 0.0
    rows = np.arange(len(samples))
    found = {}
    for name, chance in chances.items():
        own = chance[rows, labels]
        loss = 1 - own if name == NEIGHBOURS else -np.log(np.maximum(own, LEAST))
        found[name] = Hardness(chance.argmax(axis=1) != labels, loss)
    return found


def isolation(samples: Samples, device: torch.device) -> NDArray[np.float64]:
    """Mean distance to the nearest others of its class, in units of the class's mean of that."""
    found = np.empty(len(samples))
    for label in np.unique(samples.labels):
        mine = np.flatnonzero(samples.labels == label)
        asked = min(ASKED, len(mine) - 1)
        apart = nearest(samples.features[mine], asked, device=device).distances.mean(axis=1)
        found[mine] = apart / apart.mean()
    return found


def _components(
    known: NDArray[np.float32], asked: NDArray[np.float32], components: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    from sklearn.decomposition import PCA

    count = min(components, *known.shape)
    wide = known.shape[1] > 1024
    solver = "randomized" if wide else "covariance_eigh"
    found = PCA(count, svd_solver=solver, random_state=0).fit(known)
    return found.transform(known), found.transform(asked)


def _logistic(known: NDArray[np.float32], labels: NDArray[np.int64]) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=STEPS))
    with warnings.catch_warnings():
        # its regularised optimum is near long before the last digit settles
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(known, labels)


def _neighbours(known: NDArray[np.float32], labels: NDArray[np.int64]) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(ASKED, algorithm="brute").fit(known, labels)


FITS: dict[str, Callable[[NDArray[np.float32], NDArray[np.int64]], Any]] = {
    LOGISTIC: _logistic,
    NEIGHBOURS: _neighbours,
}
