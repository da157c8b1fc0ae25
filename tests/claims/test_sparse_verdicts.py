"""Verdicts on the keep curves (S8) of made-up results come out as they must."""

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
