"""Classifiers have not seen what they are asked; isolation against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rarefy.core.rng import Draws
from rarefy.tools.influence.out_of_fold import (
    CLASSIFIERS,
    LOGISTIC,
    NEIGHBOURS,
    folds_of,
    isolation,
    out_of_fold,
)
from rarefy.tools.samples.arrays import from_arrays


def test_folds_hold_a_part_of_every_class() -> None:
    labels = np.repeat(np.arange(3), [10, 25, 50])
    fold = folds_of(Draws([1]), labels, 5)
    for label, count in enumerate((2, 5, 10)):
        assert np.bincount(fold[labels == label]).tolist() == [count] * 5


def test_a_sample_that_is_asked_was_not_learnt_from() -> None:
    """Labels at random: whoever had seen the asked sample among its ten neighbours, or had 40
    features for 60 samples to fit, would be right more often than chance."""
    generator = np.random.default_rng(0)
    samples = from_arrays(generator.normal(size=(600, 40)), generator.integers(0, 2, 600))
    hard = out_of_fold(samples, folds_of(Draws([1]), samples.labels, 10), 40)
    for name in CLASSIFIERS:
        assert hard[name].wrong.mean() == pytest.approx(0.5, abs=0.1)


def test_classifiers_find_what_is_easy_and_mark_a_wrong_label() -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    features = generator.normal(size=(120, 5)) + 10 * labels[:, None]
    labels[7] = 2
    hard = out_of_fold(from_arrays(features, labels), folds_of(Draws([1]), labels, 4), 5)
    for name in CLASSIFIERS:
        assert np.flatnonzero(hard[name].wrong).tolist() == [7]
        assert hard[name].loss.argmax() == 7
    assert hard[NEIGHBOURS].loss[7] == 1.0
    assert hard[LOGISTIC].loss[7] > 1.0


def test_isolation_is_the_mean_distance_to_the_nearest_of_the_class() -> None:
    generator = np.random.default_rng(0)
    features = generator.normal(size=(50, 3))
    labels = np.repeat([0, 1], 25)
    found = isolation(from_arrays(features, labels), torch.device("cpu"))
    for label in (0, 1):
        own = features[labels == label]
        apart = np.sort(np.linalg.norm(own[:, None] - own[None], axis=2), axis=1)
        expected = apart[:, 1:11].mean(axis=1)
        np.testing.assert_allclose(found[labels == label], expected / expected.mean(), rtol=1e-5)
