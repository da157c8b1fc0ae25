"""A GPU gives what the CPU gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rarefy.measure.influence.class_statistics import covariance_overlaps, gather_statistics
from rarefy.measure.influence.held_out import score_held_out
from rarefy.measure.influence.neighbours import make_space, nearest
from rarefy.measure.influence.passes import score_classes

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def data(width: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), [500, 1, 2, 90])
    random.shuffle(labels)
    rows = random.standard_normal((len(labels), width)) * np.geomspace(5, 0.5, width)
    return (rows + 1e3).astype(np.float32), labels


@pytest.mark.parametrize("width", [20, 60, 1100])
def test_scores(width):
    features, labels = data(width)
    cpu = score_classes(features, labels, 4)
    gpu = score_classes(features, labels, 4, device="cuda")
    allowed = 1e-9 * cpu.covariance_norms[labels]
    known = ~np.isnan(cpu.influence)
    assert np.array_equal(known, ~np.isnan(gpu.influence))
    for name in ("influence", "own", "shared", "shrinking"):
        away = np.abs(getattr(cpu, name) - getattr(gpu, name))
        assert (away[known] <= allowed[known]).all()
    for name in ("distance", "norm", "means"):
        assert np.allclose(getattr(cpu, name), getattr(gpu, name), rtol=1e-10, equal_nan=True)
    assert np.allclose(cpu.mahalanobis, gpu.mahalanobis, rtol=1e-4, equal_nan=True)
    assert cpu.routes == gpu.routes


def test_stopped_and_resumed(tmp_path):
    from rarefy.core.errors import OutOfTime

    features, labels = data(20)
    whole = score_classes(features, labels, 4, device="cuda", chunk=50)
    stops = 0
    while True:
        try:
            found = score_classes(
                features, labels, 4, device="cuda", chunk=50, state=tmp_path, deadline=lambda: True
            )
            break
        except OutOfTime:
            stops += 1
    assert stops > 5
    assert np.allclose(found.influence, whole.influence, rtol=1e-12, atol=0, equal_nan=True)


def test_overlaps_and_held_out():
    features, labels = data(30)
    on = {name: gather_statistics(features, labels, 4, device=name) for name in ("cpu", "cuda")}
    first, second = (covariance_overlaps(found) for found in on.values())
    assert np.allclose(first, second, rtol=1e-11, equal_nan=True)
    more, theirs = data(30, seed=1)
    cpu, gpu = (
        score_held_out(features, labels, more, theirs, 4, device=device)
        for device in ("cpu", "cuda")
    )
    assert np.allclose(cpu.influence, gpu.influence, rtol=1e-9, equal_nan=True)


def test_neighbours():
    features, _ = data(40)
    features[100:150] = features[:50]
    cpu, gpu = (
        nearest(features, 8, space=make_space(features, device=device), device=device)
        for device in ("cpu", "cuda")
    )
    assert (cpu.indices == gpu.indices).mean() > 0.999  # the means may differ in the last digit
    assert np.allclose(cpu.distances, gpu.distances, rtol=1e-5, atol=1e-6)
