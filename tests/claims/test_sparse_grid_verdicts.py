"""Verdicts on the tables of noise (S9, S10) of made-up results come out as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparse_results import made

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

SEEDS = 6
NOISE = (0.0, 0.2, 0.5, 5.0, 8.0)
GRID: dict[str, Any] = {"noise": NOISE, "test_noise": NOISE, "keep": (1.0, 0.8, 0.5, 0.1)}
CIFAR: Any = get_study("sparse-cifar100-noise").at("paper", **GRID, seeds=SEEDS)
VIT: Any = get_study("sparse-vit-mnist").at("paper", **GRID, seeds=SEEDS)
WHERE = "noise in training and test, "


def overfit(keep: float) -> float:
    return 99.9 if keep == 1 else 95.0


def by_claim(found: list[Verdict]) -> dict[str, Verdict]:
    return {each.claim: each for each in found if each.role == "primary"}


def verdict(found: list[Verdict], *words: str) -> Verdict:
    (one,) = [each for each in found if all(word in each.setting for word in words)]
    return one


# ----------------------------------------------------------------------------------------------- S9


def published_like(noise: float, test_noise: float, keep: float) -> float:
    level = max(noise, test_noise)
    if keep < 0.2:
        return -2.0 if level >= 5 else -0.5
    return 1.0 if level <= 0.5 else 0.0


def test_what_the_text_says_would_hold_in_every_place() -> None:
    found = CIFAR.verdicts(made(CIFAR, published_like, train=overfit), "paper")
    assert [each.claim for each in found] == ["S9.1", "S9.2", "S9.3", *["S9"] * 6]
    assert {each.outcome for each in found} == {"holds"} and {each.n for each in found} == {SEEDS}
    first, _, last = by_claim(found).values()
    assert first.setting == WHERE + "keep 0.8 gains at moderate noise"
    assert "mean over noise 0, 0.2, 0.5; dense" in first.note
    assert first.published == pytest.approx((0.78 + 1.09 + 1.17) / 3, abs=1e-4)
    assert "mean over noise 5, 8" in last.note and last.published is None


def test_a_dense_network_that_does_not_overfit_has_nothing_to_gain_from() -> None:
    found = CIFAR.verdicts(made(CIFAR, published_like, train=lambda keep: 98.9), "paper")
    assert {each.outcome for each in found if "gains" in each.setting} == {"premise-not-met"}
    assert "knows 98.9 % of its training images, not 99 %" in found[0].note
    assert by_claim(found)["S9.3"].outcome == "holds"


def test_one_training_noise_that_does_not_overfit_is_enough() -> None:
    """But what is asked of networks trained without noise does not hang on it."""
    data = made(CIFAR, published_like, train=overfit)
    data["epoch_accuracy"].loc[{"noise": 0.5}] = 0.9
    found = CIFAR.verdicts(data, "paper")
    assert by_claim(found)["S9.1"].outcome == "premise-not-met"
    assert verdict(found, "the test only, keep 0.8").outcome == "holds"
    data["epoch_accuracy"].loc[{"noise": 0.5}] = 0.999
    data["epoch_accuracy"].loc[{"noise": 8.0}] = 0.1  # extreme noise cannot be fitted
    assert by_claim(CIFAR.verdicts(data, "paper"))["S9.1"].outcome == "holds"


def test_each_place_is_judged_by_its_own_cells() -> None:
    def only_trained(noise: float, test_noise: float, keep: float) -> float:
        return 1.0 if noise > 0 and test_noise == 0 else -1.0

    found = CIFAR.verdicts(made(CIFAR, only_trained, train=overfit), "paper")
    # noise 0 is the same cell in all places: 2 of 3 levels differ
    assert verdict(found, "training only, keep 0.8 gains").outcome == "holds"
    assert verdict(found, "training and test, keep 0.8 gains").outcome == "fails"
    assert verdict(found, "the test only, keep 0.8 gains").outcome == "fails"


def test_other_readings_are_robustness() -> None:
    for other in ({"noise_resampling": ("once",)}, {"update": ("dense",)}):
        study = CIFAR.at("paper", **GRID, seeds=SEEDS, **other)
        found = study.verdicts(made(study, published_like, train=overfit), "paper")
        assert {each.claim for each in found} == {"S9"}


def test_a_seed_that_lacks_a_level_is_left_out() -> None:
    data = made(CIFAR, published_like, train=overfit)
    data["test_accuracy"].loc[{"noise": 0.2, "seed": 1}] = np.nan
    found = by_claim(CIFAR.verdicts(data, "paper"))
    assert found["S9.1"].n == SEEDS - 1 and found["S9.3"].n == SEEDS


def test_where_dense_guesses_there_is_nothing_to_lose() -> None:
    data = made(CIFAR, lambda noise, test, keep: -1.0, train=overfit)
    extreme = data["test_accuracy"].sel(test_noise=[5.0, 8.0])
    data["test_accuracy"].loc[{"test_noise": [5.0, 8.0]}] = extreme - 0.79  # of 0.8: 1 in 100
    found = CIFAR.verdicts(data, "paper")
    loses = by_claim(found)["S9.3"]
    assert loses.outcome == "premise-not-met" and loses.n == SEEDS
    assert "at extreme noise the dense network is not certainly better" in loses.note
    assert verdict(found, "training only, keep 0.1").outcome == "holds"


def test_what_the_grid_does_not_have_is_not_asked() -> None:
    data = made(CIFAR, published_like, train=overfit)
    moderate = CIFAR.verdicts(data.sel(noise=[0.0], test_noise=[0.0]), "paper")
    assert [each.claim for each in moderate] == ["S9.1", "S9.2", *["S9"] * 4]
    light = CIFAR.verdicts(data.sel(keep=[1.0, 0.8]), "paper")
    assert [each.claim for each in light] == ["S9.1", "S9", "S9"]
    assert CIFAR.verdicts(data.sel(keep=[1.0]), "paper") == []
    no_zero = CIFAR.verdicts(data.sel(noise=[0.2], test_noise=[0.5]), "paper")
    assert {each.setting.partition(", keep")[0] for each in no_zero} == {"noise in training only"}


def test_the_scales_have_what_their_readings_need() -> None:
    for scale, claims in {"paper": {"S9.1", "S9.2"}, "extreme": {"S9.3"}, "once": set()}.items():
        study = CIFAR.at(scale)
        assert study.seeds >= 5 and study.epochs >= 100 and not (study.shift or study.flip)
        found = study.verdicts(made(study, published_like, train=overfit), scale)
        assert set(by_claim(found)) == claims and {each.outcome for each in found} == {"holds"}


# ---------------------------------------------------------------------------------------------- S10


def test_the_table_of_the_transformer_would_hold() -> None:
    def gain(noise: float, test_noise: float, keep: float) -> float:
        return 0.05 if keep > 0.2 else -6.0 if max(noise, test_noise) > 1 else -1.0

    found = VIT.verdicts(made(VIT, gain), "paper")
    assert len(found) == 3 * 4 and {each.outcome for each in found} == {"holds"}
    assert list(by_claim(found)) == ["S10.1", "S10.2", "S10.3"]
    assert {each.setting.partition(",")[0] for each in by_claim(found).values()} == {
        "noise in training only"
    }
    assert by_claim(found)["S10.2"].published == pytest.approx((-0.97 - 0.91 - 1.58) / 3, abs=1e-4)
    theirs = (-4.80 - 7.82) / 2 - (-0.97 - 0.91 - 1.58) / 3
    assert by_claim(found)["S10.3"].published == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize(
    ("points", "neutral", "improves"),
    [(-0.05, "holds", "fails"), (-0.5, "fails", "fails"), (0.2, "holds", "holds")],
)
def test_a_loss_under_a_tenth_is_neutral_but_no_improvement(
    points: float, neutral: str, improves: str
) -> None:
    found = VIT.verdicts(made(VIT, lambda noise, test, keep: points), "paper")
    assert by_claim(found)["S10.1"].outcome == neutral
    assert verdict(found, "noise in training only", "improves").outcome == improves
    assert by_claim(found)["S10.2"].outcome == ("holds" if points < 0 else "fails")
    assert by_claim(found)["S10.3"].outcome == "inconclusive"


def test_losing_less_at_extreme_noise_fails_and_spread_decides_nothing() -> None:
    less = VIT.verdicts(made(VIT, lambda noise, test, keep: -3 / (1 + noise)), "paper")
    assert by_claim(less)["S10.3"].outcome == "fails"
    wide = VIT.verdicts(made(VIT, spread=1.0), "paper")
    assert by_claim(wide)["S10.1"].outcome == "inconclusive"
