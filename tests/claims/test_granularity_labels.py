"""G12: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import xarray as xr
from made_up_results import coordinates_of
from small_granularity import (
    AS_CHOSEN,
    FLOAT64,
    SEEDS,
    assert_plain,
    assert_tuned_plain,
    cells_at,
    rows_at,
)

from rarefy.core.contracts import Verdict
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
    return xr.Dataset(values, coordinates_of(study, SEEDS))


def judged(results: xr.Dataset) -> dict[str, list[Verdict]]:
    """Primaries, in the order of the knobs; whether the gain falls; before fine-tuning."""
    verdicts = STUDY.verdicts(results, "paper")
    assert len({v.setting for v in verdicts}) == len(verdicts) == 9
    found = {
        "primary": [v for v in verdicts if v.role == "primary"],
        "falls": [v for v in verdicts if "the gain falls" in v.setting],
        "before": [v for v in verdicts if "before fine-tuning" in v.setting],
    }
    assert [v.claim for v in found["primary"]] == ["G12.1", "G12.2", "G12.3"]
    assert {len(several) for several in found.values()} == {3}
    return found


def outcomes(found: dict[str, list[Verdict]]) -> dict[str, set[str]]:
    return {name: {v.outcome for v in several} for name, several in found.items()}


# ------------------------------------------------------------------------------------- the verdicts


def test_a_gain_that_goes_holds() -> None:
    found = judged(made_up([0.2, 0.13, 0.12, 0.08, 0.03, -0.1]))
    assert set.union(*outcomes(found).values()) == {"holds"}
    assert ["gain 0.200 with" in v.note for v in found["primary"]] == [True] * 3
    assert ["thinned" in v.note for v in found["primary"]] == [False, False, True]


def test_a_gain_that_stays_fails() -> None:
    found = judged(made_up([0.2, 0.2, 0.2, 0.21, 0.22, 0.23]))
    assert set.union(*outcomes(found).values()) == {"fails"}


def test_what_fine_tuning_brings_back_is_lost_before_it_only() -> None:
    found = outcomes(judged(made_up([0.2, 0.13, 0.12, 0.08, 0.03, -0.1], tuned=[0.2] * 6)))
    assert found["before"] == {"holds"} and found["primary"] == {"fails"}


def test_a_gain_at_the_edge_decides_nothing() -> None:
    found = judged(made_up([0.2, 0.15, 0.15, 0.15, 0.1, 0.05], scatter=0.05))
    assert outcomes(found)["primary"] == {"inconclusive"}


@pytest.mark.parametrize("clean", [0.0, 0.03])
def test_without_a_gain_of_clean_labels_that_counts_there_is_nothing_to_lose(clean: float) -> None:
    found = judged(made_up([clean, -0.05, -0.1, -0.1, -0.1, -0.2]))
    assert set.union(*outcomes(found).values()) == {"premise-not-met"}
    note = found["primary"][0].note
    assert "premise not met: clean fine labels gain" in note


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
    assert list(pictures) == ["gain"]
    assert len(pictures["gain"].panels) == 6  # three knobs, before and after
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
