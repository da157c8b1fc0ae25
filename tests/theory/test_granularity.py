"""Formulas of 004: exact Gaussian probability against drawing, rates against the update itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view import MultiView
from rarefy.theory.conditions import worst
from rarefy.theory.granularity import (
    FINE_COMMON,
    LEAST_RESIDUAL,
    InitialSets,
    coarse_common_order,
    first_rates,
    initial_response,
    initial_sets,
    initial_share,
    margins,
    mean_strength,
    phase_1_steps,
)
from rarefy.theory.granularity_conditions import parameter_choices, smallest_log_dimension
from rarefy.train.multi_view_classifier import MultiViewBatch, MultiViewClassifier

D, C_B = 12, 0.9
DRAWN = np.random.default_rng(1).standard_normal((200_000, D))
LEVEL = C_B * math.sqrt(math.log(D))


def near(found: float, share: np.ndarray) -> None:
    """Within five standard errors of what was drawn."""
    error = share.std() / math.sqrt(len(share))
    assert abs(found - share.mean()) < 5 * error + 1e-12


# --------------------------------------------------------------------------------- initial geometry


@pytest.mark.parametrize(("spread", "noise"), [(0.0, 0.0), (0.1, 0.2)])
def test_chances_of_a_neuron_are_those_of_drawn_ones(spread: float, noise: float) -> None:
    log = math.log(D)
    low = (C_B * math.sqrt(log - log**-5) - noise) / math.sqrt(1 + spread)
    high = (C_B * math.sqrt(log + log**-5) + noise) / math.sqrt(1 - spread)
    assert margins(D, C_B, spread, noise) == (low, high)
    sets = initial_sets(D, 30, C_B, spread, noise)
    near(sets.sure, DRAWN[:, 0] >= high)
    near(sets.possible, DRAWN[:, 3] >= low)
    others = (DRAWN[:, 1:] >= low).sum(axis=1)
    near(sets.detector, (DRAWN[:, 0] >= high) & (others == 0))
    some = (DRAWN[:, 1:5] >= low).sum(axis=1)
    near(sets.detector_among(5), (DRAWN[:, 0] >= high) & (some == 0))
    near(sets.words, (DRAWN >= low).sum(axis=1))


def test_sizes_of_sets_are_binomial() -> None:
    """Prop. 1 and 2: networks of 50 neurons."""
    low, high = margins(D, C_B)
    networks = DRAWN.reshape(-1, 50, D)
    sets = initial_sets(D, 50, C_B)
    able = networks >= low
    detector = (networks[:, :, 0] >= high) & (able.sum(axis=2) == 1)
    near(sets.detectors, detector.sum(axis=1))
    near(sets.able, able[:, :, 0].sum(axis=1))
    near(sets.none(), ~detector.any(axis=1))
    alone = (networks[:, :, 0] >= high) & (able[:, :, :5].sum(axis=2) == 1)
    near(sets.none(5), ~alone.any(axis=1))


@pytest.mark.parametrize("strength", [1.0, 0.8])
def test_initial_response_is_that_of_drawn_neurons(strength: float) -> None:
    answer = np.maximum(strength * DRAWN[:, 0] - LEVEL, 0)
    near(initial_response(D, 1, C_B, strength), answer)
    assert math.isclose(initial_response(D, 7, C_B), 7 * initial_response(D, 1, C_B))
    far = answer * (DRAWN[:, 0] >= 2.0)
    near(initial_response(D, 1, C_B, strength, reach=2.0), far)


@pytest.mark.parametrize("words", [None, 6])
def test_share_of_detectors_at_the_start(words: int | None) -> None:
    low, high = margins(D, C_B, 0.1, 0.1)
    answer = np.maximum(DRAWN[:, 0] - LEVEL, 0)
    others = (DRAWN[:, 1 : words or D] >= low).any(axis=1)
    part = answer * ((DRAWN[:, 0] >= high) & ~others)
    exact = initial_share(D, C_B, words, 0.1, 0.1)
    near(0.0, part - exact * answer)
    assert 0.05 < exact < 0.9


def test_the_printed_intervals_hold_half_of_each_tail() -> None:
    """(19)-(21) bound half of a Gaussian tail: the exact chance is above them."""
    for d in (100, 10**6):
        reach = margins(d, 2.05)[1]
        upper = math.exp(-(reach**2) / 2) / (2 * math.sqrt(2 * math.pi) * reach)
        exact = initial_sets(d, 1, 2.05).sure
        assert upper < exact < 2 * upper
        lower = upper * reach**2 / (reach**2 + 1)
        assert 2 * lower < exact


def test_sets_of_the_paper_have_the_size_it_says() -> None:
    """|S*| sqrt(log d)/d^c_0 tends to a constant if c_b and m are those of App. C and G."""
    c_0 = 0.05
    for power in (2, 1):
        scaled = []
        for d in (10**3, 10**5, 10**7):
            m = round(d ** (power + 2 * c_0))
            sets = initial_sets(d, m, math.sqrt(2 * power + 2 * c_0))
            scaled.append(sets.detectors * math.sqrt(math.log(d)) / d**c_0)
        assert max(scaled) / min(scaled) < 1.5


# ------------------------------------------------------------------------------------ phase 1 rates


@pytest.mark.parametrize("per_side", [1, 2, 4, 8])
def test_rates_are_those_of_the_update(per_side: int) -> None:
    """One detector a feature in every output, no noise: the update moves it by what is said."""
    k, s, patches, n = 4, 2, 10, 32
    data = MultiView(d=12, patches=patches, plus=k, minus=k, feature_patches=s, sigma=0.0)
    labels = Labels(data, per_side)
    draws = Draws([0], dtype=torch.float64)
    subclass = torch.arange(2 * k).repeat_interleave(n // (2 * k))[None]
    number = torch.arange(n // (2 * k)).repeat(2 * k)[None]
    label = labels.of(subclass, number, draws)
    target = torch.nn.functional.one_hot(label, labels.outputs).transpose(1, 2).double()
    views = data.sample(draws, subclass)
    features = 2 + 2 * k
    weights = torch.zeros(1, labels.outputs, features, data.d, dtype=torch.float64)
    weights[0, :, torch.arange(features), torch.arange(features)] = 1e-9
    bias = torch.full_like(weights[..., 0], -1e-10)
    problem = MultiViewClassifier(patches)
    _, found = problem.gradients({"weights": weights, "bias": bias}, MultiViewBatch(views, target))
    moved = -0.5 * torch.diagonal(found["weights"][0, :, :, :features], dim1=1, dim2=2)
    rates = first_rates(
        lr=0.5, feature_patches=s, patches=patches, plus=k, minus=k, per_side=per_side
    )
    assert np.allclose(moved[:per_side, 0], rates.common)
    assert np.isclose(moved[0, 2], rates.subclass)  # the first label has the first subclass
    # what others have is pushed away: the other side's common feature and its last subclass
    assert (moved[:per_side, 1] < 0).all() and moved[0, 2 + 2 * k - 1] < 0
    assert np.allclose(moved[per_side:, 1], rates.common)


def test_rates_are_the_printed_ones() -> None:
    for k in (1, 4, 9):
        setting = {"lr": 0.3, "feature_patches": 3, "patches": 20, "plus": k, "minus": k}
        coarse = first_rates(**setting, per_side=1)  # type: ignore[arg-type]
        assert math.isclose(coarse.common, 0.3 * 3 / (4 * 20))  # (33)
        assert math.isclose(coarse.subclass, coarse.common / k)  # (35)
        assert math.isclose(coarse.ratio, k)
        fine = first_rates(**setting, per_side=k)  # type: ignore[arg-type]
        unit = 0.3 * 3 / (2 * k * 20)
        assert math.isclose(fine.subclass, unit * (1 - 1 / (2 * k)))  # (205)
        assert FINE_COMMON[0] <= fine.common / unit <= FINE_COMMON[1]  # (202)
        assert math.isclose(fine.ratio, k / (2 * k - 1))
    own = 1.5 / (1.5 + 1)  # logit of the own side at a score of log(3/2), the other's being 0
    assert math.isclose(LEAST_RESIDUAL, (1 - own) / (1 / 2))


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_mean_strength_is_that_of_drawn_patches(spread: float) -> None:
    data = MultiView(d=4, patches=4, plus=1, minus=1, feature_patches=1, spread=spread, sigma=0.0)
    views = data.sample(Draws(range(2000), dtype=torch.float64), torch.tensor([[0, 1]]))
    near(mean_strength(spread), views.patches.sum(dim=3).flatten().numpy())


def test_steps_of_phase_1_are_counted_by_the_rates() -> None:
    rates = first_rates(lr=1.0, feature_patches=3, patches=24, plus=4, minus=4, per_side=4)
    steps = phase_1_steps(rates, detectors=5, feature_patches=3)
    assert math.isclose(steps * 3 * 5 * (rates.common + rates.subclass), math.log(1.5))


# ---------------------------------------------------------------------------------- final responses


def test_orders_of_final_responses() -> None:
    assert coarse_common_order(100) == math.log(100)


# --------------------------------------------------------------------------------------- conditions

SETTING = {
    "d": 100,
    "subclasses": 8,
    "patches": 24,
    "feature_patches": 3,
    "spread": 0.1,
    "sigma": 0.02,
    "distractors": 2,
    "distraction": (0.3, 0.4),
    "strong": 0.3,
    "neurons": 100,
    "threshold": 1.0,
    "sigma_0": 0.01,
    "lr": 1.0,
    "batch": 64,
}


@pytest.mark.parametrize("labels", ["coarse", "fine"])
def test_a_finite_setting_is_far_from_the_parameter_choices(labels: str) -> None:
    found = parameter_choices(labels=labels, **SETTING)  # type: ignore[arg-type]
    assert not all(condition.holds for condition in found)
    assert worst(found).name == "s*"  # 3 patches in place of log^15 d
    assert math.isclose(worst(found).ratio, math.log(100) ** 15 / 3)
    by_name = {each.formula.split(":")[0] + " " + each.name: each for each in found}
    assert math.isclose(by_name["8 s_dagger iota_upper"].value, 0.8)
    width = [each for each in found if each.name == "m"][0]
    assert math.isclose(width.limit, 100**2 if labels == "coarse" else 100)
    lowest = [each for each in found if each.name == "c_b"][0]
    assert math.isclose(lowest.limit, 2 if labels == "coarse" else math.sqrt(2))


def test_no_d_below_123_digits_leaves_room_for_the_subclasses() -> None:
    log = smallest_log_dimension()
    assert 281 < log < 283
    assert math.isclose(0.4 * log, 20 * math.log(log))
    k = math.exp(0.4 * log)
    assert math.isclose(k, log**15 * log**5, rel_tol=1e-6)


# ---------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: margins(2, 1.0), "d=2: must be at least 3"),
        (lambda: margins(9, 0.0), "threshold=0.0: must be positive and finite"),
        (lambda: margins(9, 1.0, spread=1.0), r"spread=1.0: must be in \[0, 1\)"),
        (lambda: initial_sets(9, 0, 1.0), "neurons=0: must be at least 1"),
        (lambda: _rates(plus=0), "plus=0: must be at least 1"),
        (lambda: _rates(minus=0), "minus=0: must be at least 1"),
        (lambda: _rates(per_side=0), "per_side=0: must be at least 1"),
        (lambda: _rates(per_side=3), "per_side=3: must divide k=4 or be a multiple of it"),
        (
            lambda: parameter_choices(labels="medium", **SETTING),  # type: ignore[arg-type]
            "labels='medium': must be one of coarse, fine",
        ),
        (
            lambda: parameter_choices(labels="fine", **{**SETTING, "d": 2}),  # type: ignore[arg-type]
            "d=2: must be at least 3",
        ),
    ],
)
def test_what_makes_no_sense_is_named(call: object, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)


def _rates(plus: int = 4, minus: int = 4, per_side: int = 4) -> object:
    return first_rates(
        lr=1.0, feature_patches=3, patches=24, plus=plus, minus=minus, per_side=per_side
    )


def test_sets_can_be_made_by_hand() -> None:
    assert InitialSets(10, 5, 0.1, 0.2).detector == 0.1 * 0.8**9
