"""Training by responses and the Gram matrix is training by weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from small_noise import eigenvalues_for

from rarefy.core.rng import Draws, key
from rarefy.data.class_noise import ClassNoise
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.data.signal_noise import SignalNoise
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.gram_classifier import GramClassifier, is_cheaper, start_of
from rarefy.train.patch_classifier import PatchClassifier

RUNS = 3


def signal_noise(shared: bool) -> tuple[Draws, PatchSamples]:
    keys = [key("gram", i) for i in range(1 if shared else RUNS)]
    draws = Draws(keys, dtype=torch.float64)
    one = torch.ones(RUNS, dtype=torch.float64)
    data = SignalNoise(4, 30, one, 0.5 * one * torch.arange(1, RUNS + 1))
    return draws, data.sample(draws, 12)


def class_noise(shared: bool) -> tuple[Draws, PatchSamples]:
    keys = [key("gram", i) for i in range(1 if shared else RUNS)]
    draws = Draws(keys, dtype=torch.float64)
    gamma = torch.tensor([2.0, 5.0, 40.0])
    table = eigenvalues_for(gamma, 20, 3)  # imbalanced classes
    strength = torch.tensor([[0.1, 1.0, 2.0]] * RUNS, dtype=torch.float64)
    noise = ClassNoise(table, strength)
    return draws, noise.sample(draws, labels_by_size(torch.tensor([[4, 2, 6]])))


def test_the_loss_is_that_of_the_filters() -> None:
    draws, samples = class_noise(shared=True)
    start = initial_filters(draws, 3, 4, 20).expand(RUNS, -1, -1, -1)
    by_weights = PatchClassifier.of(samples, 0.25).loss({"filters": start})
    by_gram = GramClassifier.of(samples, 0.25).loss(start_of(start, samples))
    torch.testing.assert_close(by_gram, by_weights, rtol=1e-12, atol=0)


def test_which_form_is_cheaper() -> None:
    one = torch.ones(1)
    data = SignalNoise(2, 8, one, one)
    assert is_cheaper(data.sample(Draws([1]), 13))  # 15 patches, 2 d = 16
    assert not is_cheaper(data.sample(Draws([1]), 14))


@pytest.mark.parametrize("shared", [True, False])
def test_the_smaller_product_is_taken_only_where_it_is_the_same(shared: bool) -> None:
    draws, samples = signal_noise(shared)
    start = start_of(initial_filters(draws, 4, 5, 30).expand(RUNS, -1, -1, -1), samples)
    short = GramClassifier.of(samples, 1.0)
    assert short.noise_apart
    found, expected = ({name: v.clone() for name, v in start.items()} for _ in range(2))
    short.step(found, 0.5)
    replace(short, noise_apart=False).step(expected, 0.5)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    assert not torch.equal(found["responses"], start["responses"])
    changed = replace(samples, noise=samples.noise + 1e-9)
    assert not GramClassifier.of(changed, 1.0).noise_apart
