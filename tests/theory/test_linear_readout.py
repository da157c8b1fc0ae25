"""The best linear readout of multi-view samples: closed form against samples, and its optimum."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws, key
from rarefy.data.multi_view import MultiView
from rarefy.theory.linear_readout import LinearReadout

NOISY = LinearReadout(
    subclasses=4,
    patches=40,
    feature_patches=3,
    sigma=0.25,
    spread=0.3,
    distractors=2,
    distraction=0.3,
    strong=0.6,
)


@cache
def sums(readout: LinearReadout, hard: bool, each: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Parts along all features of samples drawn from the data model, added up over patches, (n,
    feature), and the samples' sides."""
    k = readout.subclasses
    data = MultiView(
        d=2 + 2 * k,
        patches=readout.patches,
        plus=k,
        minus=k,
        feature_patches=readout.feature_patches,
        spread=readout.spread,
        sigma=readout.sigma,
        distractors=readout.distractors,
        distraction=(readout.distraction, readout.distraction),
        strong=readout.strong,
    )
    draws = Draws([key("linear readout", hard)])
    subclass = torch.arange(2 * k).repeat_interleave(each)
    views = data.sample(draws, subclass[None], hard)
    added = views.patches.sum(dim=2) + views.noise().sum(dim=2)
    return added[0], data.superclass(subclass)


def share_wrong(readout: LinearReadout, weight: float, hard: bool) -> float:
    added, side = sums(readout, hard)
    k = readout.subclasses
    plus = added[:, 0] + weight * added[:, 2 : 2 + k].sum(dim=1)
    minus = added[:, 1] + weight * added[:, 2 + k :].sum(dim=1)
    right = torch.where(side == 0, plus - minus, minus - plus) > 0
    return float((~right).double().mean())


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("hard", [False, True])
def test_the_closed_form_is_what_samples_give(weight: float, hard: bool) -> None:
    predicted = NOISY.hard_error(weight) if hard else NOISY.easy_error(weight)
    found = share_wrong(NOISY, weight, hard)
    assert found == pytest.approx(predicted, abs=5 * math.sqrt(predicted / 32000))


def test_a_readout_by_maxima_can_do_better_on_easy_samples() -> None:
    """So the closed form is no floor for a network with several outputs per side."""
    readout = replace(NOISY, spread=0.0)
    added, side = sums(readout, False)
    k = readout.subclasses
    plus = added[:, 0] + added[:, 2 : 2 + k].amax(dim=1)
    minus = added[:, 1] + added[:, 2 + k :].amax(dim=1)
    wrong = float((torch.where(side == 0, plus - minus, minus - plus) <= 0).double().mean())
    assert readout.easy_error() / 2 < wrong < readout.easy_error()


def test_the_printed_formula() -> None:
    """s* = 3, k = 8, P = 100, sigma = 0.2: the paper scale's noisy world, all strengths 1."""
    readout = LinearReadout(subclasses=8, patches=100, feature_patches=3, sigma=0.2)
    expected = 0.5 * math.erfc(3 * math.sqrt(1 + 1 / 8) / (0.2 * math.sqrt(200)) / math.sqrt(2))
    assert readout.easy_error() == pytest.approx(expected)
    assert expected == pytest.approx(0.130, abs=0.0005)


@given(
    k=st.integers(1, 20),
    patches=st.integers(8, 200),
    sigma=st.floats(0.05, 1.0),
    weight=st.floats(0.0, 10.0),
)
def test_no_other_weight_is_better(k: int, patches: int, sigma: float, weight: float) -> None:
    readout = LinearReadout(
        subclasses=k,
        patches=patches,
        feature_patches=3,
        sigma=sigma,
        distractors=2,
        distraction=0.3,
        strong=0.3,
    )
    assert readout.easy_error() <= readout.easy_error(weight) + 1e-15
    assert readout.hard_floor <= readout.hard_error(weight) + 1e-15
    assert readout.hard_error(1e7) == pytest.approx(readout.hard_floor, rel=1e-4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": 0}, "subclasses=0: must be at least 1"),
        ({"patches": 0}, "patches=0: must be at least 1"),
        ({"feature_patches": 0}, "feature_patches=0: must be at least 1"),
        ({"sigma": 0.0}, "sigma=0.0: must be positive and finite"),
        ({"spread": 1.0}, "spread=1.0: must be in"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        replace(NOISY, **wrong)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(UsageError, match="weight=-1: must be finite and at least 0"):
        NOISY.easy_error(-1)
