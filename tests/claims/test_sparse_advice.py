"""Advised keep ranges are judged against chance, and against doing without advice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sparse_results import made

from rarefy.core.contracts import Verdict
from rarefy.studies import get_study

SEEDS = 6
NOISE = (0.0, 0.2, 0.5, 5.0, 8.0)
MNIST: Any = get_study("sparse-mnist").at(
    "quick",
    data="mnist",
    noise_resampling=("fresh",),
    keep=(1.0, 0.8, 0.5, 0.3, 0.1, 0.05),
    seeds=SEEDS,
)
CIFAR: Any = get_study("sparse-cifar100-noise").at(
    "paper",
    noise=NOISE,
    test_noise=NOISE,
    keep=(1.0, 0.8, 0.3, 0.1),
    update=("project",),
    seeds=SEEDS,
)


def verdict(found: list[Verdict], *words: str) -> Verdict:
    (one,) = [each for each in found if all(word in each.setting for word in words)]
    return one


def by_noise(noise: float, test_noise: float, keep: float) -> float:
    return 1.0 if keep == 0.3 else -1.0


def test_advice_that_is_always_right_and_narrow_holds() -> None:
    found = verdict(
        CIFAR.verdicts(made(CIFAR, by_noise, advised=(0.2, 0.4)), "paper"), "range contains"
    )
    assert found.outcome == "holds" and found.n == len(NOISE)
    assert "5 of 5" in found.measured and "0.25" in found.predicted


def test_a_range_of_everything_is_right_by_chance() -> None:
    found = verdict(
        CIFAR.verdicts(made(CIFAR, by_noise, advised=(0.0, 1.0)), "paper"), "range contains"
    )
    assert found.outcome == "inconclusive" and "5 of 5" in found.measured
    assert "would not have been certainly above chance" in found.note


def test_advice_that_is_wrong_or_absent_fails() -> None:
    for advised in ((0.7, 0.9), None, (0.4, 0.2)):
        data = made(CIFAR, by_noise, advised=advised)
        found = verdict(CIFAR.verdicts(data, "paper"), "range contains")
        assert found.outcome == "fails" and found.n == len(NOISE), advised
        assert ("no advice" in found.note) == (advised != (0.7, 0.9))


def test_advice_that_is_right_somewhat_more_often_than_chance_is_undecided() -> None:
    def half(noise: float, test_noise: float, keep: float) -> float:
        return 1.0 if keep == (0.3 if noise < 0.3 else 0.8) else -1.0

    found = verdict(
        CIFAR.verdicts(made(CIFAR, half, advised=(0.2, 0.4)), "paper"), "range contains"
    )
    assert found.outcome == "inconclusive" and "2 of 5" in found.measured


def test_where_the_best_is_not_known_advice_does_not_fail() -> None:
    def nearly_equal(noise: float, test_noise: float, keep: float) -> float:
        return {0.8: 0.5, 0.3: 0.1, 0.1: -5.0}[keep]

    data = made(CIFAR, nearly_equal, spread=0.5, advised=(0.2, 0.4))
    found = verdict(CIFAR.verdicts(data, "paper"), "range contains")
    assert found.outcome == "inconclusive" and found.measured.startswith(("0 of 5", "1 of 5"))
    assert "if every keep that cannot be told" in found.note
    sharp = made(CIFAR, nearly_equal, spread=0.01, advised=(0.2, 0.4))
    assert verdict(CIFAR.verdicts(sharp, "paper"), "range contains").outcome == "fails"
    alone = CIFAR.verdicts(sharp.isel(seed=[0]), "paper")
    assert verdict(alone, "range contains").outcome == "inconclusive"


@pytest.mark.parametrize(
    ("points", "spread", "outcome"),
    [(1.0, 0.01, "holds"), (-1.0, 0.01, "fails"), (0.0, 0.5, "inconclusive")],
)
def test_advice_is_good_if_what_it_advises_beats_dense(
    points: float, spread: float, outcome: str
) -> None:
    def inside(noise: float, test_noise: float, keep: float) -> float:
        return points if keep == 0.3 else 7.0 * np.sign(points)

    data = made(CIFAR, inside, spread, advised=(0.2, 0.4))
    found = verdict(CIFAR.verdicts(data, "paper"), "better than dense")
    assert found.outcome == outcome and found.n == SEEDS and "5 of 5 settings" in found.note
    wide = made(CIFAR, inside, spread, advised=(0.2, 1.0))  # 0.8, 0.3 and dense itself
    other = verdict(CIFAR.verdicts(wide, "paper"), "better than dense")
    assert float(other.measured.split()[1]) == pytest.approx(
        (points + 7 * np.sign(points)) / 3, abs=0.4
    )
    none = verdict(CIFAR.verdicts(made(CIFAR, inside, advised=None), "paper"), "better than dense")
    assert none.outcome == "inconclusive" and none.n == 0


def test_a_range_between_two_keeps_stands_for_the_nearest() -> None:
    data = made(CIFAR, by_noise, advised=(0.33, 0.35))
    assert "5 of 5" in verdict(CIFAR.verdicts(data, "paper"), "range contains").measured


def test_settings_without_advice_count_as_wrong() -> None:
    data = made(CIFAR, by_noise, advised=(0.2, 0.4))
    for name in ("advised_low", "advised_high"):
        data[name].loc[{"noise": [5.0, 8.0]}] = np.nan
    found = verdict(CIFAR.verdicts(data, "paper"), "range contains")
    assert "3 of 5" in found.measured and "no advice in 2 of 5" in found.note
    assert "0.25" in found.predicted


def test_results_from_before_the_probe_were_not_run() -> None:
    data = made(CIFAR).drop_vars(["advised_low", "advised_high"])
    found = [each for each in CIFAR.verdicts(data, "paper") if each.claim == "S12"]
    assert [(each.outcome, each.n) for each in found] == [("not-run", 0)] * 2


def test_the_curve_is_asked_without_noise_in_the_test() -> None:
    def other(noise: float, test_noise: float, keep: float) -> float:
        return float((keep == 0.5) == (test_noise == 0))

    found = verdict(
        MNIST.verdicts(made(MNIST, other, advised=(0.4, 0.6)), "paper"), "range contains"
    )
    assert "1 of 1" in found.measured
