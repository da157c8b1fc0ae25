"""Detector sets, responses and growth (004 App. C, G.1) on networks that can be checked by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView
from rarefy.measure.detectors import (
    STDS,
    detector_sets,
    growth,
    pooled,
    response,
    responses,
    roles,
)
from rarefy.theory import granularity as theory
from rarefy.train.multi_view_classifier import initial_neurons


def network(
    runs: int = 3, outputs: int = 2, m: int = 20, d: int = 9, first: int = 0
) -> dict[str, Tensor]:
    draws = Draws(range(first, first + runs), dtype=torch.float64)
    return initial_neurons(draws, outputs, m, d, 0.1, 0.8)


@given(st.integers(0, 1000), st.integers(2, 9), st.floats(0, 0.3), st.floats(0, 0.1))
@settings(max_examples=25, deadline=None)
def test_sets_are_those_of_the_definition(
    first: int, features: int, spread: float, sigma: float
) -> None:
    """Neuron by neuron, word by word, as Def. C.1 reads."""
    start = network(1, 1, 15, 9, first)
    found = detector_sets(start["weights"], start["bias"], features, spread, sigma)
    log = math.log(9)
    low, high = (0.1 * 0.8 * math.sqrt(log + sign * log**-5) for sign in (-1, 1))
    for r, w in enumerate(start["weights"][0, 0].tolist()):
        noise = STDS * sigma * math.sqrt(sum(each**2 for each in w))
        may = [math.sqrt(1 + spread) * each + noise >= low for each in w]
        for v in range(features):
            others = [word for word in range(9) if word != v]
            printed = w[v] >= high and all(w[word] < low for word in others)
            sure = math.sqrt(1 - spread) * w[v] - noise >= high
            alone = sure and not any(may[word] for word in others if word < features)
            assert bool(found.printed[0, 0, r, v]) == printed
            assert bool(found.detector[0, 0, r, v]) == alone
            assert bool(found.able[0, 0, r, v]) == may[v]


@given(st.integers(0, 1000), st.floats(0, 0.3), st.floats(0, 0.1))
@settings(max_examples=20, deadline=None)
def test_a_detector_is_able_and_detects_one_feature(
    first: int, spread: float, sigma: float
) -> None:
    start = network(2, 2, 30, 9, first)
    sets = detector_sets(start["weights"], start["bias"], 6, spread, sigma)
    assert bool((sets.able | ~sets.detector).all())
    assert bool((sets.able | ~sets.printed).all())
    assert int(sets.detector.sum(dim=3).max()) <= 1
    assert int(sets.printed.sum(dim=3).max()) <= 1


def test_sizes_are_those_of_exact_probability() -> None:
    d, m, c_b, features, spread, sigma = 30, 200, 1.1, 8, 0.05, 0.01
    draws = Draws(range(300), dtype=torch.float64)
    start = initial_neurons(draws, 1, m, d, 0.01, c_b)
    sets = detector_sets(start["weights"], start["bias"], features, spread, sigma)
    printed = theory.initial_sets(d, m, c_b)
    wide = theory.initial_sets(d, m, c_b, spread, STDS * sigma * math.sqrt(d))
    expected = {
        "printed": printed.detectors,
        "detector": m * wide.detector_among(features),
        "able": wide.able,
    }
    for name, size in expected.items():
        counts = getattr(sets, name).sum(dim=2).double().mean(dim=(1, 2))
        error = float(counts.std()) / math.sqrt(len(counts))
        # the closed form has one length for all neurons: one in a hundred for that
        assert abs(float(counts.mean()) - size) < 5 * error + 0.01 * size, name
    part = (responses(start["weights"], start["bias"], features) * sets.printed).sum(dim=(1, 2, 3))
    whole = response(start["weights"], start["bias"], features).sum(dim=(1, 2))
    off = part - theory.initial_share(d, c_b) * whole
    assert abs(float(off.mean())) < 5 * float(off.std()) / math.sqrt(len(off))
    mean = theory.initial_response(d, m, c_b) * 0.01
    seen = response(start["weights"], start["bias"], features).mean(dim=(1, 2))
    assert abs(float(seen.mean()) - mean) < 5 * float(seen.std()) / math.sqrt(len(seen))


def test_responses_and_growth_by_hand() -> None:
    weights = torch.tensor([[[[0.5, 0.0, 0.1], [0.3, 0.9, 0.0], [0.0, 0.0, 0.0]]]])
    bias = torch.tensor([[[-0.2, -0.1, -0.1]]])
    members = torch.tensor([[[[True, False], [False, True], [False, False]]]])
    assert torch.allclose(response(weights, bias, 2), torch.tensor([[[0.5, 0.8]]]))
    assert torch.allclose(response(weights, bias, 2, strength=0.5), torch.tensor([[[0.1, 0.35]]]))
    initial = torch.zeros_like(weights)
    assert torch.allclose(growth(weights, initial, members), torch.tensor([[[0.5, 0.9]]]))
    nobody = growth(weights, initial, torch.zeros_like(members))
    assert bool(nobody.isnan().all())


def test_a_batch_measures_what_single_runs_do() -> None:
    together = network(3)
    sets = detector_sets(together["weights"], together["bias"], 5, 0.1, 0.02)
    for run in range(3):
        alone = network(1, first=run)
        one = detector_sets(alone["weights"], alone["bias"], 5, 0.1, 0.02)
        for name in ("printed", "detector", "able"):
            assert torch.equal(getattr(one, name)[0], getattr(sets, name)[run])
        torch.testing.assert_close(
            response(alone["weights"], alone["bias"], 5)[0],
            response(together["weights"], together["bias"], 5)[run],
        )


# -------------------------------------------------------------------------------------------- roles


def test_whose_feature_is_whose() -> None:
    data = MultiView(d=20, patches=8, plus=4, minus=4, feature_patches=2)
    coarse = roles(Labels(data, 1))
    assert coarse.common.nonzero().tolist() == [[0, 0], [1, 1]]
    assert coarse.subclass[0].nonzero().flatten().tolist() == [2, 3, 4, 5]
    assert coarse.subclass[1].nonzero().flatten().tolist() == [6, 7, 8, 9]
    merged = roles(Labels(data, 2))
    assert merged.subclass.nonzero()[:, 1].tolist() == [2, 3, 4, 5, 6, 7, 8, 9]
    assert merged.subclass.nonzero()[:, 0].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    fine = roles(Labels(data, 4))
    assert torch.equal(fine.subclass[:, 2:], torch.eye(8, dtype=torch.bool))
    assert fine.common[:, 0].tolist() == [True] * 4 + [False] * 4
    for each in (coarse, merged, fine):
        assert not bool((each.common & each.subclass).any())
        assert bool((each.common | each.subclass | each.other).all())
    uneven = MultiView(d=20, patches=8, plus=2, minus=4, feature_patches=2)
    found = roles(Labels(uneven, 2))
    assert found.subclass.sum(dim=1).tolist() == [1, 1, 2, 2]


def test_labels_agree_with_the_roles() -> None:
    data = MultiView(d=20, patches=8, plus=4, minus=4, feature_patches=2)
    subclass = torch.arange(8)[None]
    for per_side in (1, 2, 4):
        labels = Labels(data, per_side)
        given = labels.of(subclass, torch.zeros_like(subclass), Draws([0]))[0]
        owner = roles(labels).subclass[:, 2:].int().argmax(dim=0)
        assert torch.equal(owner, given)


def test_means_leave_out_what_is_missing() -> None:
    values = torch.tensor([[[1.0, 5.0], [torch.nan, 3.0]], [[torch.nan, 1.0], [torch.nan, 1.0]]])
    where = torch.tensor([[True, False], [True, True]])
    assert pooled(values, where).tolist() == [2.0, 1.0]
    assert bool(pooled(values, torch.tensor([[True, False], [True, False]]))[1].isnan())


# ---------------------------------------------------------------------------------------- bad input


def test_what_makes_no_sense_is_named() -> None:
    start = network()
    for features in (0, 10):
        with pytest.raises(UsageError, match=rf"features={features}: must be in 1\.\.d=9"):
            detector_sets(start["weights"], start["bias"], features, 0.0, 0.0)
    with pytest.raises(UsageError, match="d=2: must be at least 3"):
        detector_sets(start["weights"][..., :2], start["bias"], 2, 0.0, 0.0)
    data = MultiView(d=20, patches=8, plus=4, minus=4, feature_patches=2)
    with pytest.raises(UsageError, match="per_side=8: finer than subclasses"):
        roles(Labels(data, 8))
