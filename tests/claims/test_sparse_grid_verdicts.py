"""Verdicts on the tables of noise (S9, S10) of made-up results come out as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sparse_results import made

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

SEEDS = 6
NOISE = (0.0, 0.2, 0.5, 5.0, 8.0)
GRID: dict[str, Any] = {"noise": NOISE, "test_noise": NOISE, "keep": (1.0, 0.8, 0.3, 0.1)}
CIFAR: Any = get_study("sparse-cifar100-noise").at(
    "paper", **GRID, update=("project",), seeds=SEEDS
)
VIT: Any = get_study("sparse-vit-mnist").at("paper", **GRID, update=("project",), seeds=SEEDS)
WHERE = "noise in training and test, "


def verdict(found: list[Verdict], *words: str) -> Verdict:
    (one,) = [each for each in found if all(word in each.setting for word in words)]
    return one


# ----------------------------------------------------------------------------------------------- S9


def published_like(noise: float, test_noise: float, keep: float) -> float:
    level = max(noise, test_noise)
    if keep < 0.2:
        return 1.0 if level == 5 else -2.0 if level > 5 else -0.5
    return 1.0 if level <= 0.5 else 0.0


def test_the_published_table_would_hold_and_the_text_against_it_as_well() -> None:
    found = CIFAR.verdicts(made(CIFAR, published_like), "paper")
    judged = [each for each in found if each.claim == "S9"]
    assert len(judged) == 4 * (2 * 2 + 2) and {each.outcome for each in judged} == {"holds"}
    assert {each.n for each in judged} == {SEEDS}
    assert "contradicts itself" in verdict(found, WHERE, "loses at extreme").note
    assert "mean over noise 0, 0.2, 0.5" in verdict(found, WHERE, "keep 0.8 gains at").note
    assert "at noise 5;" in verdict(found, WHERE, "least extreme").note


@pytest.mark.parametrize(
    ("points", "gains", "size"),
    [(3.0, "holds", "fails"), (0.1, "holds", "fails"), (-1.0, "fails", "fails")],
)
def test_a_gain_of_another_size_is_a_gain_but_not_the_claimed_one(
    points: float, gains: str, size: str
) -> None:
    found = CIFAR.verdicts(made(CIFAR, lambda noise, test, keep: points), "paper")
    adapted = "training only, BatchNorm measured without it"
    for place in ("training and test", "training only", adapted, "the test only"):
        assert verdict(found, f"in {place}, keep 0.8 gains at").outcome == gains
        assert verdict(found, f"in {place}, keep 0.8 gains 0.5").outcome == size
    assert verdict(found, WHERE, "loses").outcome == ("holds" if points < 0 else "fails")
    assert verdict(found, WHERE, "least").outcome == ("fails" if points < 0 else "holds")


def test_half_a_point_with_a_wide_interval_decides_no_size() -> None:
    found = CIFAR.verdicts(made(CIFAR, lambda noise, test, keep: 0.5, spread=0.2), "paper")
    assert verdict(found, WHERE, "keep 0.8 gains at").outcome == "holds"
    assert verdict(found, WHERE, "keep 0.8 gains 0.5").outcome == "inconclusive"


def test_each_place_is_judged_by_its_own_cells() -> None:
    def only_trained(noise: float, test_noise: float, keep: float) -> float:
        return 1.0 if noise > 0 and test_noise == 0 else -1.0

    found = CIFAR.verdicts(made(CIFAR, only_trained), "paper")
    # noise 0 is the same cell in all places: 2 of 3 levels differ
    assert verdict(found, "training only, keep 0.8 gains at").outcome == "holds"
    assert verdict(found, "training and test, keep 0.8 gains at").outcome == "fails"
    assert verdict(found, "the test only, keep 0.8 gains at").outcome == "fails"


def test_levels_that_one_seed_alone_has_do_not_mix_with_the_others() -> None:
    data = made(CIFAR, published_like)
    data["test_accuracy"].loc[{"noise": 0.2, "seed": slice(1, None)}] = np.nan
    found = verdict(CIFAR.verdicts(data, "paper"), WHERE, "keep 0.8 gains at")
    assert (
        found.n == SEEDS and "mean over noise 0, 0.5 (too few seeds at the other 1)" in found.note
    )
    alone = CIFAR.verdicts(data.isel(seed=[0]), "paper")
    judged = [each for each in alone if each.claim == "S9"]
    assert all(each.outcome == "inconclusive" and each.n == 1 for each in judged)


def test_where_dense_guesses_there_is_nothing_to_lose() -> None:
    data = made(CIFAR, lambda noise, test, keep: -1.0)
    extreme = data["test_accuracy"].sel(test_noise=[5.0, 8.0])
    data["test_accuracy"].loc[{"test_noise": [5.0, 8.0]}] = extreme - 0.79  # of 0.8: 1 in 100
    found = CIFAR.verdicts(data, "paper")
    loses = verdict(found, WHERE, "loses at extreme")
    assert loses.outcome == "inconclusive" and loses.n == SEEDS
    assert "premise not met: at extreme noise the dense network is not" in loses.note
    assert verdict(found, "training only, keep", "loses at extreme").outcome == "holds"
    assert verdict(found, "BatchNorm measured", "loses at extreme").outcome == "holds"
    assert verdict(found, WHERE, "keep 0.8 gains at").outcome == "fails"


def test_what_the_grid_does_not_have_is_undecided() -> None:
    data = made(CIFAR, published_like)
    no_zero = CIFAR.verdicts(data.sel(noise=[0.2, 5.0], test_noise=[0.5, 8.0]), "paper")
    # (what is asked without noise after that of training needs no zero in the grid)
    others = [each for each in no_zero if "BatchNorm measured" not in each.setting]
    assert all(each.outcome == "inconclusive" and each.n == 0 for each in others)
    assert len({each.identity for each in no_zero}) == 4 * 6 + 2
    assert len(no_zero) - len(others) == 6
    older = CIFAR.verdicts(data.drop_vars("clean_accuracy"), "paper")
    adapted = [each for each in older if "BatchNorm measured" in each.setting]
    assert not adapted
    moderate = CIFAR.verdicts(data.sel(noise=[0.0], test_noise=[0.0]), "paper")
    assert verdict(moderate, WHERE, "loses").note.startswith("no extreme noise level")
    assert verdict(moderate, WHERE, "keep 0.3 gains at").outcome == "holds"
    light = CIFAR.verdicts(data.sel(keep=[1.0, 0.8]), "paper")
    assert "no keep below 0.2" in verdict(light, WHERE, "aggressive pruning loses").note
    assert {each.claim for each in CIFAR.verdicts(data.sel(keep=[1.0]), "paper")} == {"S9", "S12"}


def test_a_network_without_batchnorm_has_no_reading_of_its_own_for_it() -> None:
    data = made(VIT, published_like, adapted=lambda noise, keep: 0.0)
    assert not [each for each in VIT.verdicts(data, "paper") if "BatchNorm" in each.setting]


def test_a_grid_that_leaves_extreme_noise_out_is_asked_for_the_cost_of_few_weights() -> None:
    study = CIFAR.at("rules")
    for cost, outcome in ((-0.2, "holds"), (-5.0, "fails")):
        judged = study.verdicts(made(study, lambda noise, test, keep, cost=cost: cost), "rules")
        assert {each.outcome for each in judged} == {outcome}
        assert len(judged) == len(study.update) * 4
        assert all("costs under a point" in each.setting for each in judged)


@pytest.mark.parametrize("study", [CIFAR, VIT])
def test_two_seeds_decide_nothing_of_a_table(study: Any) -> None:
    data = made(study, lambda noise, test, keep: -1.0, spread=0.0)
    judged = [each for each in study.verdicts(data.isel(seed=[0, 1]), "paper") if each.n]
    judged = [each for each in judged if each.claim in ("S9", "S10")]
    assert judged and {each.outcome for each in judged} == {"inconclusive"}
    assert {each.n for each in judged} == {2}
    assert any("fewer than 3 seeds have no interval" in each.note for each in judged)


def test_the_spread_of_a_table_is_at_least_that_of_all_its_keeps() -> None:
    data = made(CIFAR, lambda noise, test, keep: 0.3, spread=0.0)
    assert verdict(CIFAR.verdicts(data, "paper"), WHERE, "keep 0.8 gains at").outcome == "holds"
    luck = xr.DataArray(np.linspace(-0.02, 0.02, SEEDS), dims="seed")
    data["test_accuracy"] = data["test_accuracy"] + luck * (data["keep"] == 0.3)
    found = verdict(CIFAR.verdicts(data, "paper"), WHERE, "keep 0.8 gains at")
    assert found.outcome == "inconclusive" and found.n == SEEDS


# ---------------------------------------------------------------------------------------------- S10


def test_the_table_of_the_transformer_would_hold() -> None:
    def gain(noise: float, test_noise: float, keep: float) -> float:
        return 0.05 if keep > 0.2 else -6.0 if max(noise, test_noise) > 1 else -1.0

    found = VIT.verdicts(made(VIT, gain), "paper")
    judged = [each for each in found if each.claim == "S10"]
    assert len(judged) == 4 * (2 + 3) and {each.outcome for each in judged} == {"holds"}


@pytest.mark.parametrize(
    ("points", "neutral", "improves"),
    [(-0.05, "holds", "fails"), (-0.5, "fails", "fails"), (0.2, "holds", "holds")],
)
def test_a_loss_under_a_tenth_is_neutral_but_no_improvement(
    points: float, neutral: str, improves: str
) -> None:
    found = VIT.verdicts(made(VIT, lambda noise, test, keep: points), "paper")
    assert verdict(found, WHERE, "costs under").outcome == neutral
    assert verdict(found, WHERE, "improves").outcome == improves
    for band in ("moderate", "extreme"):
        loses = verdict(found, WHERE, f"keep 0.1 loses at {band}")
        assert loses.outcome == ("holds" if points < 0 else "fails")
    assert verdict(found, WHERE, "loses more").outcome == "inconclusive"


def test_losing_less_at_extreme_noise_fails_and_spread_decides_nothing() -> None:
    less = VIT.verdicts(made(VIT, lambda noise, test, keep: -3 / (1 + noise)), "paper")
    assert verdict(less, WHERE, "loses more").outcome == "fails"
    wide = VIT.verdicts(made(VIT, spread=1.0), "paper")
    assert verdict(wide, WHERE, "costs under").outcome == "inconclusive"
    assert verdict(wide, WHERE, "improves").outcome == "inconclusive"
