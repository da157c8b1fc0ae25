"""A GPU gives what the CPU gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rarefy.measure.representation.class_means import class_share, nearest_mean_accuracy
from rarefy.measure.representation.few_shot import few_shot, pick_few
from rarefy.measure.representation.instance import instance_retrieval, readable
from rarefy.measure.representation.knn import knn_predict
from rarefy.measure.representation.labelled import accuracy_by_class
from rarefy.measure.representation.linear_probe import fit_chosen, fit_linear, strength_path
from rarefy.measure.representation.selective_units import class_selectivity
from rarefy.measure.representation.spectrum import effective_rank, spectrum

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

CLASSES = 7


def data(seed: int, samples: int = 700) -> tuple[Tensor, Tensor]:
    """Classes of 1 to hundreds of samples; class 5 has none."""
    generator = torch.Generator().manual_seed(seed)
    share = torch.tensor([0.5, 0.25, 0.12, 0.08, 0.05, 0.0, 0.0])
    labels = torch.multinomial(share, samples, True, generator=generator)
    labels[0] = 6
    means = torch.randn(CLASSES, 40, generator=torch.Generator().manual_seed(5))
    return means[labels] + 1.5 * torch.randn(samples, 40, generator=generator), labels


def on_gpu(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return pair[0].cuda(), pair[1].cuda()


@pytest.mark.parametrize("strength", [1.0, 1e-2, 1e-4])
def test_probe(strength):
    features, labels = data(0)
    exact = features.double()
    cpu = fit_linear(exact, labels, CLASSES, strength, tolerance=1e-8)
    gpu = fit_linear(exact.cuda(), labels, CLASSES, strength, tolerance=1e-8)
    assert cpu.converged and gpu.converged
    torch.testing.assert_close(gpu.coefficients.cpu(), cpu.coefficients, rtol=1e-6, atol=1e-6)
    rough = fit_linear(features.cuda(), labels.cuda(), CLASSES, strength)
    assert rough.converged
    # the tolerance of float32 probes is a thousandth of the norm
    away = (rough.coefficients.cpu() - cpu.coefficients).norm() / cpu.coefficients.norm()
    assert away < 2e-3


def test_choice():
    train, validation = data(0), data(1, 3000)
    cpu, _ = strength_path(train, validation, CLASSES)
    gpu, _ = strength_path(on_gpu(train), on_gpu(validation), CLASSES)
    for here, there in zip(cpu.table, gpu.table, strict=True):
        # a few of 3000 samples may lie on a border
        assert there.accuracy == pytest.approx(here.accuracy, abs=0.003)
        assert there.converged
    held_out = torch.arange(700) % 5 == 1
    probe, *_ = fit_chosen(train[0].cuda(), train[1].cuda(), CLASSES, held_out)
    assert probe.converged and probe.coefficients.is_cuda
    assert not (probe.predict(validation[0]) == 5).any()


def test_neighbours_and_few():
    train, asked = data(0), data(1)
    for k in (1, 20, 5000):
        cpu = knn_predict(*train, asked[0], CLASSES, k)
        gpu = knn_predict(*on_gpu(train), asked[0].cuda(), CLASSES, k)
        assert gpu.k == cpu.k
        assert (gpu.predicted.cpu() == cpu.predicted).double().mean() > 0.995
    here, there = pick_few(train[1], CLASSES, 4, 3, 1), pick_few(train[1].cuda(), CLASSES, 4, 3, 1)
    assert torch.equal(here, there.cpu())
    found = few_shot(on_gpu(train), on_gpu(asked), on_gpu(data(2)), CLASSES, 4, draws=2)
    plain = few_shot(train, asked, data(2), CLASSES, 4, draws=2)
    assert found.mean == pytest.approx(plain.mean, abs=0.03)
    assert found.by_class[:, 5].isnan().all()


def test_class_means_and_units():
    features, labels = data(0)
    there, theirs = on_gpu((features, labels))
    torch.testing.assert_close(
        nearest_mean_accuracy(there, theirs, CLASSES),
        nearest_mean_accuracy(features, labels, CLASSES),
        equal_nan=True,
    )
    cpu = class_selectivity(features, labels, CLASSES)
    gpu = class_selectivity(there, theirs, CLASSES)
    assert torch.equal(cpu.preferred, gpu.preferred)
    torch.testing.assert_close(cpu.selectivity, gpu.selectivity)
    right = accuracy_by_class(theirs, labels, CLASSES)
    assert right[5].isnan() and right.nansum() == 6


def test_what_features_are_made_of():
    (first, labels), (second, _) = data(0), data(1)
    here, there = first.cuda(), second.cuda()
    close = {"rel": 1e-6, "abs": 1e-9}
    assert class_share(here, labels, CLASSES) == pytest.approx(
        class_share(first, labels, CLASSES), **close
    )
    assert effective_rank(here) == pytest.approx(effective_rank(first), **close)
    torch.testing.assert_close(spectrum(here), spectrum(first), rtol=1e-6, atol=1e-9)
    # two of 1,400 views may have neighbours that are equally near in float32
    near = instance_retrieval(first, first + 0.5 * second)
    assert instance_retrieval(here, here + 0.5 * there) == pytest.approx(near, abs=2 / 1400)
    groups = torch.arange(len(first)) // 2
    torch.testing.assert_close(
        readable(here, second.cuda()[:, :3] + here[:, :3], groups.cuda()),
        readable(first, second[:, :3] + first[:, :3], groups),
        rtol=1e-5,
        atol=1e-6,
    )
