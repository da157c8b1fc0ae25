"""Scores in parts: they add up, they are what a plain loop finds, and they blame the right one."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_noise import special_direction
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.measure.decisions import Decisions, decisions
from rarefy.measure.generalisation import scores_of
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.descent import descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

F64 = torch.float64


def trained(
    dtype: torch.dtype = F64, seed: int = 0, classes: int = 3, d: int = 24, m: int = 5, own: int = 4
) -> tuple[Tensor, dict[str, Tensor], PatchSamples, PatchSamples, float]:
    """Two runs with different eigenvalues after 60 updates: start, end, training, fresh, scale."""
    draws = Draws([seed, seed + 1], dtype=dtype)
    special = torch.tensor([[1.0] * classes, [2.5] * classes], dtype=F64)
    strength = torch.tensor([[1.5] * classes, [0.3] * classes], dtype=dtype)
    data = ClassNoise(special_direction(special, d, classes).to(dtype), strength)
    sizes = torch.full((1, classes), own)
    samples = data.sample(draws, labels_by_size(sizes))
    fresh = data.sample(draws, torch.arange(7)[None] % classes, "test")
    start = initial_filters(draws, classes, m, d, "default").to(dtype)
    parameters = {
        "filters": start,
        "coefficients": start.new_zeros(2, classes, m, classes * own + classes),
    }
    problem = PatchClassifier.of(samples, 1 / m)
    end = descend(problem, parameters, lambda step: None, Sgd(2.0), 60).parameters
    return start, end, samples, fresh, 1 / m


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (F64, 1e-12)])
def test_the_parts_add_up_to_the_score(dtype: torch.dtype, close: float) -> None:
    start, end, samples, fresh, scale = trained(dtype)
    split = decisions(start, end["coefficients"], samples, fresh, scale, end["filters"])
    found = scores_of(end["filters"], fresh, scale)
    assert found.abs().max() > 0.5  # something was learnt
    torch.testing.assert_close(split.scores, found, rtol=close, atol=close)


@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 4),
    m=st.integers(1, 6),
    own=st.integers(1, 4),
)
@settings(max_examples=15, deadline=None)
def test_they_add_up_at_any_size_and_without_the_filters(
    seed: int, classes: int, m: int, own: int
) -> None:
    start, end, samples, fresh, scale = trained(F64, seed, classes, 3 * classes + 5, m, own)
    split = decisions(start, end["coefficients"], samples, fresh, scale)
    found = scores_of(end["filters"], fresh, scale)
    torch.testing.assert_close(split.scores, found, rtol=1e-12, atol=1e-12)
    margin = split.margin(fresh.labels)
    torch.testing.assert_close(margin.parts().sum(dim=2), margin.total, rtol=1e-12, atol=1e-12)
    own_score = found.gather(1, fresh.labels.expand(2, -1)[:, None])[:, 0]
    rest = found.scatter(1, fresh.labels.expand(2, -1)[:, None], -torch.inf).amax(dim=1)
    torch.testing.assert_close(margin.total, own_score - rest, rtol=1e-12, atol=1e-12)


def test_it_is_what_a_plain_loop_over_filters_and_patches_finds() -> None:
    start, end, samples, fresh, scale = trained()
    split = decisions(start, end["coefficients"], samples, fresh, scale, end["filters"])
    run, sample, n = 1, 4, len(samples)
    label = int(fresh.labels[0, sample])
    for k in range(3):
        feature = (
            fresh.features[min(run, len(fresh.features) - 1), label] * fresh.strength[run, label]
        )
        noise = fresh.noise[run, sample]
        begun, learnt, stored = 0.0, 0.0, torch.zeros(n, dtype=F64)
        for patch in (noise, feature):
            for r in range(start.shape[2]):
                if end["filters"][run, k, r] @ patch <= 0:
                    continue
                begun += float(start[min(run, len(start) - 1), k, r] @ patch)
                c = end["coefficients"][run, k, r]
                stored += c[:n] * (samples.noise[run] @ patch)
                learnt += float(c[n:] @ (samples.features[0] @ patch))
        assert float(split.start[run, k, sample]) == pytest.approx(scale * begun, abs=1e-12)
        assert float(split.features[run, k, sample]) == pytest.approx(scale * learnt, abs=1e-12)
        torch.testing.assert_close(split.noise[run, k, sample], scale * stored, rtol=0, atol=1e-12)


def test_a_run_is_split_alone_as_in_a_batch() -> None:
    start, end, samples, fresh, scale = trained()

    def second(part: PatchSamples) -> PatchSamples:
        names = ("labels", "noise", "features", "noise_scale", "strength")
        values = {name: getattr(part, name) for name in names}
        return PatchSamples(**{n: v[1:] if len(v) == 2 else v for n, v in values.items()})

    both = decisions(start, end["coefficients"], samples, fresh, scale)
    alone = decisions(start[1:], end["coefficients"][1:], second(samples), second(fresh), scale)
    torch.testing.assert_close(alone.noise[0], both.noise[1], rtol=0, atol=1e-13)
    torch.testing.assert_close(alone.features[0], both.features[1], rtol=0, atol=1e-13)


def test_an_untrained_network_has_only_its_start() -> None:
    start, end, samples, fresh, scale = trained()
    split = decisions(start, torch.zeros_like(end["coefficients"]), samples, fresh, scale)
    assert not split.noise.any() and not split.features.any()
    torch.testing.assert_close(split.start, scores_of(start, fresh, scale))


def by_hand() -> Decisions:
    noise = torch.zeros(1, 2, 1, 3)
    noise[0, 0, 0] = torch.tensor([1.0, -2.0, 0.5])
    noise[0, 1, 0] = torch.tensor([0.0, 0.0, 4.0])
    return Decisions(torch.tensor([[[0.1], [0.2]]]), torch.tensor([[[3.0], [0.0]]]), noise)


def test_margin_and_rival_of_an_example_by_hand() -> None:
    split, label = by_hand(), torch.tensor([[0]])
    assert split.rivals(label).tolist() == [[1]]
    margin = split.margin(label)
    torch.testing.assert_close(margin.total, torch.tensor([[2.6 - 4.2]]))
    torch.testing.assert_close(margin.noise, torch.tensor([[[1.0, -2.0, -3.5]]]))
    one_hot = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]])
    torch.testing.assert_close(margin.by_class(one_hot), torch.tensor([[[-1.0, -3.5]]]))
    turned = split.margin(torch.tensor([[1]]), torch.tensor([[0]]))
    torch.testing.assert_close(turned.parts(), -margin.parts())


def test_a_copy_of_a_training_sample_is_decided_by_that_sample() -> None:
    start, end, samples, _, scale = trained()
    split = decisions(start, end["coefficients"], samples, samples, scale, end["filters"])
    noise = split.margin(samples.labels).noise[1]
    hit = noise.abs().argmax(dim=1) == torch.arange(len(samples))
    assert hit.float().mean() > 0.8 and bool((noise.diagonal()[hit] > 0).all())


def test_wrong_shapes_are_named() -> None:
    start, end, samples, fresh, scale = trained()
    with pytest.raises(UsageError, match=r"accumulated=.*15 coefficients: 12 samples"):
        decisions(start, end["coefficients"][..., :5], samples, fresh, scale)
    split = by_hand()
    with pytest.raises(UsageError, match=r"labels=\(1, 2\): must be \(run or 1, 1\) with 1 runs"):
        split.margin(torch.tensor([[0, 1]]))
    with pytest.raises(UsageError, match=r"labels=5: must be in 0\.\.1"):
        split.margin(torch.tensor([[5]]))
    with pytest.raises(UsageError, match=r"labels=-1: must be in 0\.\.1"):
        split.rivals(torch.tensor([[-1]]))
    with pytest.raises(UsageError, match="rivals=.*own class.*another class"):
        split.margin(torch.tensor([[0]]), torch.tensor([[0]]))
