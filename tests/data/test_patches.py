"""Two-patch samples: labels by size, features given by hand, scales and what they add up to."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.patches import PatchSamples, labels_by_size


def samples_of(runs: int = 3, n: int = 7, classes: int = 2, d: int = 5) -> PatchSamples:
    draws = Draws([key("patches", 0)], dtype=torch.float64)
    scales = Draws([key("scales", run) for run in range(runs)], dtype=torch.float64)
    return PatchSamples(
        labels=(torch.arange(n) % classes)[None],
        noise=draws.normal("noise", (n, d)),
        features=torch.eye(classes, d, dtype=torch.float64)[None],
        noise_scale=scales.uniform("sigma", ()),
        strength=scales.uniform("mu", (classes,)),
    )


@given(st.lists(st.integers(1, 6), min_size=2, max_size=5))
def test_labels_by_size_has_every_class_as_often_as_asked(sizes: list[int]) -> None:
    other = list(reversed(sizes))
    labels = labels_by_size(torch.tensor([sizes, other]))
    assert labels.shape == (2, sum(sizes)) and labels.dtype == torch.int64
    for row, wanted in zip(labels, (sizes, other), strict=True):
        assert torch.bincount(row, minlength=len(sizes)).tolist() == wanted
        assert bool((row.diff() >= 0).all())


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([[3, 0, 2]], "class_sizes=0: every class needs at least 1 sample"),
        ([[3, -1]], "class_sizes=-1: every class needs at least 1 sample"),
        ([[3, 2], [4, 2]], r"class_sizes=\[5, 6\]: all runs need the same number of samples"),
    ],
)
def test_labels_by_size_refuses(sizes: list[list[int]], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{message}$"):
        labels_by_size(torch.tensor(sizes))


def test_class_sizes_count_the_labels() -> None:
    sizes = torch.tensor([[4, 1, 2], [2, 3, 2]])
    labels = labels_by_size(sizes)
    like = torch.zeros(2, 7, 6)
    samples = PatchSamples(labels, like, torch.eye(3, 6).expand(2, -1, -1), *[torch.ones(2, 3)] * 2)
    assert torch.equal(samples.class_sizes().long(), sizes)
    assert samples.one_hot().shape == (2, 7, 3)
    assert torch.equal(samples.one_hot().argmax(dim=2), labels)
    assert bool((samples.one_hot().sum(dim=2) == 1).all())


def test_patches_times_scales_are_the_patches_of_each_run() -> None:
    samples = samples_of()
    assert (samples.runs, len(samples), samples.classes) == (3, 7, 2)
    real = samples.patches() * samples.scales()[:, :, None]
    assert real.shape == (3, 9, 5)
    for run in range(3):
        noise = samples.noise_scale[run] * samples.noise[0]
        feature = samples.strength[run][:, None] * samples.features[0]
        torch.testing.assert_close(real[run], torch.cat([noise, feature]))
    torch.testing.assert_close(samples.noise_norms(), real[:, :7].square().sum(dim=2))
