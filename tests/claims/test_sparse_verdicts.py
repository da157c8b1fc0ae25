"""Verdicts on the keep curves (S8) of made-up results come out as they must."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from sparse_results import Gain, Luck, lost, made

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


def peaked(noise: float, test_noise: float, keep: float) -> float:
    return {0.8: 0.2, 0.5: 0.5, 0.3: 0.3, 0.1: -0.5, 0.05: -3.0}[keep]


def test_a_peak_in_between_and_rising_training_accuracy_hold() -> None:
    found = MNIST.verdicts(made(MNIST, peaked), "paper")
    assert [each.claim for each in found] == ["S8", "S8", "S8", "S12", "S12"]
    assert all(each.outcome == "holds" and each.n == SEEDS for each in found[:3])
    peak = verdict(found, "intermediate")
    assert peak.interval is not None and peak.interval[0] < 0.5 < peak.interval[1]
    assert "keep 0.5 with" in peak.measured and "0.5 (12 times)" in peak.note  # both ways


def test_a_peak_is_asked_without_noise_and_with_that_of_training() -> None:
    """Those without are of BatchNorm measured without noise too."""
    shown = MNIST.noise[0]
    assert MNIST.noise == (shown,) and shown in MNIST.test_noise and 0.0 in MNIST.test_noise

    def only_noisy(noise: float, test_noise: float, keep: float) -> float:
        return peaked(noise, test_noise, keep) if test_noise else -1 / keep

    found = MNIST.verdicts(made(MNIST, only_noisy), "paper")
    assert verdict(found, "intermediate").outcome == "fails"
    again = verdict(found, "the same, asked with the noise of training")
    assert again.outcome == "holds" and f"asked at noise {shown:g}" in again.note
    better = made(
        MNIST, only_noisy, adapted=lambda noise, k: 1 / k + peaked(0, 0, k) if k < 1 else 0
    )
    assert verdict(MNIST.verdicts(better, "paper"), "intermediate").outcome == "holds"
    clean = made(MNIST, peaked).sel(test_noise=[0.0])
    assert not any("the same" in each.setting for each in MNIST.verdicts(clean, "paper"))
    quiet = SparseMnist.at("quick", noise=(0.0,), seeds=3)
    assert not any("the same" in each.setting for each in quiet.verdicts(made(quiet), "paper"))


def test_two_seeds_have_no_interval_and_decide_no_peak() -> None:
    found = verdict(MNIST.verdicts(made(MNIST, peaked).isel(seed=[0, 1]), "paper"), "intermediate")
    assert found.outcome == "inconclusive" and found.interval is None and found.n == 2
    assert "fewer than 3 seeds have no interval" in found.note and "[" not in found.measured


def test_two_seeds_do_not_say_that_the_smallest_is_best_either() -> None:
    data = made(MNIST, lambda noise, test, keep: 1 / keep)
    assert verdict(MNIST.verdicts(data, "paper"), "intermediate").outcome == "fails"
    found = verdict(MNIST.verdicts(data.isel(seed=[0, 1]), "paper"), "intermediate")
    assert found.outcome == "inconclusive" and found.n == 2


def test_equal_gains_by_chance_have_the_spread_of_the_other_keeps() -> None:
    """Three seeds may agree at the chosen keep; how far others differ says what that is worth."""
    study: Any = SparseMnist.at(
        "quick", data="mnist", noise_resampling=("fresh",), keep=MNIST.keep, seeds=3
    )
    data = made(study, peaked, spread=0.0)
    sharp = verdict(study.verdicts(data, "paper"), "intermediate")
    assert sharp.outcome == "holds"
    luck = xr.DataArray([-0.01, 0.0, 0.01], dims="seed")
    for name in ("clean_accuracy", "half_accuracy", "test_accuracy"):
        data[name] = data[name] + luck * data["keep"].isin([0.8, 0.3, 0.1])
    wide = verdict(study.verdicts(data, "paper"), "intermediate")
    assert "keep 0.5 with" in wide.measured and wide.outcome == "inconclusive"
    assert wide.interval is not None and wide.interval[0] < 0 < wide.interval[1]


def test_falling_training_accuracy_fails_and_level_one_decides_nothing() -> None:
    falls = MNIST.verdicts(made(MNIST, train=lambda keep: 95 - 5 * keep), "paper")
    assert verdict(falls, "rises").outcome == "fails"
    level = MNIST.verdicts(made(MNIST, train=lambda keep: 95.0), "paper")
    assert verdict(level, "rises").outcome == "inconclusive"


@pytest.mark.parametrize(
    ("gain", "spread", "outcome"),
    [
        (lambda noise, test, keep: -1 / keep, 0.01, "fails"),  # dense is best
        (lambda noise, test, keep: 0.0, 0.01, "fails"),  # no gain that a figure could show
        (lambda noise, test, keep: 1 / keep, 0.01, "fails"),  # the smallest is best
        (lambda noise, test, keep: 0.3 if keep > 0.05 else -5.0, 2.0, "inconclusive"),
        (lambda noise, test, keep: 0.05 if keep > 0.05 else -5.0, 0.001, "holds"),
    ],
)
def test_where_there_is_no_peak_it_fails_and_in_the_spread_nothing_is_known(
    gain: Gain, spread: float, outcome: str
) -> None:
    found = verdict(MNIST.verdicts(made(MNIST, gain, spread), "paper"), "intermediate")
    assert found.outcome == outcome
    assert ("than the 0.1 points" in found.note) == (outcome == "holds")


def test_one_seed_decides_nothing_and_says_so() -> None:
    found = MNIST.verdicts(made(MNIST, peaked).isel(seed=[2]), "paper")
    for each in found[:2]:
        assert each.outcome == "inconclusive" and each.n == 1 and "one seed" in each.note
    assert found[1].interval is None


@pytest.mark.parametrize("keeps", [(1.0,), (1.0, 0.1), (0.5, 0.3, 0.1)])
def test_without_dense_or_anything_in_between_nothing_is_known(keeps: tuple[float, ...]) -> None:
    found = MNIST.verdicts(made(MNIST, peaked).sel(keep=list(keeps)), "paper")
    assert verdict(found, "intermediate").outcome == "inconclusive"
    assert {each.claim for each in found} == {"S8", "S12"}


def test_each_reading_has_verdicts_of_its_own() -> None:
    study: Any = SparseMnist.at("paper", noise=(0.1, 0.3), seeds=3)
    found = study.verdicts(made(study), "paper")
    # training accuracy and a peak each, and where the noise is in the test, once more a peak
    assert len({each.identity for each in found}) == len(found) == 2 * 2 * (3 + 2) + 2
    assert verdict(found, "dense update, noise drawn once, noise 0.3: ", "rises")


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
    found = verdict(MNIST.verdicts(data, "paper"), "intermediate")
    assert found.outcome == "fails" and found.n == SEEDS


def test_missing_cells_cost_their_own_seed_only() -> None:
    data = lost(lost(made(MNIST, peaked), keep=0.5, seed=0), keep=1.0, seed=1)
    found = verdict(MNIST.verdicts(data, "paper"), "intermediate")
    assert found.outcome == "holds" and found.n == SEEDS - 2
    nowhere = MNIST.verdicts(xr.full_like(data, np.nan), "paper")
    assert all(each.outcome == "inconclusive" and each.n == 0 for each in nowhere)
