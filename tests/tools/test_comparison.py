"""Dense and pruned beside each other, by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated

from rarefy.tools.comparison import comparison
from rarefy.tools.train_images import TrainImages

T_2 = 4.302652729911275
"""Student's t at 97.5 % with 2 degrees of freedom."""
ACCURACY = {1.0: [0.90, 0.92, 0.94], 0.3: [0.91, 0.94, 0.96], 0.1: [0.80, 0.83, 0.83]}


IMAGES, CLASSES = 1000, ("true_class", "answered_class")
"""Test images of each of two classes."""


def results(
    accuracy: dict[float, list[float]] | None = None, noise: tuple[float, ...] = (0.0,)
) -> xr.Dataset:
    """As ``rarefy train`` stores them, as good in one class as in the other; a test noise of 1
    takes 0.5 from every accuracy."""
    accuracy = accuracy or ACCURACY
    test, run, by_class = np.array(list(accuracy.values())), ("keep", "seed"), CLASSES
    given = {"keep": tuple(accuracy), "noise": noise, "classes": ("cat", "dog")}
    study = TrainImages.at("tiny", test_noise=(0.0, 1.0), epochs=2, **given)
    both = np.stack([test, test - 0.5], axis=-1)
    right, wrong = IMAGES * both, IMAGES * (1 - both)
    confusion = np.stack([np.stack([right, wrong], -1), np.stack([wrong, right], -1)], -2)
    values = {
        "test_accuracy": ((*run, "test_noise"), both),
        "epoch_accuracy": ((*run, "epoch"), np.stack([0 * test, test / 2 + 0.5], axis=-1)),
        "kept": (run, np.array(list(accuracy))[:, None] + 0 * test + 0.01),
        "confusion": ((*run, "test_noise", *by_class), confusion),
        "train_images": 50.0,
    }
    lost = xr.DataArray(np.where(np.isnan(test), np.nan, -1.0), dims=run)
    made = fabricated(study, test.shape[1], values)
    return made.assign(nonfinite_step=lost.broadcast_like(made["kept"]))


def rows(*args: Any, **options: Any) -> list[dict[str, Any]]:
    return list(comparison(results(*args, **options)))


def test_rows_by_hand() -> None:
    found = rows()
    assert [(row["test_noise"], row["keep"]) for row in found] == [
        *[(0.0, 1.0), (0.0, 0.3), (0.0, 0.1)],
        *[(1.0, 1.0), (1.0, 0.3), (1.0, 0.1)],
    ]
    dense, sparse, sparser = found[:3]
    assert dense["test_accuracy"] == pytest.approx(92)
    half = T_2 * 2 / math.sqrt(3)  # the std of 90, 92, 94 is 2
    assert dense["test_accuracy_interval"] == pytest.approx([92 - half, 92 + half])
    assert dense["train_accuracy"] == pytest.approx(96)
    assert dense["difference"] is None and dense["difference_interval"] is None
    assert (dense["n"], dense["weights_kept"]) == (3, pytest.approx(1.01))
    # pairs: 1, 2, 2, whose mean is 5/3 and std sqrt(1/3)
    half = T_2 * math.sqrt(1 / 3) / math.sqrt(3)
    assert sparse["difference"] == pytest.approx(5 / 3)
    assert sparse["difference_interval"] == pytest.approx([5 / 3 - half, 5 / 3 + half])
    assert sparser["difference"] == pytest.approx(-10)
    # the same pairs at the other test noise, where every network is worse alike
    assert found[3]["test_accuracy"] == pytest.approx(42)
    assert found[4]["difference"] == pytest.approx(5 / 3)


def test_pairs_are_made_by_seed_and_not_by_the_order_of_values() -> None:
    """With unpaired intervals a constant gain of one point would drown in the seeds' spread."""
    found = rows({1.0: [0.2, 0.5, 0.8], 0.5: [0.21, 0.511, 0.809]})[1]
    assert found["difference"] == pytest.approx(1)
    half = T_2 * 0.1 / math.sqrt(3)
    assert found["difference_interval"] == pytest.approx([1 - half, 1 + half])


def test_noise_levels_are_compared_with_their_own_dense_network() -> None:
    stored = results(noise=(0.0, 0.5))
    at = {"noise": 0.5, "keep": 1.0}
    more = IMAGES / 10 * np.array([[-1, 1], [1, -1]])
    stored["confusion"].loc[at] = stored["confusion"].loc[at] + more
    found = [row for row in comparison(stored) if row["keep"] == 0.3 and not row["test_noise"]]
    assert [row["noise"] for row in found] == [0.0, 0.5]
    assert [row["difference"] for row in found] == pytest.approx([5 / 3, 5 / 3 + 10])


def test_one_seed_has_no_interval() -> None:
    dense, found = rows({1.0: [0.9], 0.3: [0.91]})[:2]
    assert dense["test_accuracy_interval"] is None and found["difference_interval"] is None
    assert found["difference"] == pytest.approx(1) and found["n"] == 1


def test_seeds_that_are_not_done_are_left_out() -> None:
    nan = math.nan
    found = rows({1.0: [0.90, 0.92, nan], 0.3: [0.92, nan, 0.5]})[:2]
    assert [row["n"] for row in found] == [2, 2]
    assert found[0]["test_accuracy"] == pytest.approx(91)
    assert found[0]["train_accuracy"] == pytest.approx(95.5)
    # one pair is there: its difference, and no interval
    assert found[1]["difference"] == pytest.approx(2)
    assert found[1]["difference_interval"] is None


def test_pairs_are_counted_and_not_seeds() -> None:
    """Three pruned networks beside one or two dense ones are no three differences."""
    nan = math.nan
    for dense in ([0.9, nan, nan], [0.9, 0.92, nan]):
        found = rows({1.0: dense, 0.3: [0.91, 0.931, 0.96]})[1]
        assert found["n"] == 3 and found["pairs"] == sum(one == one for one in dense)


def test_without_a_pair_nothing_is_said_about_the_difference() -> None:
    found = rows({1.0: [math.nan, 0.9], 0.3: [0.92, math.nan]})[1]
    assert found["difference"] is None and found["difference_interval"] is None


def test_rows_of_an_unfinished_store_are_json() -> None:
    """NaN is none; a program that reads the output would stumble over it."""
    found = rows({1.0: [0.9, 0.92], 0.3: [math.nan, math.nan]})
    json.dumps(found, allow_nan=False)
    assert {row["keep"] for row in found} == {1.0}  # what is not trained has no row


def test_trainings_that_stopped_have_a_row_and_no_numbers() -> None:
    """As stored: NaN everywhere, and the update at which the loss was no number."""
    nan = math.nan
    stored = results({1.0: [0.9, 0.92, 0.94], 0.3: [nan] * 3, 0.1: [0.8, nan, 0.81]})
    stored["nonfinite_step"].loc[{"keep": 0.3}] = [5.0, 0.0, 7.0]
    stored["nonfinite_step"].loc[{"keep": 0.1, "seed": 1}] = 3.0
    found = list(comparison(stored))
    json.dumps(found, allow_nan=False)
    dense, none, some = found[:3]
    assert [row["stopped"] for row in (dense, none, some)] == [0, 3, 1]
    for name in ("weights_kept", "train_accuracy", "test_accuracy", "test_accuracy_interval"):
        assert none[name] is None and dense[name] is not None, name
    assert none["difference"] is None and none["n"] == 0
    assert some["test_accuracy"] == pytest.approx(80.5) and some["n"] == 2
