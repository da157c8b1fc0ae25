"""G12: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import xarray as xr
from small_granularity import (
    AS_CHOSEN,
    FLOAT64,
    SEEDS,
    assert_plain,
    assert_same_alone,
    assert_tuned_plain,
    cells_at,
    coordinates_of,
    rows_at,
)

from rarefy.core.contracts import Verdict
from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import StoredSamples
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

LABELS = get_study("granularity-labels")
STUDY: Any = LABELS.at("paper", patch_noise=(0.2,), variation=(AS_CHOSEN, "c_b 1.3"))


def made_up(
    gains: list[float],
    scatter: float = 0.005,
    tuned: list[float] | None = None,
    study: Any = STUDY,
) -> xr.Dataset:
    """Hard errors of coarse labels 0.5, easy ones 0.1 for both; fine labels gain as given, turn by
    turn, in the mean over easy and hard samples; the same after fine-tuning unless given."""
    shape = (SEEDS, 2, 1, 3, len(study.turn), 2, len(study.reads))
    noise = scatter * np.random.default_rng(0).normal(size=shape)
    noise -= noise.mean(axis=0)  # means over seeds are exactly those given
    dims = ("seed", "variation", "patch_noise", "knob", "turn", "labels", "read")

    def hard(saved: list[float]) -> np.ndarray:
        error = 0.5 + noise
        error[..., 1, :] -= 2 * np.array(saved)[:, None]
        return error

    values = {
        "loss": (dims, np.full(shape, 0.01)),
        "easy_error": (dims, np.full(shape, 0.1)),
        "hard_error": (dims, hard(gains)),
        "tuned_easy_error": (dims[:-1], np.full(shape[:-1], 0.1)),
        "tuned_hard_error": (dims[:-1], hard(tuned or gains)[..., -1]),
    }
    return xr.Dataset(values, coordinates_of(study))


def judged(results: xr.Dataset, stage: str = "after") -> tuple[list[Verdict], ...]:
    """At the far end of every knob, along it, and on the way."""
    everything = STUDY.verdicts(results, "paper")
    assert all(v.claim == "G12" for v in everything)
    assert len({v.setting for v in everything}) == len(everything) == 2 * 3 * 4
    verdicts = [v for v in everything if f"{stage} fine-tuning" in v.setting]
    words = ("gain of fine over coarse", "the gain falls", "gain lost")
    return tuple([v for v in verdicts if each in v.setting] for each in words)


# ------------------------------------------------------------------------------------- the verdicts


@pytest.mark.parametrize("stage", ["before", "after"])
def test_a_gain_that_goes_holds_and_says_where(stage: str) -> None:
    ends, ways, lost = judged(made_up([0.2, 0.13, 0.12, 0.08, 0.03, -0.1]), stage)
    assert [v.outcome for v in ends + ways + lost] == ["holds"] * 12
    assert "halved at 50% random labels; gone (at most 0.05) at 75% random" in ends[0].note
    assert "gone (at most 0.05) at side tossed sample by sample in 75%" in ends[1].note
    assert "halved at 3 samples a subclass; gone (at most 0.05) at 2 samples" in ends[2].note


def test_a_gain_that_stays_fails() -> None:
    ends, ways, lost = judged(made_up([0.2, 0.2, 0.2, 0.21, 0.22, 0.23]))
    assert [v.outcome for v in ends + ways + lost] == ["fails"] * 12
    assert "halved nowhere" in ends[0].note and "gone (at most 0.05) nowhere" in ends[0].note


def test_a_loss_on_the_way_is_judged_apart_from_the_end() -> None:
    """Half the labels spoilt cost nothing yet, all of them everything."""
    ends, _, lost = judged(made_up([0.2, 0.2, 0.2, 0.19, 0.1, -0.1]))
    assert {v.outcome for v in ends} == {"holds"}
    assert {v.outcome for v in lost} == {"fails"}


def test_what_fine_tuning_brings_back_is_lost_before_it_only() -> None:
    gone, back = [0.2, 0.13, 0.12, 0.08, 0.03, -0.1], [0.2] * 6
    results = made_up(gone, tuned=back)
    assert {v.outcome for part in judged(results, "before") for v in part} == {"holds"}
    ends, _, lost = judged(results, "after")
    assert {v.outcome for v in ends + lost} == {"fails"}


def test_a_gain_at_the_edge_decides_nothing() -> None:
    ends, _, lost = judged(made_up([0.2, 0.15, 0.15, 0.15, 0.1, 0.05], scatter=0.05))
    assert {v.outcome for v in ends + lost} == {"inconclusive"}


@pytest.mark.parametrize("clean", [0.0, 0.03])
def test_without_a_gain_of_clean_labels_that_counts_there_is_nothing_to_lose(clean: float) -> None:
    for part in judged(made_up([clean, -0.05, -0.1, -0.1, -0.1, -0.2])):
        assert {v.outcome for v in part} == {"inconclusive"}
        assert all("premise not met: clean fine labels gain" in v.note for v in part)


def test_ends_that_could_hardly_fail_say_so() -> None:
    gains = [0.2, 0.1, 0.1, 0.1, 0.1, 0.0]
    before, after = (judged(made_up(gains), stage)[0] for stage in ("before", "after"))
    assert ["a sanity check" in v.note for v in before] == [True, True, False]
    assert not any("a sanity check" in v.note for v in after)
    assert ["thinned" in v.note for v in after] == [False, False, True]


def test_turns_on_the_way_are_fixed_and_missing_ones_decide_nothing() -> None:
    quick: Any = LABELS.at("quick")
    for study, samples in ((STUDY, (16, 8, 4)), (quick, (8, 4, 2))):
        found = study.verdicts(made_up([0.2] * len(study.turn), study=study), "paper")
        lost = {v.setting.partition("gain lost with ")[2] for v in found} - {""}
        assert {each for each in lost if "random" in each} == {
            f"{share}% random labels, against 0% random labels" for share in (25, 50)
        }
        assert {each for each in lost if "samples a" in each} == {
            f"{count} samples a subclass, against {samples[0]} samples a subclass"
            for count in samples[1:]
        }
    two = {"turn": (0, 1), "wrong": (0.0, 1.0), "crossed": (0.0, 1.0), "samples": (16, 1)}
    short: Any = LABELS.at("paper", patch_noise=(0.2,), variation=STUDY.variation, **two)
    found = short.verdicts(made_up([0.2] * 2, study=short), "paper")
    absent = [v for v in found if "gain lost" in v.setting]
    assert len({v.setting for v in absent}) == len(absent) == 12
    assert {v.outcome for v in absent} == {"inconclusive"}
    assert all("no such turn in the grid" in v.note for v in absent)


def test_the_gain_is_on_a_test_set_of_which_half_is_hard() -> None:
    results = made_up([0.2] * 6, scatter=0.0)
    for name in ("easy_error", "tuned_easy_error"):
        results[name].loc[{"labels": "fine"}] = 0.3
    (table,) = (table for table in STUDY.tables(results) if table.name == "knobs")
    assert {row[-1].split()[0] for row in table.rows} == {"0.100"}
    words = [row[2] for row in table.rows]
    assert "side tossed sample by sample in 12.5% of subclasses" in words
    assert "1 sample a subclass" in words


def test_pictures_and_tables_show_both_stages() -> None:
    results = made_up([0.2, 0.13, 0.12, 0.08, 0.03, -0.1], tuned=[0.2] * 6)
    pictures = {picture.name: picture for picture in STUDY.picture(results)}
    assert list(pictures) == ["gain", "errors-0.2"]
    for picture in pictures.values():
        assert len(picture.panels) == 6  # three knobs, before and after
    first, last = (pictures["gain"].panels[place].curves[0].y[-1] for place in (0, 3))
    assert first == pytest.approx(-0.1, abs=0.01) and last == pytest.approx(0.2, abs=0.01)
    rows = STUDY.tables(results)[0].rows
    assert {row[3] for row in rows} == {"before", "after"}


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
    study: Any = LABELS.at("tiny", steps=8, reads=(8,), seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, knob=knob, turn=1)
    found = study.simulate(cells, FLOAT64)
    here = study.at_noise(0.3)
    draws, data = cells.draws(FLOAT64), here.model(2)
    for place, labels in enumerate((Labels(data, 1), Labels(data, 2, **spoilt))):
        stored = StoredSamples(data, labels, draws, samples, study.batch)
        network = assert_plain(found, (0, place, -1), here, labels, draws, stored)
        assert_tuned_plain(found, (0, place), here, labels, draws, network)


def test_the_first_turn_is_the_same_for_all_knobs_and_the_baseline_is_clean() -> None:
    """Cell by cell, where no network can serve two of them; and together, where it does."""
    study: Any = LABELS.at("tiny", steps=4, reads=(4,), seeds=1)
    grid = grid_of(study)
    rows = rows_at(study, variation=AS_CHOSEN)
    turn, knob = grid.values["turn"][rows], grid.values["knob"][rows]
    done: list[float] = []
    counting = dataclasses.replace(FLOAT64, advance=done.append)
    together = study.simulate(grid.cells(rows), counting)
    assert sum(done) == len(rows) * study.cost().steps_per_cell
    alone = [study.simulate(grid.cells(rows[[place]]), FLOAT64) for place in range(len(rows))]
    for name in ("loss", "hard_error", "tuned_hard_error"):
        values = np.concatenate([each[name] for each in alone])
        np.testing.assert_array_equal(together[name], values)
        first = values[turn == 0]
        np.testing.assert_array_equal(first, np.broadcast_to(first[:1], first.shape))
        for word in ("noisy", "misaligned"):
            coarse = values[knob == word, 0]
            np.testing.assert_array_equal(coarse[0], coarse[1])


def test_a_run_is_the_same_alone_and_in_a_batch() -> None:
    study: Any = LABELS.at("tiny", steps=5, reads=(5,), seeds=3)
    rows = [rows_at(study, turn=1, knob=knob) for knob in ("noisy", "misaligned")]
    assert_same_alone(study, np.sort(np.concatenate(rows)))


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": 0}, "subclasses=0: must be at least 1"),
        ({"subclasses": 8, "batch": 64}, "d=16: must be at least 2 \\+ k_\\+ \\+ k_- = 18"),
        ({"feature_patches": 7}, "feature_patches=7: its samples need 14 patches, there are 12"),
        ({"batch": 18}, "batch=18: must be a multiple of 2 k = 4"),
        ({"variation": ("no such",)}, "unknown variation 'no such'"),
        ({"knob": ("rusty",)}, "knob='rusty': must be one of noisy, misaligned, starved"),
        ({"wrong": (0.0,)}, "wrong=\\(0.0,\\): turn must be 0, 1, 2"),
        ({"turn": (1, 0)}, "turn must be 0, 1, 2, ... and name a place"),
        ({"wrong": (0.0, 1.5)}, "wrong=1.5: must be between 0 and 1"),
        ({"crossed": (0.0, -0.5)}, "crossed=-0.5: must be between 0 and 1"),
        ({"samples": (4, 0)}, "samples=0: must be at least 1"),
        ({"tune_steps": 0}, "tune_steps=0: must be at least 1"),
        ({"main_noise": 0.5}, "main_noise=0.5: must be one of patch_noise"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LABELS.at("tiny", **wrong)
