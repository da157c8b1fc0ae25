"""Signal and noise of gradients against closed forms and drawn data."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.errors import UsageError
from rarefy.measure.gradient_noise import GradientNoise, measure_gradients, no_signal_p_value

CLASSES, D = 3, 6
Batches = list[tuple[Tensor, Tensor]]


def drawn(
    seed: int, batches: int = 12, size: int = 20, strength: float = 1.0, labels: bool = True
) -> Batches:
    """Class means of size ``strength`` on the first coordinates, noise of std 1 on all; labels that
    mean nothing if ``labels`` is false."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        label = torch.randint(CLASSES, (size,), generator=generator)
        shown = label if labels else torch.randint(CLASSES, (size,), generator=generator)
        inputs = strength * torch.eye(CLASSES, D)[label]
        found.append((inputs + torch.randn(size, D, generator=generator), shown))
    return found


def linear(scale: float = 0.0) -> nn.Linear:
    torch.manual_seed(1)
    model = nn.Linear(D, CLASSES, bias=False)
    model.weight.data.mul_(scale)
    return model


def network() -> nn.Sequential:
    """With all that a probe could leave traces in."""
    torch.manual_seed(2)
    return nn.Sequential(
        nn.Linear(D, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, CLASSES)
    )


def total(seen: GradientNoise) -> float:
    keeps = np.array([1.0])
    return sum(float(layer.kept_energies(keeps, 0.1, 1.0)[0][0]) for layer in seen.layers)


def test_signal_is_the_covariance_of_label_and_slope_whatever_the_scores() -> None:
    model = linear(3.0)
    batches = drawn(0, batches=4, size=15)
    (layer,) = measure_gradients(model, batches).layers
    for half, those in zip(layer.halves, (batches[0::2], batches[1::2]), strict=True):
        covariances = []
        for inputs, labels in those:
            there = functional.one_hot(labels, CLASSES).float()
            both = torch.cat([there, inputs], dim=1).double()
            covariances.append(-torch.cov(both.T)[:CLASSES, CLASSES:])
        expected = torch.stack(covariances).mean(dim=0)
        torch.testing.assert_close(half.mean.double(), expected, atol=1e-5, rtol=1e-4)


def test_at_equal_scores_and_balanced_labels_signal_is_the_whole_gradient() -> None:
    labels = torch.arange(30) % CLASSES
    batches = [(inputs[:30], labels) for inputs, _ in drawn(1, batches=4, size=30)]
    (layer,) = measure_gradients(linear(), batches).layers
    for half in layer.halves:
        torch.testing.assert_close(half.mean, half.update * 30 / 29)


def test_moments_of_batches_of_different_sizes() -> None:
    batches = [
        (inputs[:size], labels[:size])
        for (inputs, labels), size in zip(drawn(2, 6), (20, 20, 9, 20, 20, 5), strict=True)
    ]
    model = linear(1.0)
    (layer,) = measure_gradients(model, batches).layers
    for half, those in zip(layer.halves, (batches[0::2], batches[1::2]), strict=True):
        gradients = []
        for inputs, labels in those:
            loss = functional.cross_entropy(model(inputs), labels)
            gradients.append(torch.autograd.grad(loss, model.weight)[0])
        sizes = torch.tensor([len(labels) for _, labels in those])[:, None, None]
        mean = (sizes * torch.stack(gradients)).sum(dim=0) / sizes.sum()
        torch.testing.assert_close(half.update, mean)
        assert half.samples == int(sizes.sum()) and half.batches == 3


def test_energies_have_no_bias() -> None:
    # at equal scores m_jk = -(1/T)(mean_j - mean)_k; sum of squares: (T - 1)/T^2 of strength^2,
    # and the variance of a coordinate without signal is (1/T)(1 - 1/T)
    found = [measure_gradients(linear(), drawn(seed, 4, strength=0.5)) for seed in range(300)]
    energies = np.array([total(seen) for seen in found])
    expected = 0.25 * (CLASSES - 1) / CLASSES**2
    assert abs(energies.mean() - expected) < 4 * energies.std() / math.sqrt(300)
    variances = [
        float(half.variance()[:, CLASSES:].mean())
        for seen in found
        for layer in seen.layers
        for half in layer.halves
    ]
    expected = (1 - 1 / CLASSES) / CLASSES * 20 / 19  # a sample covariance of 20 has 1/19 more
    assert abs(np.mean(variances) - expected) < 4 * np.std(variances) / math.sqrt(600)


def test_ranking_by_the_other_half_finds_no_signal_in_luck() -> None:
    keeps = np.array([1 / 3])
    fair, lucky = [], []
    for seed in range(300):
        (layer,) = measure_gradients(linear(), drawn(seed, 4, labels=False)).layers
        fair.append(layer.kept_energies(keeps, 1.0, math.inf)[0][0])
        half = layer.halves[0]
        order = half.update.abs().argsort(dim=1, descending=True)[:, :2]
        lucky.append(float(half.energy().gather(1, order).sum()))
    assert abs(np.mean(fair)) < 4 * np.std(fair) / math.sqrt(300)
    assert np.mean(lucky) > 8 * np.std(lucky) / math.sqrt(300)  # so this test can fail


def test_kept_energies_follow_the_ranking() -> None:
    (layer,) = measure_gradients(linear(), drawn(3)).layers
    layer.start.copy_(torch.arange(D).flip(0).expand(CLASSES, D) * 10.0)  # the first is largest
    keeps = np.array([0.01, 1 / 3, 1.0])
    signal, noise = layer.kept_energies(keeps, 1e-9, 1.0)
    for place, count in enumerate((1, 2, D)):
        energy = [float(half.energy()[:, :count].sum()) for half in layer.halves]
        variance = [float(half.variance()[:, :count].sum()) for half in layer.halves]
        assert signal[place] == pytest.approx(np.mean(energy), rel=1e-4)
        assert noise[place] == pytest.approx(np.mean(variance), rel=1e-4)


def test_signal_is_seen_where_it_is_and_rarely_where_it_is_not() -> None:
    model = network()
    with_signal = [measure_gradients(model, drawn(seed)).projections for seed in range(5)]
    assert all(no_signal_p_value(each) < 0.01 for each in with_signal)
    without = [measure_gradients(model, drawn(seed, labels=False)) for seed in range(80)]
    wrong = sum(no_signal_p_value(each.projections) < 0.05 for each in without)
    assert wrong <= 11  # binomial(80, 0.05): more in one of 1000 cases


def test_no_projections_at_all_is_no_signal() -> None:
    assert no_signal_p_value([0.0, 0.0, 0.0]) == 1.0


def test_the_model_stays_what_it_was() -> None:
    model = network()
    model[1].eval()
    model(drawn(9)[0][0]).sum().backward()
    before = copy.deepcopy(model.state_dict())
    gradients = [each.grad.clone() for each in model.parameters()]
    modes = [each.training for each in model.modules()]
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        measure_gradients(model, drawn(4))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert all(
        torch.equal(one.grad, other)
        for one, other in zip(model.parameters(), gradients, strict=True)
    )
    assert [each.training for each in model.modules()] == modes
    assert not any(hasattr(each, "grad_fn") and each.grad_fn for each in model.parameters())


def test_an_error_on_the_way_leaves_the_model_too() -> None:
    model = network().eval()
    with pytest.raises(UsageError, match="batch 1"):
        measure_gradients(model, [drawn(0)[0], (torch.full((4, D), math.nan), torch.arange(4) % 3)])
    assert not any(each.training for each in model.modules())


class Tied(nn.Module):
    """One weight by two names, an attention, and a weight that nothing needs."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(D, D), nn.Linear(D, D)
        self.second.weight = self.first.weight
        self.attention = nn.MultiheadAttention(D, 2, batch_first=True)
        self.unused, self.head = nn.Linear(D, 5), nn.Linear(D, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        tokens = self.second(torch.relu(self.first(inputs)))[:, None]
        answers: Tensor = self.head(self.attention(tokens, tokens, tokens)[0][:, 0])
        return answers


def test_tied_attention_and_unused_weights() -> None:
    torch.manual_seed(0)
    seen = measure_gradients(Tied(), drawn(6))
    names = [layer.name for layer in seen.layers]
    assert names.count("first.weight") == 1 and "second.weight" not in names
    assert "attention.in_proj_weight" in names
    unused = seen.layers[names.index("unused.weight")]
    assert unused.kept_energies(np.array([1.0]), 1.0, 1.0)[0][0] == 0
    assert no_signal_p_value(unused.projections) == 1.0


def test_frozen_weights_are_passed_over() -> None:
    model = network()
    model[0].weight.requires_grad_(False)
    assert [layer.name for layer in measure_gradients(model, drawn(7)).layers] == ["4.weight"]
    model[4].weight.requires_grad_(False)
    with pytest.raises(UsageError, match="all its prunable weights are frozen"):
        measure_gradients(model, drawn(7))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_same() -> None:
    batches = drawn(8)
    here = total(measure_gradients(linear(1.0), batches))
    moved = [(inputs.cuda(), labels.cuda()) for inputs, labels in batches]
    assert total(measure_gradients(linear(1.0).cuda(), moved)) == pytest.approx(here, rel=1e-3)


def test_bad_batches_and_losses_are_named() -> None:
    good = drawn(0)
    with pytest.raises(UsageError, match="batches=3: must be 4 or more"):
        measure_gradients(linear(), good[:3])
    with pytest.raises(UsageError, match="size of batch 0=1: must be 2 or more"):
        measure_gradients(linear(), [(good[0][0][:1], good[0][1][:1])])
    with pytest.raises(UsageError, match="labels of batch 0=.*must be 20 class numbers"):
        measure_gradients(linear(), [(good[0][0], torch.rand(20))])
    with pytest.raises(UsageError, match="loss=nan on batch 0: must be one finite number"):
        measure_gradients(linear(), [(good[0][0] * math.nan, good[0][1])])
    with pytest.raises(UsageError, match=r"loss=\(20,\) on batch 0"):
        measure_gradients(
            linear(), good, loss=lambda a, b: functional.cross_entropy(a, b, reduction="none")
        )
    with pytest.raises(UsageError, match="has no layers that can be pruned"):
        measure_gradients(nn.Sequential(nn.ReLU()), good)
