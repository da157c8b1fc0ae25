"""G12: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from small_granularity import (
    FLOAT64,
    SEEDS,
    assert_plain,
    assert_same_alone,
    cells_at,
    coordinates_of,
    rows_at,
)

from rarefy.core.contracts import Verdict
from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import StoredSamples
from rarefy.studies.granularity._labels_verdicts import gain, words_of
from rarefy.studies.granularity._variations import AS_CHOSEN
from rarefy.studies.granularity.granularity_labels import GranularityLabels
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

STUDY: Any = GranularityLabels.at("paper", patch_noise=(0.2,), variation=(AS_CHOSEN, "c_b 1.3"))


def made_up(gains: list[float], scatter: float = 0.005) -> xr.Dataset:
    """Hard errors of coarse labels 0.5, easy ones 0.1 for both; fine labels gain as given, turn by
    turn, in the mean over easy and hard samples."""
    shape = (SEEDS, 2, 1, 3, len(STUDY.turn), 2, len(STUDY.reads))
    noise = scatter * np.random.default_rng(0).normal(size=shape)
    hard = 0.5 + noise
    hard[..., 1, :] -= 2 * np.array(gains)[:, None]
    dims = ("seed", "variation", "patch_noise", "knob", "turn", "labels", "read")
    values = {
        "loss": (dims, np.full(shape, 0.01)),
        "easy_error": (dims, np.full(shape, 0.1)),
        "hard_error": (dims, hard),
    }
    return xr.Dataset(values, coordinates_of(STUDY))


def judged(results: xr.Dataset) -> tuple[list[Verdict], list[Verdict]]:
    """At the far end of every knob, and along it."""
    verdicts = STUDY.verdicts(results, "paper")
    assert all(v.claim == "G12" for v in verdicts)
    ends = [v for v in verdicts if "gain of fine over coarse" in v.setting]
    return ends, [v for v in verdicts if "the gain falls" in v.setting]


# ------------------------------------------------------------------------------------- the verdicts


def test_a_gain_that_goes_holds_and_says_where() -> None:
    ends, ways = judged(made_up([0.2, 0.18, 0.15, 0.08, 0.03, -0.1]))
    assert [v.outcome for v in ends + ways] == ["holds"] * 6
    assert "halved at 50% random labels; gone (at most 0.05) at 75% random" in ends[0].note
    assert "gone (at most 0.05) at 75% of subclasses crossed" in ends[1].note
    assert "halved at 3 samples a subclass; gone (at most 0.05) at 2 samples" in ends[2].note


def test_a_gain_that_stays_fails() -> None:
    ends, ways = judged(made_up([0.2, 0.2, 0.2, 0.21, 0.22, 0.23]))
    assert [v.outcome for v in ends + ways] == ["fails"] * 6
    assert "halved nowhere" in ends[0].note and "gone (at most 0.05) nowhere" in ends[0].note


def test_a_gain_at_the_edge_decides_nothing() -> None:
    ends, _ = judged(made_up([0.2, 0.1, 0.1, 0.1, 0.1, 0.05], scatter=0.05))
    assert {v.outcome for v in ends} == {"inconclusive"}


def test_without_a_gain_of_clean_labels_there_is_nothing_to_lose() -> None:
    ends, ways = judged(made_up([0.0, -0.05, -0.1, -0.1, -0.1, -0.2]))
    assert {v.outcome for v in ends + ways} == {"inconclusive"}
    assert all("premise not met: clean fine labels gain" in v.note for v in ends + ways)


def test_the_gain_is_on_a_test_set_of_which_half_is_hard() -> None:
    results = made_up([0.2] * 6, scatter=0.0)
    results["easy_error"].loc[{"labels": "fine"}] = 0.3
    here = results.sel(variation=AS_CHOSEN, patch_noise=0.2, knob="noisy")
    np.testing.assert_allclose(gain(here), 0.1)


def test_turns_are_put_into_words() -> None:
    assert words_of(STUDY, "noisy")[2] == "25% random labels"
    assert words_of(STUDY, "misaligned")[-1] == "100% of subclasses crossed"
    assert words_of(STUDY, "starved")[-2:] == ["2 samples a subclass", "1 sample a subclass"]


# ----------------------------------------------------------------------------------- the simulation


@pytest.mark.parametrize(
    ("knob", "samples", "spoilt"),
    [
        ("noisy", 4, {"noise": 1.0}),
        ("misaligned", 4, {"misaligned": 1.0}),
        ("starved", 1, {}),
    ],
)
def test_a_cell_is_what_a_plain_loop_gives(
    knob: str, samples: int, spoilt: dict[str, float]
) -> None:
    study: Any = GranularityLabels.at("tiny", steps=8, reads=(8,), seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, knob=knob, turn=1)
    found = study.simulate(cells, FLOAT64)
    here = study.at_noise(0.3)
    draws, data = cells.draws(FLOAT64), here.model(2)
    for place, labels in enumerate((Labels(data, 1), Labels(data, 2, **spoilt))):
        stored = StoredSamples(data, labels, draws, samples, study.batch)
        assert_plain(found, (0, place, -1), here, labels, draws, stored)


def test_the_first_turn_is_the_same_for_all_knobs_and_the_baseline_is_clean() -> None:
    study: Any = GranularityLabels.at("tiny", steps=4, reads=(4,), seeds=1)
    grid = grid_of(study)
    chosen = grid.values["variation"] == AS_CHOSEN
    found = study.simulate(grid.cells(np.flatnonzero(chosen)), FLOAT64)
    turn, knob = grid.values["turn"][chosen], grid.values["knob"][chosen]
    error = found["hard_error"]
    np.testing.assert_array_equal(error[turn == 0], np.broadcast_to(error[:1], (3, 2, 1)))
    for word in ("noisy", "misaligned"):
        coarse = error[(knob == word), 0]
        np.testing.assert_array_equal(coarse[0], coarse[1])


def test_a_run_is_the_same_alone_and_in_a_batch() -> None:
    study: Any = GranularityLabels.at("tiny", steps=5, reads=(5,), seeds=3)
    rows = [rows_at(study, turn=1, knob=knob) for knob in ("noisy", "misaligned")]
    assert_same_alone(study, np.sort(np.concatenate(rows)))


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": 0}, "subclasses=0: must be at least 1 a side"),
        ({"subclasses": 8, "batch": 64}, "d=16: must be at least 2 \\+ k_\\+ \\+ k_- = 18"),
        ({"feature_patches": 7}, "feature_patches=7: its samples need 14 patches, there are 12"),
        ({"batch": 18}, "batch=18: must be a multiple of 2 k = 4"),
        ({"variation": ("no such",)}, "unknown variation 'no such'"),
        ({"knob": ("rusty",)}, "unknown knob 'rusty'"),
        ({"wrong": (0.0,)}, "wrong=\\(0.0,\\): turn must be 0, 1, 2"),
        ({"turn": (1, 0)}, "turn must be 0, 1, 2, ... and name a place"),
        ({"wrong": (0.0, 1.5)}, "noise=1.5: must be in \\[0, 1\\]"),
        ({"crossed": (0.0, -0.5)}, "misaligned=-0.5: must be in \\[0, 1\\]"),
        ({"samples": (4, 0)}, "samples=0: must be at least 1"),
        ({"main_noise": 0.5}, "main_noise=0.5: must be one of patch_noise"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GranularityLabels.at("tiny", **wrong)
