"""The data model of 004 (Def. 4.1-4.4, App. B.1): what every sample holds, counts against their
law, and cells that draw the same alone and in a batch."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.multi_view import MINUS, PLUS, MultiView, MultiViewSamples

SMALL: dict[str, Any] = {"d": 16, "patches": 12, "plus": 3, "minus": 3, "feature_patches": 2}


def draws(runs: int = 4, first: int = 0) -> Draws:
    return Draws(range(first, first + runs), dtype=torch.float64)


models = st.builds(
    MultiView,
    d=st.integers(16, 24),
    patches=st.integers(10, 14),
    plus=st.integers(1, 4),
    minus=st.integers(1, 4),
    feature_patches=st.integers(1, 4),
    spread=st.floats(0, 0.5),
    sigma=st.just(0.0),
    distractors=st.integers(0, 3),
    distraction=st.just((0.2, 0.4)),
    strong=st.just(0.0),
    counts=st.sampled_from(("fixed", "drawn")),
)


def held(model: MultiView, hard: bool, runs: int = 3) -> tuple[MultiViewSamples, Tensor, Tensor]:
    """Samples of every subclass; their sides; the coordinate and strength of each patch."""
    subclass = torch.arange(model.subclasses).repeat(2)[None]
    views = model.sample(draws(runs), subclass, hard)
    assert views.subclass.shape == (runs, 2 * model.subclasses)
    side = (views.subclass >= model.plus).long()[:, :, None]
    return views, side, views.patches.sum(dim=3)


@given(models)
def test_easy_samples_hold_their_own_two_features(model: MultiView) -> None:
    """Without noise every patch is one feature, of its own side or subclass, or nothing."""
    views, side, strength = held(model, hard=False)
    own = 2 + views.subclass[:, :, None]
    there = views.feature >= 0
    assert bool(((views.feature == side) | (views.feature == own))[there].all())
    assert bool((strength[~there] == 0).all())
    low, high = math.sqrt(1 - model.spread), math.sqrt(1 + model.spread)
    assert bool(((strength >= low - 1e-7) & (strength <= high + 1e-7))[there].all())
    at = views.patches.gather(3, views.feature.clamp(min=0)[..., None])[..., 0]
    torch.testing.assert_close(at, strength)  # nothing elsewhere
    if model.counts == "fixed":
        for feature in (side, own):
            count = (views.feature == feature).sum(dim=2)
            assert bool((count == model.feature_patches).all())


@given(models)
def test_hard_samples_have_no_common_patch_but_weak_ones_of_the_other_side(
    model: MultiView,
) -> None:
    views, side, strength = held(model, hard=True)
    own = 2 + views.subclass[:, :, None]
    assert not bool((views.feature == side).any())
    there = views.feature >= 0
    other = views.feature == 1 - side
    assert bool((other | (views.feature == own))[there].all())
    low, high = model.distraction
    assert bool(((strength >= low - 1e-7) & (strength <= high + 1e-7))[other].all())
    if model.counts == "fixed":
        assert bool((other.sum(dim=2) == model.distractors).all())
        assert bool(((views.feature == own).sum(dim=2) == model.feature_patches).all())


@given(models, st.booleans())
@settings(max_examples=30, deadline=None)
def test_samples_have_all_their_patches(model: MultiView, hard: bool) -> None:
    views, _, _ = held(model, hard)
    assert views.patches.shape[2] + views.rest == model.patches
    runs, n = views.subclass.shape
    assert views.noise().shape == (runs, n, views.rest, model.d)
    assert views.patches.shape == (runs, n, model.patches - views.rest, model.d)
    assert views.feature.shape == views.patches.shape[:3]


def test_noise_has_the_std_it_should_and_one_patch_of_a_hard_sample_is_strong() -> None:
    model = MultiView(**{**SMALL, "d": 200}, sigma=0.1, strong=0.7, distractors=1)
    subclass = torch.zeros(1, 50, dtype=torch.int64)
    easy = model.sample(draws(), subclass)
    assert easy.sigma == 0.1
    noise = easy.noise()
    assert abs(float(noise.std()) / 0.1 - 1) < 0.02
    rest = easy.patches[..., 2 + 6 :]  # coordinates without features
    assert abs(float(rest.std()) / 0.1 - 1) < 0.02
    hard = model.sample(draws(), subclass, hard=True)
    stds = hard.patches[..., 2 + 6 :].std(dim=3)
    assert bool(((stds > 0.4).sum(dim=2) == 1).all())
    strong = hard.patches[..., 2 + 6 :][stds > 0.4]
    assert abs(float(strong.std()) / 0.7 - 1) < 0.02
    assert bool((hard.feature[stds > 0.4] == -1).all())


def test_strong_noise_stays_where_there_is_no_other() -> None:
    model = MultiView(**SMALL, sigma=0.0, strong=0.5)
    hard = model.sample(draws(), torch.zeros(1, 3, dtype=torch.int64), hard=True)
    assert bool(((hard.patches[..., 8:] != 0).any(dim=3).sum(dim=2) == 1).all())


def test_drawn_counts_follow_their_binomial_laws() -> None:
    """App. B.1: common with s*/P each; of the others, the subclass's with s*/(P - |common|)."""
    model = MultiView(**SMALL, counts="drawn")
    n, p, s = 4000, model.patches, model.feature_patches
    views = model.sample(draws(8), torch.zeros(1, n, dtype=torch.int64))
    common = (views.feature == PLUS).sum(dim=2).flatten().double()
    own = (views.feature == 2).sum(dim=2).flatten().double()
    total = len(common)
    chance = s / p
    _near(common.mean(), s, common.std() / math.sqrt(total))
    _near(common.var(), p * chance * (1 - chance), 2 * common.var() / math.sqrt(total))
    # given the others, |own| is binomial(P - |common|, s*/(P - |common|)): mean s*, always
    for count in (1, 2, 4):
        here = own[common == count]
        left = p - count
        _near(here.mean(), s, here.std() / math.sqrt(len(here)))
        law = s * (1 - s / left)
        _near(here.var(), law, 2 * here.var() / math.sqrt(len(here)))
    for count in range(5):
        share = (common == count).double()
        law = math.comb(p, count) * chance**count * (1 - chance) ** (p - count)
        _near(share.mean(), law, share.std() / math.sqrt(total))


def test_drawn_distractors_follow_their_law_and_leave_one_strong_patch() -> None:
    model = MultiView(**SMALL, counts="drawn", distractors=2, strong=5.0, sigma=0.001)
    views = model.sample(draws(8), torch.full((1, 2000), 4), hard=True)  # of side -
    weak = (views.feature == PLUS).sum(dim=2).flatten().double()
    _near(weak.mean(), 2, weak.std() / math.sqrt(len(weak)))
    assert not bool((views.feature == MINUS).any())
    strong = (views.patches.std(dim=3) > 1).sum(dim=2)
    assert bool((strong <= 1).all()) and float(strong.double().mean()) > 0.999


def _near(found: Tensor, expected: float, error: Tensor) -> None:
    assert abs(float(found) - expected) < 5 * float(error)


# --------------------------------------------------------------------------------- order of drawing


@pytest.mark.parametrize("counts", ["fixed", "drawn"])
@pytest.mark.parametrize("hard", [False, True])
def test_a_cell_alone_draws_the_same_bits_as_in_a_batch(counts: str, hard: bool) -> None:
    model = MultiView(**SMALL, counts=counts, spread=0.2)
    subclass = model.balanced(12)[None]
    together = model.sample(draws(5), subclass, hard, step=3)
    for run in (0, 4):
        alone = model.sample(draws(1, first=run), subclass, hard, step=3)
        for name in ("subclass", "patches", "feature"):
            assert torch.equal(getattr(alone, name)[0], getattr(together, name)[run]), name
        assert torch.equal(alone.noise()[0], together.noise()[run])


def test_samples_are_fresh_at_every_step_and_in_every_stream() -> None:
    model = MultiView(**SMALL)
    subclass = model.balanced(6)[None]
    first = model.sample(draws(), subclass, step=0)
    assert torch.equal(first.patches, model.sample(draws(), subclass, step=0).patches)
    assert torch.equal(first.noise(), first.noise())
    for other in (
        model.sample(draws(), subclass, step=1),
        model.sample(draws(), subclass, stream="test"),
    ):
        assert not bool((first.patches == other.patches).any())
        assert not bool((first.noise() == other.noise()).any())


# ------------------------------------------------------------------------------------------ batches


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_a_balanced_batch_has_every_subclass_equally_often(
    plus: int, minus: int, times: int
) -> None:
    model = MultiView(d=16, patches=8, plus=plus, minus=minus, feature_patches=1)
    count = 2 * math.lcm(plus, minus) * times
    subclass = model.balanced(count)
    assert len(subclass) == count
    assert int((model.superclass(subclass) == PLUS).sum()) == count // 2
    for each in range(plus):
        assert int((subclass == each).sum()) == count // (2 * plus)
    for each in range(minus):
        assert int((subclass == plus + each).sum()) == count // (2 * minus)


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"plus": 0}, "plus=0: must be at least 1"),
        ({"minus": 0}, "minus=0: must be at least 1"),
        ({"feature_patches": 0}, "feature_patches=0: must be at least 1"),
        ({"d": 7}, r"d=7: must be at least 2 \+ k_\+ \+ k_- = 8: features are orthogonal"),
        ({"feature_patches": 7}, "feature_patches=7: its samples need 14 patches, there are 12"),
        ({"distractors": 10}, "feature_patches=2: its samples need 13 patches, there are 12"),
        ({"spread": 1.0}, r"spread=1.0: must be in \[0, 1\)"),
        ({"spread": -0.1}, r"spread=-0.1: must be in \[0, 1\)"),
        ({"sigma": -1.0}, "sigma=-1.0: must be finite and at least 0"),
        ({"sigma": math.inf}, "sigma=inf: must be finite and at least 0"),
        ({"strong": math.nan}, "strong=nan: must be finite and at least 0"),
        ({"distraction": (0.5, 0.2)}, r"distraction=\(0.5, 0.2\): must be two rising finite"),
        ({"distraction": (-0.1, 0.2)}, r"distraction=\(-0.1, 0.2\): must be two rising finite"),
        ({"distractors": -1}, "distractors=-1: must be at least 0"),
        ({"counts": "many"}, "counts='many': must be one of fixed, drawn"),
    ],
)
def test_a_model_that_makes_no_sense_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        MultiView(**{**SMALL, **wrong})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [0, 3, 8, 16])
def test_a_batch_that_does_not_divide_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match=f"batch={count}: must be a multiple of 2 k = 6"):
        MultiView(**SMALL).balanced(count)
