"""``--method auto``: by held-out training images alone, and SimCLR unless branches gain more than
a standard error."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest
import xarray as xr

from rarefy.tools.longtail.evaluation import PROTOCOLS
from rarefy.tools.longtail.method_race import MASKED, PLAIN, PROBED, RACED, outcome, raced
from rarefy.tools.longtail.pretrain_run import PretrainImages

IMAGES, ROOM = 200, 220
LABELS = np.arange(IMAGES) % 10


def race_of(plain: np.ndarray | None, masked: np.ndarray | None) -> xr.Dataset:
    """None: a training that came to no end."""
    right, labels = np.full((2, ROOM), math.nan), np.full((2, ROOM), math.nan)
    for place, answers in enumerate((plain, masked)):
        if answers is not None:
            right[place, :IMAGES], labels[place, :IMAGES] = answers, LABELS
    dims = ("images", "rho", "algorithm", "seed", "held_out")
    found = {"held_out_right": right, "held_out_label": labels}
    return xr.Dataset(
        {name: (dims, values[None, None, :, None]) for name, values in found.items()},
        coords={"algorithm": list(RACED)},
    )


def first(count: int) -> np.ndarray:
    return (np.arange(IMAGES) < count).astype(float)


def test_a_gain_of_more_than_a_standard_error_is_chosen_and_said() -> None:
    found = outcome(race_of(first(150), first(180)), "linear")
    assert found.chosen == MASKED and found.gain.differing == 30
    assert found.scores == pytest.approx({PLAIN: 75.0, MASKED: 90.0})
    assert found.sentence == (
        "branches:0.1 is chosen: on 200 held-out training images simclr 75.0 %, branches:0.1 "
        "90.0 % of balanced accuracy (linear, one whole training each): a gain of 15.0 points "
        "by branches:0.1, more than a standard error (2.7, image by image)"
    )


@pytest.mark.parametrize("masked", [100, 149, 150, 151])
def test_ties_losses_and_small_gains_leave_simclr(masked: int) -> None:
    found = outcome(race_of(first(150), first(masked)), "linear")
    assert found.chosen == PLAIN and found.sentence.startswith("simclr is chosen: on 200 held-out")
    said = "a gain of 0.5 points by branches:0.1, no more than a standard error (0.5, image by"
    assert (said if masked > 150 else "each): no gain by branches:0.1") in found.sentence


def test_what_came_to_an_end_is_chosen() -> None:
    lost = outcome(race_of(None, first(20)), "linear")
    assert lost.chosen == MASKED
    assert "images simclr came to no end, branches:0.1 10.0 % of balanced" in lost.sentence
    assert lost.sentence.endswith("(linear, one whole training each)")
    assert outcome(race_of(first(20), None), "linear").chosen == PLAIN


@pytest.mark.slow
def test_where_nothing_is_gained_branches_are_chosen_as_often_as_a_standard_error_says() -> None:
    draw, runs, chance = np.random.default_rng(0), 1000, 1 - NormalDist().cdf(1.0)
    easy = draw.normal(0.5, 1.5, IMAGES)
    right = (easy + draw.normal(size=(runs, 2, IMAGES)) > 0).astype(float)
    wrong = np.mean([outcome(race_of(*two), "linear").chosen == MASKED for two in right])
    assert wrong <= chance + 2 * math.sqrt(chance * (1 - chance) / runs)


def test_it_says_by_what_images_were_classified() -> None:
    for protocol in PROTOCOLS:
        words = protocol if protocol in PROBED else "nearest neighbours"
        told = outcome(race_of(first(150), first(150)), protocol).sentence
        assert f"({words}, one whole training each)" in told


def test_both_are_trained_to_their_full_length_with_one_seed() -> None:
    whole = PretrainImages.at("tiny", rho=(4.0, 8.0), images=("long-tail", "balanced"), epochs=9)
    race = raced(whole)
    assert (race.algorithm, race.seeds, race.images) == (RACED, 1, ("long-tail",))
    assert race.rho == (8.0,) and race.epochs == 9
    assert race.watched_epochs().tolist() == whole.watched_epochs().tolist()
