"""Positions of samples on a map: principal directions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rarefy.tools.influence.mapping import SampleMap
from rarefy.tools.samples.arrays import from_arrays


def made(width: int, count: int = 60) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(0)
    spread = np.geomspace(1, 100, width) if width > 1 else np.ones(1)
    return generator.normal(size=(count, width)) * spread, np.arange(count) % 2


def test_pca_has_the_two_leading_directions() -> None:
    features, labels = made(6)
    found = SampleMap(from_arrays(features, labels))([5, 0, 59])
    centred = features - features.mean(axis=0)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = (centred @ directions[:2].T)[[5, 0, 59]]
    signs = np.sign((expected * found).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("width", [1, 2])
def test_few_features_are_their_own_map(width: int) -> None:
    features, labels = made(width)
    found = SampleMap(from_arrays(features, labels))(range(60))
    assert found.shape == (60, 2)
    centred = features - features.mean(axis=0)
    np.testing.assert_allclose(found[:, :width], centred, rtol=1e-4, atol=1e-4)
    assert (found[:, width:] == 0).all()
