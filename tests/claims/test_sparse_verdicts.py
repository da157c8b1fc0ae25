"""Verdicts on keep curves (S8) and grids of noise, made up, come out as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sparse_results import Luck, lost, made

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

SEEDS = 6
SparseMnist = get_study("sparse-mnist")
MNIST: Any = SparseMnist.at(
    "quick",
    data="mnist",
    noise_resampling=("fresh",),
    keep=(1.0, 0.8, 0.5, 0.3, 0.1, 0.05),
    seeds=SEEDS,
)


def verdict(found: list[Verdict], *words: str) -> Verdict:
    (one,) = [each for each in found if all(word in each.setting for word in words)]
    return one


def primary(data: xr.Dataset) -> Verdict:
    """Of the peak, asked without noise."""
    (one,) = [each for each in MNIST.verdicts(data, "paper") if each.claim == "S8.2"]
    return one


def peaked(noise: float, test_noise: float, keep: float) -> float:
    return {0.8: 0.2, 0.5: 0.5, 0.3: 0.3, 0.1: -0.5, 0.05: -3.0}[keep]


def test_a_peak_in_between_and_rising_training_accuracy_hold() -> None:
    found = MNIST.verdicts(made(MNIST, peaked), "paper")
    assert [each.claim for each in found] == ["S8", "S8.2", "S8"]
    assert all(each.outcome == "holds" and each.n == SEEDS for each in found)
    peak = found[1]
    assert peak.interval is not None and peak.interval[0] < 0.5 < peak.interval[1]
    assert "0.5 (12 times)" in peak.note and "over the smallest keep +3.5" in peak.note  # both ways
    other = get_study("sparse-cifar10").at("quick", keep=MNIST.keep, seeds=SEEDS)
    claims = [each.claim for each in other.verdicts(made(other, peaked), "quick")]
    assert claims == ["S8.1", "S8.3", "S8"]


@pytest.mark.parametrize(
    ("gain", "outcome"), [(-1.0, "fails"), (0.0, "inconclusive"), (0.05, "holds")]
)
def test_a_peak_is_more_than_dense(gain: float, outcome: str) -> None:
    data = made(MNIST, lambda noise, test, keep: gain if keep > 0.05 else -5.0)
    assert primary(data).outcome == outcome


def test_a_peak_is_asked_without_noise_and_with_that_of_training() -> None:
    """Those without are of BatchNorm measured without noise too."""
    shown = MNIST.noise[0]
    assert MNIST.noise == (shown,) and shown in MNIST.test_noise and 0.0 in MNIST.test_noise

    def only_noisy(noise: float, test_noise: float, keep: float) -> float:
        return peaked(noise, test_noise, keep) if test_noise else -1 / keep

    found = MNIST.verdicts(made(MNIST, only_noisy), "paper")
    assert found[1].outcome == "fails"
    again = verdict(found, "asked with the noise of training")
    assert again.outcome == "holds" and f"asked at noise {shown:g}" in again.note
    better = made(
        MNIST, only_noisy, adapted=lambda noise, k: 1 / k + peaked(0, 0, k) if k < 1 else 0
    )
    assert primary(better).outcome == "holds"
    clean = made(MNIST, peaked).sel(test_noise=[0.0])
    assert len(MNIST.verdicts(clean, "paper")) == 2
    quiet = SparseMnist.at("quick", noise=(0.0,), seeds=3)
    assert len(quiet.verdicts(made(quiet), "paper")) == 2


def test_falling_training_accuracy_fails_and_level_one_decides_nothing() -> None:
    falls = MNIST.verdicts(made(MNIST, train=lambda keep: 95 - 5 * keep), "paper")
    assert verdict(falls, "rises").outcome == "fails"
    level = MNIST.verdicts(made(MNIST, train=lambda keep: 95.0), "paper")
    assert verdict(level, "rises").outcome == "inconclusive"


@pytest.mark.parametrize("keeps", [(1.0,), (1.0, 0.1), (0.5, 0.3, 0.1)])
def test_without_dense_or_anything_in_between_nothing_is_known(keeps: tuple[float, ...]) -> None:
    found = primary(made(MNIST, peaked).sel(keep=list(keeps)))
    assert found.outcome == "inconclusive" and found.n == 0


def test_each_reading_has_verdicts_of_its_own() -> None:
    more = {"update": ("project", "dense"), "noise_resampling": ("fresh", "once")}
    study: Any = SparseMnist.at("paper", noise=(0.1, 0.3), seeds=3, **more)
    found = study.verdicts(made(study), "paper")
    # training accuracy and a peak each, and where the noise is in the test, once more a peak
    assert len({each.identity for each in found}) == len(found) == 2 * 2 * (3 + 2)
    assert verdict(found, "dense update, noise drawn once, noise 0.3: ", "rises")
    assert [each.claim for each in found if each.role == "primary"] == ["S8.2"]


def test_rising_is_asked_of_the_noise_as_it_was_shown() -> None:
    data = made(MNIST, train=lambda keep: 90 + 5 * keep)
    data["train_accuracy"] = 1 - 0.1 * data["keep"] + 0 * data["train_accuracy"]
    assert verdict(MNIST.verdicts(data, "paper"), "rises").outcome == "holds"
    data["epoch_accuracy"][..., -1] = 1 - 0.1 * data["keep"]  # the last epoch decides
    assert verdict(MNIST.verdicts(data, "paper"), "rises").outcome == "fails"


@pytest.mark.parametrize(
    "luck",
    [
        # good on the first half alone, a little bad on the other
        lambda half, keep: (1.0, -0.2)[half] if keep == 0.5 else 0.0,
        # each half has its own favourite
        lambda half, keep: 1.0 if keep == (0.5, 0.3)[half] else 0.0,
    ],
)
def test_luck_with_some_test_images_is_no_gain(luck: Luck) -> None:
    """All seeds share it: to choose by other seeds alone would find a peak."""
    data = made(MNIST, lambda noise, test, keep: -5.0 if keep == 0.05 else 0.0, luck=luck)
    found = primary(data)
    assert found.outcome != "holds" and found.n == SEEDS


def test_missing_cells_cost_their_own_seed_only() -> None:
    data = lost(lost(made(MNIST, peaked), keep=0.5, seed=0), keep=1.0, seed=1)
    found = primary(data)
    assert found.outcome == "holds" and found.n == SEEDS - 2
    nowhere = MNIST.verdicts(xr.full_like(data, np.nan), "paper")
    assert all(each.outcome == "inconclusive" and each.n == 0 for each in nowhere)


# ----------------------------------------------------------------------------------------- the grid


NOISE = (0.0, 0.2, 0.5, 5.0, 8.0)
GRID: dict[str, Any] = {"noise": NOISE, "test_noise": NOISE, "keep": (1.0, 0.8, 0.5, 0.1)}
CIFAR: Any = get_study("sparse-cifar100-noise").at("paper", **GRID, seeds=SEEDS)
VIT: Any = get_study("sparse-vit-mnist").at("paper", **GRID, seeds=SEEDS)
WHERE = "noise in training and test, "


def overfit(keep: float) -> float:
    return 99.9 if keep == 1 else 95.0


def by_claim(found: list[Verdict]) -> dict[str, Verdict]:
    return {each.claim: each for each in found if each.role == "primary"}


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
