"""How the covariances of real classes overlap, and whether noise alone tells the classes apart."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.rng import Draws
from rarefy.core.threads import limited
from rarefy.measure.influence.class_statistics import covariance_overlaps, gather_statistics
from rarefy.measure.influence.mahalanobis import leading_directions
from rarefy.measure.influence.rows import Rows
from rarefy.tools.influence.drawn_parts import drawn_order, stratified
from rarefy.tools.samples.samples import Samples

AS_THEY_ARE, UNIT_LENGTH, SHUFFLED = "as they are", "of length 1", "labels shuffled"
RESIDUALS = (AS_THEY_ARE, UNIT_LENGTH, SHUFFLED)
SHRINKAGE = 0.1
"""Weight of the pooled covariance in each class's own (Friedman 1989): keeps the inverses of small
classes sane. Far from 1, at which all classes would be the same."""
BASIS_ROWS = 4096
MEMORY = 4 << 30


def halves(draws: Draws, labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples are in the first of two random halves, class by class."""
    return stratified(draws, "half", labels, 0.5)


def overlaps_of(
    samples: Samples, part: NDArray[np.bool_], draws: Draws, device: torch.device
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """tr(Sigma_i Sigma_j) from a part of the samples (003 Fig. 6), twice, each (class, class).

    The first with covariances of all of the part, as the figure has it: there an estimate meets
    itself on the diagonal, and E tr(S S) exceeds tr(Sigma Sigma) by about (tr Sigma)^2 / n. The
    second with one covariance from each half of the part: without that bias, on the diagonal and
    off it. (Two halves of the whole set would not do. Between them S_1 + S_2 is the same whatever
    the draw, tr(S_1 S_2) hardly varies, and its spread would tell nothing of what it is worth.)
    """
    count = len(samples.classes)
    features, labels = samples.features[part], samples.labels[part]
    second = ~stratified(draws, "half of the half", labels, 0.5)
    whole = gather_statistics(features, labels, count, device=device, memory=MEMORY)
    same = covariance_overlaps(whole, scale=samples.scale)
    del whole  # as large as all the rest
    parted = gather_statistics(
        features, labels + count * second, 2 * count, device=device, memory=MEMORY
    )
    between = covariance_overlaps(parted, scale=samples.scale)[:count, count:]
    return same, (between + between.T) / 2


def own_and_others(overlaps: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """log own / mean of others, and log own / largest of others: (seed, class) each.

    Noise correlation ratios of 003 Theorem 1 up to the class sizes, which the halves keep as they
    are.
    """
    count = overlaps.shape[-1]
    own = np.diagonal(overlaps, axis1=1, axis2=2)
    others = overlaps[:, ~np.eye(count, dtype=bool)].reshape(-1, count, count - 1)
    return np.log(own / others.mean(axis=2)), np.log(own / others.max(axis=2))


# ----------------------------------------------------------------------------- noise without means


def accuracies_of_residuals(
    samples: Samples,
    first: NDArray[np.bool_],
    components: int,
    draws: Draws,
    device: torch.device,
) -> dict[str, float]:
    """Share of held-out samples, averaged over classes, whose class is told from what is left of
    them without their class's mean.

    Means, basis and covariances are those of the first half, the samples asked are the other half.
    Residuals of the first half have mean 0 in every class and the rule knows no other mean, so it
    can only use covariances. ``of length 1``: the size of a residual is taken away too, its
    direction is left. ``labels shuffled``: classes of no meaning, what chance gives.
    """
    count, labels = len(samples.classes), samples.labels
    rows = Rows(samples.features, labels, count)
    basis = leading_directions(
        Rows(samples.features[first], labels[first], count), components, BASIS_ROWS, device=device
    )
    seen = np.empty((len(samples), basis.shape[1]))
    for start in range(0, len(samples), BASIS_ROWS):
        places = np.arange(start, min(start + BASIS_ROWS, len(samples)))
        seen[places] = (rows.take(places, device) @ basis).cpu().numpy() * samples.scale
    means = np.stack([seen[first & (labels == label)].mean(axis=0) for label in range(count)])
    residuals = seen - means[labels]
    lengths = np.linalg.norm(residuals, axis=1, keepdims=True)
    directions = residuals / np.where(lengths > 0, lengths, 1.0)
    shuffled = labels.copy()
    for part, name in ((first, "shuffled"), (~first, "shuffled too")):
        places = np.flatnonzero(part)
        shuffled[places] = labels[places[drawn_order(draws, name, len(places))]]
    found = {}
    for name, values, told in (
        (AS_THEY_ARE, residuals, labels),
        (UNIT_LENGTH, directions, labels),
        (SHUFFLED, residuals, shuffled),
    ):
        guessed = guessed_by_covariance(values[first], told[first], values[~first], count)
        right = guessed == told[~first]
        found[name] = float(
            np.mean([right[told[~first] == label].mean() for label in range(count)])
        )
    return found


def guessed_by_covariance(
    known: NDArray[np.float64],
    labels: NDArray[np.int64],
    asked: NDArray[np.float64],
    classes: int,
    shrinkage: float = SHRINKAGE,
) -> NDArray[np.int64]:
    """The class under whose normal law with mean 0 and covariance Sigma_k a sample is likeliest:
    quadratic discriminant analysis that knows no means, all classes equally frequent."""
    pooled = known.T @ known / len(known)
    logs = np.empty((len(asked), classes))
    for label in range(classes):
        own = known[labels == label]
        covariance = (1 - shrinkage) * (own.T @ own) / len(own) + shrinkage * pooled
        factor = np.linalg.cholesky(covariance)
        whitened = np.linalg.solve(factor, asked.T)
        logs[:, label] = -(whitened**2).sum(axis=0) / 2 - np.log(np.diagonal(factor)).sum()
    return logs.argmax(axis=1).astype(np.int64)


# ----------------------------------------------------------------------------------------- pictures


def spread_out(
    samples: Samples, rows: NDArray[np.int64], components: int, steps: int
) -> NDArray[np.float64]:
    """t-SNE of some samples, (row, 2) (003 Fig. 1): from their leading principal components."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    pixels = samples.features[rows].astype(np.float64) * samples.scale
    # with several threads sums are added up in any order, and the map magnifies the last digit
    with limited(1):
        kept = PCA(min(components, *pixels.shape), svd_solver="full").fit_transform(pixels)
        made = TSNE(init="pca", max_iter=steps, random_state=0, n_jobs=1).fit_transform(kept)
    return np.asarray(made, dtype=np.float64)
