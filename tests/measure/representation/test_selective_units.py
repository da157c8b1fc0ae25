"""Which class a unit prefers, and whether its units are masked more often than chance has it."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.measure.representation import selective_units
from rarefy.measure.representation.selective_units import class_selectivity, masked_by_class


def normal(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_selectivity_by_a_plain_loop(monkeypatch):
    labels = torch.tensor([0] * 30 + [1] * 10 + [3] * 5 + [4])
    activations = normal(46, 7) + 3
    activations[labels == 3, 2] += 4
    monkeypatch.setattr(selective_units, "_VALUES", 50)
    found = class_selectivity(activations.float(), labels, 6)
    present = [0, 1, 3, 4]
    for unit in range(7):
        parts = {c: activations[labels == c, unit] for c in present}
        means = {c: float(part.mean()) for c, part in parts.items()}
        best = max(means, key=means.__getitem__)
        inside = sum(float((part - part.mean()).square().sum()) for part in parts.values())
        others = sum(means[c] for c in present if c != best) / 3
        expected = (means[best] - others) / math.sqrt(inside / (46 - 4))
        assert int(found.preferred[unit]) == best
        assert float(found.selectivity[unit]) == pytest.approx(expected, rel=1e-5)
    assert int(found.preferred[2]) == 3


def test_a_planted_preference_is_found_in_standard_deviations():
    labels = torch.arange(4000) % 4
    planted = torch.tensor([2, 0, 3])
    activations = 2 * normal(4000, 3)
    activations[labels[:, None] == planted] += 3
    found = class_selectivity(activations, labels, 4)
    assert (found.preferred == planted).all()
    # 1.5 standard deviations; a mean of 1000 is known to 0.032 of them
    assert (found.selectivity - 1.5).abs().max() < 0.2


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999), st.floats(-3, 3), st.floats(-100, 100))
def test_units_of_measurement_do_not_matter(seed, exponent, shift):
    activations, labels = normal(30, 4, seed=seed), torch.arange(30) % 3
    here = class_selectivity(activations, labels, 3)
    there = class_selectivity(activations * 10**exponent + shift, labels, 3)
    assert (here.preferred == there.preferred).all()
    torch.testing.assert_close(here.selectivity, there.selectivity, rtol=1e-6, atol=1e-6)


def test_silent_units_and_units_that_vary_between_classes_only():
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    activations = torch.stack([torch.full((6,), 0.1), labels.float(), torch.zeros(6)], dim=1)
    found = class_selectivity(activations, labels, 2)
    assert found.preferred.tolist() == [-1, 1, -1]
    assert found.selectivity.tolist() == [0, math.inf, 0]


def units(count: int = 90, classes: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    return (
        normal(count).sigmoid(),
        torch.arange(count) % classes,
        torch.ones(count, dtype=torch.float64),
    )


def test_the_null_is_that_of_drawing_without_replacement():
    shares, preferred, selectivity = units()
    found = masked_by_class(shares, preferred, selectivity, 4, permutations=4000)
    assert found.units.tolist() == [30, 30, 30, 0]
    for c in range(3):
        own = float(shares[preferred == c].mean())
        assert float(found.share[c]) == pytest.approx(own)
        # mean and standard deviation of the mean of 30 of 90, and what 4000 of them say about it
        deviation = float(shares.std()) * math.sqrt((90 - 30) / (90 * 30))
        centre = own - float(found.difference[c])
        assert centre == pytest.approx(float(shares.mean()), abs=5 * deviation / 63)
        ends = (found.low[c] - centre) / deviation, (found.high[c] - centre) / deviation
        assert [float(end) for end in ends] == pytest.approx([-1.96, 1.96], abs=0.2)
        z = abs(own - float(shares.mean())) / deviation
        assert float(found.p_value[c]) == pytest.approx(math.erfc(z / math.sqrt(2)), abs=0.05)
    for values in (found.share, found.difference, found.low, found.p_value):
        assert values[3].isnan()


def test_a_class_whose_units_are_masked_stands_out():
    _, preferred, selectivity = units()
    masked = (preferred == 2).double()
    masked[::7] = 1
    found = masked_by_class(masked, preferred, selectivity, 3)
    assert found.share[2] == 1 and found.share[2] > found.high[2]
    assert found.difference[2] > 0.4 and found.p_value[2] == pytest.approx(1 / 1000)
    assert found.difference[0] < 0


def test_within_layers_a_difference_of_layers_is_no_difference_of_classes(monkeypatch):
    layers = torch.arange(80) // 40
    preferred = torch.where(torch.arange(80) % 4 == 0, 1 - layers, layers)
    masked = 0.2 + 0.6 * layers
    ones = torch.ones(80)
    plain = masked_by_class(masked, preferred, ones, 2)
    assert plain.difference[1] > 0.1 and plain.p_value[1] < 0.01
    monkeypatch.setattr(selective_units, "_VALUES", 1000)
    inside = masked_by_class(masked, preferred, ones, 2, strata=layers * 7 - 3)
    assert inside.difference.abs().max() < 1e-12
    assert inside.p_value.tolist() == [1, 1]
    # units of two layers one after the other or mixed: the same null
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(80, generator=generator)
    masked = masked + 0.1 * normal(80)
    there = masked_by_class(masked, preferred, ones, 2, strata=layers, permutations=4000)
    mixed = masked_by_class(
        masked[order], preferred[order], ones, 2, strata=layers[order], permutations=4000
    )
    torch.testing.assert_close(there.difference, mixed.difference, rtol=0, atol=2e-3)
    torch.testing.assert_close(there.high, mixed.high, rtol=0, atol=4e-3)


def test_seeded_and_only_units_that_prefer_something():
    shares, preferred, selectivity = units()
    first = masked_by_class(shares, preferred, selectivity, 3, seed=1)
    again = masked_by_class(shares, preferred, selectivity, 3, seed=1)
    other = masked_by_class(shares, preferred, selectivity, 3, seed=2)
    assert torch.equal(first.low, again.low) and not torch.equal(first.low, other.low)
    more = torch.cat([shares, torch.tensor([9.0, 9.0], dtype=torch.float64)])
    found = masked_by_class(
        more,
        torch.cat([preferred, torch.tensor([-1, 2])]),
        torch.cat([selectivity, torch.tensor([0.0, 0.3])]),
        3,
        least=0.5,
        seed=1,
    )
    assert torch.equal(found.share, first.share) and torch.equal(found.high, first.high)
    nobody = masked_by_class(shares, preferred, selectivity, 3, least=2.0)
    assert nobody.share.isnan().all() and nobody.units.tolist() == [0, 0, 0]


def test_errors():
    shares, preferred, selectivity = units()
    with pytest.raises(UsageError, match=r"preferred=\(89,\): must be \(90,\), one per unit"):
        masked_by_class(shares, preferred[1:], selectivity, 3)
    with pytest.raises(UsageError, match=r"strata=\(2,\): must be \(90,\), one per unit"):
        masked_by_class(shares, preferred, selectivity, 3, strata=torch.zeros(2))
    with pytest.raises(UsageError, match=r"preferred=\(0, 2\): must be in -1..1"):
        masked_by_class(shares, preferred, selectivity, 2)
    with pytest.raises(UsageError, match="permutations=0: must be at least 1"):
        masked_by_class(shares, preferred, selectivity, 3, permutations=0)
    with pytest.raises(UsageError, match="classes=0: must be at least 1"):
        masked_by_class(shares, preferred, selectivity, 0)
    with pytest.raises(UsageError, match="masked_share=90: must be finite"):
        masked_by_class(shares * torch.nan, preferred, selectivity, 3)
    with pytest.raises(UsageError, match="labels=1: must hold at least two classes"):
        class_selectivity(normal(5, 2), torch.zeros(5, dtype=torch.int64), 3)
    with pytest.raises(UsageError, match="measured features: 5 of 5 rows"):
        class_selectivity(normal(5, 2) * torch.nan, torch.arange(5), 5)
