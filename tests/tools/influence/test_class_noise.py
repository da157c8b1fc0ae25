"""Parts that a seed draws; overlaps against brute force, residuals against known laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.tools.influence.class_noise import (
    AS_THEY_ARE,
    RESIDUALS,
    SHUFFLED,
    UNIT_LENGTH,
    accuracies_of_residuals,
    guessed_by_covariance,
    halves,
    overlaps_of,
    own_and_others,
    spread_out,
)
from rarefy.tools.influence.drawn_parts import some_of, stratified
from rarefy.tools.samples.arrays import from_arrays

CPU = torch.device("cpu")


def noisy(each: int, width: int, scales: list[np.ndarray], seed: int = 0) -> Any:
    """Classes of normal samples, far apart, with these stds of their features."""
    generator = np.random.default_rng(seed)
    parts = [
        3 * place + scale * generator.normal(size=(each, width))
        for place, scale in enumerate(scales)
    ]
    return from_arrays(np.concatenate(parts), np.repeat(np.arange(len(scales)), each))


# ------------------------------------------------------------------------------------------ drawing


def test_halves_are_halves_of_every_class_and_differ_between_seeds() -> None:
    labels = np.repeat(np.arange(4), [10, 20, 30, 41])
    first, again, other = (halves(Draws([key]), labels) for key in (1, 1, 2))
    assert np.bincount(labels[first]).tolist() == [5, 10, 15, 20]
    assert (first == again).all() and (first != other).any()


def test_some_samples_are_the_same_share_of_every_class() -> None:
    samples = from_arrays(np.random.default_rng(0).normal(size=(90, 2)), [0] * 60 + [1] * 30)
    assert some_of(samples, Draws([1]), 30, 1.0).counts.tolist() == [20, 10]
    assert some_of(samples, Draws([1]), 80, 0.5).counts.tolist() == [30, 15]
    assert some_of(samples, Draws([1]), 1000, 1.0) is samples
    with pytest.raises(UsageError, match="share=0: must be above 0"):
        stratified(Draws([1]), "x", samples.labels, 0)


# ----------------------------------------------------------------------------------------- overlaps


def test_overlaps_are_traces_of_products_of_sample_covariances() -> None:
    samples = noisy(60, 5, [np.arange(1, 6), np.ones(5), np.arange(5, 0, -1)])
    part = halves(Draws([4]), samples.labels)
    same, across = overlaps_of(samples, part, Draws([4]), CPU)
    labels, features = samples.labels[part], samples.features[part]
    first = stratified(Draws([4]), "half of the half", labels, 0.5)
    assert first.sum() == 45

    def covariance(rows: np.ndarray, label: int) -> np.ndarray:
        return np.cov(features[rows & (labels == label)].T)

    everyone = np.ones(len(labels), dtype=bool)
    for a in range(3):
        for b in range(3):
            expected = np.trace(covariance(everyone, a) @ covariance(everyone, b))
            mixed = np.trace(covariance(first, a) @ covariance(~first, b))
            turned = np.trace(covariance(first, b) @ covariance(~first, a))
            assert same[a, b] == pytest.approx(expected, rel=1e-9)
            assert across[a, b] == pytest.approx((mixed + turned) / 2, rel=1e-9)


def test_only_overlaps_of_the_same_samples_are_too_large_on_the_diagonal() -> None:
    """The same isotropic noise in every class: no overlap should stand out. tr(S S) is about
    (1 + d / n) tr(Sigma Sigma)."""
    kept = []
    for key in range(8):
        samples = noisy(40, 20, [np.ones(20)] * 6, seed=key)
        part = halves(Draws([key]), samples.labels)
        found = overlaps_of(samples, part, Draws([key]), CPU)
        kept.append([own_and_others(one[None])[0].mean() for one in found])
    same, across = np.mean(kept, axis=0)
    assert same == pytest.approx(np.log(1 + 20 / 20), abs=0.1)
    assert abs(across) < 0.1


def test_halves_spread_as_whole_sets_do() -> None:
    """Without it intervals would be worth nothing: the std between halves of one set is that of
    the estimate from a whole set, between sets (up to the noise of small quarters)."""
    inside, between = [], []
    for seed in range(12):
        samples = noisy(400, 3, [np.array([3.0, 1, 1]), np.array([1.0, 3, 1])], seed=seed)
        found = []
        for key in range(6):
            part = halves(Draws([key]), samples.labels)
            across = overlaps_of(samples, part, Draws([key]), CPU)[1]
            found.append(own_and_others(across[None])[0].mean())
        inside.append(np.std(found, ddof=1))
        every = np.ones(len(samples), dtype=bool)
        between.append(
            own_and_others(overlaps_of(samples, every, Draws([0]), CPU)[1][None])[0].mean()
        )
    ratio = np.sqrt(np.mean(np.square(inside))) / np.std(between, ddof=1)
    assert 0.5 < ratio < 2


# ---------------------------------------------------------------------------------------- residuals


def test_covariances_tell_classes_as_well_as_normal_laws_allow() -> None:
    """Std 1 against std 3 in 4 dimensions: how often the likelihood ratio is right is known."""
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1], 20_000)
    values = generator.normal(size=(40_000, 4)) * np.where(labels, 3.0, 1.0)[:, None]
    part = generator.random(40_000) < 0.5
    guessed = guessed_by_covariance(values[part], labels[part], values[~part], 2, shrinkage=0.0)
    right = guessed == labels[~part]
    from scipy.stats import chi2

    edge = 4 * np.log(9) / (1 - 1 / 9)  # |x|^2 at which both laws are equally likely
    best = (chi2.cdf(edge, 4) + chi2.sf(edge / 9, 4)) / 2
    assert right.mean() == pytest.approx(best, abs=0.01)


def test_means_alone_tell_nothing_of_residuals() -> None:
    samples = noisy(300, 6, [np.ones(6)] * 5)
    first = halves(Draws([1]), samples.labels)
    found = accuracies_of_residuals(samples, first, 6, Draws([1]), CPU)
    assert set(found) == set(RESIDUALS)
    for share in found.values():  # chance is 0.2, its std 0.015
        assert share == pytest.approx(0.2, abs=0.06)


def test_shapes_tell_classes_and_sizes_only_where_length_is_kept() -> None:
    shapes = [np.array([3.0, 1, 1, 1]), np.array([1.0, 3, 1, 1]), np.array([1.0, 1, 3, 1])]
    samples = noisy(400, 4, shapes)
    first = halves(Draws([1]), samples.labels)
    found = accuracies_of_residuals(samples, first, 4, Draws([1]), CPU)
    assert found[AS_THEY_ARE] > 0.5 and found[UNIT_LENGTH] > 0.5
    assert found[SHUFFLED] == pytest.approx(1 / 3, abs=0.07)
    sizes = noisy(400, 4, [np.ones(4), 3 * np.ones(4), 9 * np.ones(4)])
    found = accuracies_of_residuals(sizes, first, 4, Draws([1]), CPU)
    assert found[AS_THEY_ARE] > 0.7
    assert found[UNIT_LENGTH] == pytest.approx(1 / 3, abs=0.07)


def test_a_map_keeps_classes_that_are_far_apart_together() -> None:
    samples = noisy(40, 5, [0.1 * np.ones(5)] * 3)
    at = spread_out(samples, np.arange(120), 5, 400)
    middles = np.stack([at[samples.labels == label].mean(axis=0) for label in range(3)])
    nearest = np.linalg.norm(at[:, None] - middles[None], axis=2).argmin(axis=1)
    assert (nearest == samples.labels).mean() > 0.95
