"""Networks judged per class: made-up results, and what must be said of them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from made_up_results import fabricated
from numpy.typing import NDArray

from rarefy.measure.class_report import COLUMNS
from rarefy.tools.decision import CANNOT_TELL, NONE, USE
from rarefy.tools.judged_classes import (
    baselines,
    class_frame,
    decision,
    first_level,
    judged,
    warnings_of,
)
from rarefy.tools.train_images import TrainImages

NAMES = ["many", "some", "few"]
ASKED = np.array([400, 200, 100])
TRAIN = [4000.0, 400.0, 40.0]


def confusion(*recall: float, seed: int = 0) -> NDArray[np.float64]:
    """Wrong answers are the largest class, of that the next."""
    right = np.round(np.array(recall) / 100 * ASKED + seed)
    wrong = ASKED - right
    found = np.diag(right)
    found[1:, 0], found[0, 1] = wrong[1:], wrong[0]
    return found


def results(
    networks: dict[float, tuple[float, ...]],
    seeds: int = 5,
    pixels: tuple[float, ...] = (90.0, 20.0, 0.0),
) -> xr.Dataset:
    study = TrainImages.at("tiny", keep=tuple(networks), classes=tuple(NAMES))
    counted = [
        [confusion(*one, seed=seed % 3) for seed in range(seeds)] for one in networks.values()
    ]
    by_class = ("true_class", "answered_class")
    values = {
        "confusion": (("keep", "seed", *by_class), np.array(counted)),
        "pixel_confusion": (by_class, confusion(*pixels)),
        "train_images": (("true_class",), TRAIN),
    }
    return fabricated(study, seeds, values)


GOOD = (95.0, 90.0, 80.0)


def test_a_network_that_helps_the_rare_class_is_used_though_less_accurate() -> None:
    found = results({1.0: (98.0, 90.0, 50.0), 0.3: (90.0, 88.0, 85.0)})
    dense, pruned = (one.report.summary for one in judged(found))
    assert dense.accuracy > pruned.accuracy
    said = decision(found)
    assert (said.kind, said.choice) == (USE, "keep 0.3")
    assert "points of balanced accuracy over dense" in said.sentence


def test_a_keep_that_costs_nothing_is_named() -> None:
    said = decision(results({1.0: GOOD, 0.5: GOOD, 0.1: (60.0, 60.0, 60.0)}))
    assert (said.kind, said.choice) == (NONE, "dense")
    assert "; use dense; keep 0.5 costs less than 0.5 points for sure" in said.sentence


def test_networks_that_answer_the_largest_class_have_learnt_nothing() -> None:
    always = (99.0, 0.0, 0.0)
    said = decision(results({1.0: always, 0.3: always}, 1, pixels=always))
    assert said.kind == NONE and said.choice == "always answering 'many'"
    assert said.sentence.startswith("none of these beats always answering 'many': ")


def test_what_pixels_alone_can_do_is_the_bar() -> None:
    said = decision(results({1.0: (80.0, 60.0, 40.0), 0.3: (80.0, 60.0, 41.0)}, pixels=GOOD))
    assert said.choice == "a logistic regression on pixels"


def test_in_doubt_whether_anything_was_learnt_that_comes_first() -> None:
    networks = {1.0: (80.0, 60.0, 40.0), 0.3: (80.0, 60.0, 46.0)}
    said = decision(results(networks, pixels=(80, 60, 40)))
    assert said.kind == CANNOT_TELL
    assert said.sentence.startswith("cannot tell keep 0.3 from a logistic regression on pixels: ")
    assert "; among these: use keep 0.3: +2.00 points" in said.sentence


def test_fewer_than_five_seeds_decide_nothing() -> None:
    said = decision(results({1.0: (98.0, 90.0, 50.0), 0.3: (98.0, 90.0, 85.0)}, seeds=3))
    assert said.kind == CANNOT_TELL and "about 2 more seeds would" in said.sentence


def test_a_class_with_hardly_any_test_images_is_named() -> None:
    found = results({1.0: (98.0, 90.0, 50.0), 0.3: (98.0, 90.0, 85.0)})
    assert "test image" not in decision(found).sentence
    found["confusion"].loc[{"true_class": "few"}] = np.array([0.0, 0.0, 1.0])
    said = decision(found)
    assert said.sentence.endswith("; 'few' has 1 test image, other ones may say otherwise")


def test_seeds_that_failed_are_left_out_and_pairs_stay_pairs() -> None:
    found = results({1.0: GOOD, 0.3: (90.0, 80.0, 70.0)}, seeds=7)
    found["confusion"].loc[{"keep": 1.0, "seed": 2}] = np.nan
    said = decision(found)
    assert said.kind == NONE and "n = 6" in said.sentence
    found["confusion"].loc[{"keep": 1.0}] = np.nan
    assert decision(found).sentence == "cannot tell: no dense training is finished yet"
    found["confusion"].loc[{}] = np.nan
    assert not first_level(found) and class_frame(found).empty


def test_the_frame_has_the_columns_of_every_tool() -> None:
    frame = class_frame(results({1.0: GOOD, 0.3: GOOD}))
    assert tuple(frame.columns) == ("noise", "test_noise", "keep", *COLUMNS) and len(frame) == 6
    assert frame["class"].tolist() == [*NAMES, *NAMES] and frame["n"].tolist()[:3] == [
        400,
        200,
        100,
    ]


def test_baselines_by_hand() -> None:
    found = baselines(results({1.0: GOOD}))
    always, pixels = found.values()
    assert always == {
        "accuracy": pytest.approx(400 / 7),
        "balanced_accuracy": pytest.approx(100 / 3),
    }
    assert pixels["balanced_accuracy"] == pytest.approx((90 + 20 + 0) / 3)
    assert list(found) == ["always answering 'many'", "a logistic regression on pixels"]


def test_a_warning_is_said_once_and_names_whom_it_is_about() -> None:
    always = (99.0, 0.0, 0.0)
    said = warnings_of(first_level(results({1.0: GOOD, 0.3: always}, seeds=1)))
    assert said == [
        "keep 0.3: no better than always answering 'many', which is right on 57.1 % of the test "
        + "images",
        "keep 0.3: never answered: 'few'",
    ]
    assert warnings_of(first_level(results({1.0: always, 0.3: always}, seeds=1)))[1] == (
        "never answered: 'few'"
    )
