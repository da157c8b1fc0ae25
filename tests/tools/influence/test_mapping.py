"""Positions of samples on a map: principal directions, or UMAP where somebody has it."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.tools.influence.mapping import LEARNT_FROM, SampleMap
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


def test_umap_learns_from_some_and_places_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    class Umap:
        def __init__(self, **options: object) -> None:
            assert options == {"random_state": 0, "n_neighbors": 15}

        def fit(self, rows: NDArray[np.float64]) -> Umap:
            seen.append(len(rows))
            return self

        def transform(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
            return rows[:, :2]

    module = ModuleType("umap")
    module.UMAP = Umap  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "umap", module)
    monkeypatch.setattr(module, "__spec__", SimpleNamespace())
    features, labels = made(3, 2 * LEARNT_FROM + 1)
    where = SampleMap(from_arrays(features, labels), "umap")
    assert where([1, 2]).shape == (2, 2) and where.words == "UMAP"
    where([7])
    assert seen == [3334], "once, from every third"


def test_umap_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    samples = from_arrays(*made(3))
    with pytest.raises(UsageError, match="needs the package umap-learn: pip install umap-learn"):
        SampleMap(samples, "umap")
    with pytest.raises(UsageError, match="map='tsne': must be one of pca, umap, none"):
        SampleMap(samples, "tsne")
