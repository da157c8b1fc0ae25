"""What the page of 000 Table 2 says of the length of a training, of made-up results."""

from __future__ import annotations

import pytest
import xarray as xr
from made_up_longtail import Gains, found_of, page_of

from pages.longtail.length import course_picture

LOSES: Gains = {
    "cifar10-branches-100": {"simclr": 0.10, "branches:0.1": 0.08},
    "cifar10-rho100-500": {"simclr": 0.14, "branches:0.1": 0.16},
    "cifar10-branches-2000": {"simclr": 0.09, "branches:0.1": 0.17},
}


def section(page: str) -> str:
    return page.split(", and where the gain comes from\n")[1].split("\n## ")[0]


def test_a_gain_that_grows_is_told_apart_into_loss_and_gain() -> None:
    said = section(page_of(LOSES))
    assert "CIFAR10-LT (3 pairs): SimCLR is best after 500 epochs (65.33)" in said
    assert "has 60.33 after 2000; two branches, 0.1 kept go from 67.33 to 68.33." in said
    assert "Of the 6.00 points by which the gain grows SimCLR loses 5.00, and" in said
    assert "two branches add 1.00." in said
    rows = [line for line in said.splitlines() if line.startswith("| CIFAR10-LT, rho 100 |")]
    assert [row.split(" | ")[1:5] for row in rows] == [
        ["100", "two branches, 0.1 kept", "61.33", "-2.00 [-2.25, -1.75]"],
        ["500", "two branches, 0.1 kept", "65.33", "+2.00 [+1.75, +2.25]"],
        ["2000", "two branches, 0.1 kept", "60.33", "+8.00 [+7.75, +8.25]"],
    ]
    assert all(row.endswith("| - | - | 3 pairs |") for row in rows)  # no other judge there


def test_the_best_length_is_chosen_by_held_out_images() -> None:
    scales = iter(LOSES)

    def other(found: xr.Dataset) -> xr.Dataset:
        better = 0.9 if "branches-100" in next(scales) else 0.1
        return found.assign(validation=0 * found["validation"] + better)

    said = section(page_of(LOSES, other))
    assert "SimCLR is best after 100 epochs (61.33) and has 60.33 after 2000" in said


def test_only_orders_that_all_lengths_have_are_compared() -> None:
    looks = iter(LOSES)

    def shorter(found: xr.Dataset) -> xr.Dataset:
        return found if "rho" in next(looks) else found.isel(seed=slice(0, 1))

    said = section(page_of(LOSES, shorter))
    assert "CIFAR10-LT (1 order): SimCLR is best after 500 epochs (64.00)" in said


def test_an_order_in_which_a_training_stopped_is_left_out_at_every_length() -> None:
    scales = iter(LOSES)

    def stopped(found: xr.Dataset) -> xr.Dataset:
        lost = (
            (found["seed"] == 2) & (found["algorithm"] == "simclr") & (next(scales)[-4:] == "2000")
        )
        return found.assign(accuracy=found["accuracy"].where(~lost))

    said = section(page_of(LOSES, stopped))
    assert "CIFAR10-LT (2 pairs + 1 order): SimCLR is best after 500 epochs (65.33)" in said
    assert "SimCLR loses 5.00" in said


def test_what_the_training_shows_of_it_is_said_only_where_it_does() -> None:
    def course(loss: float, *knn: float) -> str:
        scales = iter(LOSES)

        def made(found: xr.Dataset) -> xr.Dataset:
            longest = "2000" in next(scales)
            looks = xr.DataArray(list(knn), dims="watched_epoch")
            seen = looks.broadcast_like(found["watched_knn"].isel(watched_epoch=0))
            found = found.drop_dims("watched_epoch").assign(watched_knn=seen)
            found = found.assign_coords(watched_epoch=[10 * look for look in range(len(knn))])
            fall = xr.where(found["epoch"] == 2, loss if longest else 1.0, 1.0)
            return found.assign(
                epoch_loss=found["epoch_loss"] * fall,
                epoch_alignment=found["epoch_alignment"] * fall,
            )

        return section(page_of(LOSES, made))

    said = course(0.5, 0.4, 0.7, 0.6)
    assert "loss does not show it (from 1.00 to 0.50)" in said
    assert "two views (from 0.50 to 0.25)" in said
    assert "right in 70.0 % after 10 of 2000 epochs, in 60.0 % at the end" in said
    assert "held-out images do" not in course(0.5, 0.4, 0.6, 0.7)
    assert "does not show it" not in course(1.5, 0.4, 0.7, 0.6)


def test_where_the_longest_training_is_best_nothing_is_lost() -> None:
    rising: Gains = {
        "cifar10-branches-100": {"simclr": 0.1, "branches:0.1": 0.08},
        "cifar10-rho100-500": {"simclr": 0.14, "branches:0.1": 0.13},
    }
    said = section(page_of(rising))
    assert "SimCLR is best after 500 epochs, the longest training: nothing is lost yet" in said
    assert "two branches, 0.1 kept are at -1.00 points." in said


def test_one_length_alone_says_that_two_are_needed() -> None:
    said = section(page_of({"cifar10-rho100-500": {"branches:0.1": 0.04}}))
    assert "Two lengths of one set are needed: not run yet." in said


def test_the_same_training_in_two_runs_is_told() -> None:
    twice: Gains = {
        "cifar10-branches-500": {"simclr": 0.01, "branches:0.1": None, "pruned:0.5": None},
        "cifar10-rho100-500": {"branches:0.1": 0.04},
    }
    assert "Two runs of one training" not in page_of(twice)  # the same losses: a copy
    runs = iter(twice)

    def again(found: xr.Dataset) -> xr.Dataset:
        anew = (found["seed"] > 1) & (next(runs) == "cifar10-rho100-500")
        knn = found.assign_coords(protocol=["knn"])
        knn["accuracy"] = knn["accuracy"] - 0.02 * anew
        found = xr.concat([found, knn], "protocol", data_vars="minimal")
        return found.assign(epoch_loss=found["epoch_loss"] + 0.1 * anew)

    said = section(page_of(twice, again))
    ones, threes = (", ".join([by] * 4) for by in ("1.00", "3.00"))  # two of six are copies
    told = f"{ones} by linear probe, all labels and {threes} by nearest neighbours"
    assert f"mean nothing: {told} (SimCLR, CIFAR10-LT, rho 100, 500 epochs)." in said
    assert "Two runs of one training" not in page_of(LOSES)


def test_the_picture_has_the_ends_of_all_lengths_and_the_way_of_the_longest() -> None:
    looks = {"simclr": (0.5, 0.4), "branches:0.1": (0.3, 0.4)}
    found = found_of(LOSES, knn=looks)
    picture = course_picture(found)
    ends, way = picture.panels
    assert [curve.label for curve in ends.curves] == ["SimCLR", "two branches, 0.1 kept"]
    assert ends.curves[0].x.tolist() == [100, 500, 2000]
    assert ends.curves[0].y.tolist() == pytest.approx([61.33, 65.33, 60.33], abs=0.01)
    assert way.x_label == "epoch (of 2000)" and len(way.curves) == 2
    looks = found["cifar10-branches-2000"].results["watched_knn"].sel(algorithm="branches:0.1")
    assert way.curves[1].y.tolist() == pytest.approx(100 * looks.mean("seed").values.ravel())
    assert way.curves[1].y.tolist() == pytest.approx([30.0, 40.0])
