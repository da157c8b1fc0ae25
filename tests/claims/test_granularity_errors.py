"""G1 and G2: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import plain_multi_view as plain
import pytest
import xarray as xr
from small_granularity import (
    AS_CHOSEN,
    FLOAT64,
    SEEDS,
    assert_plain,
    assert_same_alone,
    cells_at,
    coordinates_of,
    rows_at,
)

from rarefy.core.contracts import Context, Verdict
from rarefy.core.errors import UsageError
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples, StoredSamples
from rarefy.studies import get_study
from rarefy.studies.kit.worst import judge_worst
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

ERRORS: Any = get_study("granularity-errors")
STUDY = ERRORS(
    variation=(AS_CHOSEN, "noise x2"), d=48, main=4, subclasses=(2, 4, 8), samples=(0, 8)
)


def made_up(
    *,
    coarse_hard: float = 0.5,
    fine_hard: float = 0.01,
    loss: float = 0.01,
    easy: float = 0.0,
    hardest: float = 0.02,
    label: float = 0.02,
    early: float | None = None,
    study: Any = STUDY,
    scatter: float = 0.002,
) -> xr.Dataset:
    """The same at every number of subclasses and samples; ``early``: hard error at the second
    read."""
    reads = np.array(study.reads)
    shape = (SEEDS, 2, len(study.subclasses), len(study.samples), 2, len(reads))
    noise = scatter * np.random.default_rng(0).normal(size=shape)
    levels = {
        "loss": (loss, loss),
        "easy_error": (easy, easy),
        "hard_error": (coarse_hard, fine_hard),
        "easy_label_error": (easy, easy),
        "hard_label_error": (coarse_hard, label),
        "easy_margin": (3.0, 3.0),
        "hard_margin": (0.1, 2.0),
    }
    dims = ("seed", "variation", "subclasses", "samples", "labels", "read")
    values: dict[str, Any] = {}
    for name, level in levels.items():
        filled = np.array(level)[:, None] + noise
        if name == "hard_error" and early is not None:
            filled[..., 0, 1] = early + noise[..., 0, 1]
        values[name] = (dims, filled)
    strata = np.full((*shape[:5], study.strata), 0.0)
    strata[..., 1, 0] = hardest + noise[..., 1, 0]
    values["stratum_error"] = ((*dims[:5], "stratum"), strata)
    return xr.Dataset(values, coordinates_of(study))


def outcomes(results: xr.Dataset, words: str, study: Any = STUDY) -> list[str]:
    return [v.outcome for v in study.verdicts(results, "paper") if words in v.setting]


# ------------------------------------------------------------------------------------- the verdicts


def test_what_the_theorems_say_holds() -> None:
    assert {v.outcome for v in STUDY.verdicts(made_up(), "paper")} == {"holds"}


@pytest.mark.parametrize(
    ("wrong", "words", "others"),
    [
        ({"loss": 0.2}, "(3) training loss", "hard"),
        ({"easy": 0.2}, "(4) error on easy", "(5) error on hard"),
        ({"easy": 0.2}, "(6) error on easy", "(6) error on hard"),
        ({"coarse_hard": 0.05, "early": 0.05}, "(5) error on hard", "(6) error"),
        ({"early": 0.05}, "(5) error on hard", "(6) error"),
        ({"fine_hard": 0.2}, "(6) error on hard", "(5) error on hard"),
        ({"label": 0.3}, "wrong labels of hard", "wrong labels of easy"),
        ({"hardest": 0.4}, "most wrong", "(6) error"),
        ({"fine_hard": 0.6}, "coarse minus that of fine", "(5) error on hard"),
    ],
)
def test_each_part_can_fail_alone(wrong: dict[str, float], words: str, others: str) -> None:
    results = made_up(**wrong)
    assert set(outcomes(results, words)) == {"fails"}
    assert set(outcomes(results, others)) == {"holds"}


def test_errors_between_the_bounds_decide_nothing() -> None:
    results = made_up(coarse_hard=0.16, fine_hard=0.05, scatter=0.05)
    assert set(outcomes(results, "(5) error on hard")) == {"inconclusive"}
    assert set(outcomes(results, "(6) error on hard")) == {"inconclusive"}


def test_the_theorems_are_judged_where_they_speak() -> None:
    """log(48) = 3.9 and 48^0.4 = 4.7: k = 2 is too few, k = 8 too many for fine labels."""
    results = made_up()
    results["hard_error"].loc[{"subclasses": 2, "labels": "coarse"}] = 0.0
    results["hard_error"].loc[{"subclasses": 8, "labels": "fine", "samples": 0}] = 0.5
    assert set(outcomes(results, "(5) error on hard")) == {"holds"}
    assert set(outcomes(results, "(6) error on hard")) == {"holds"}
    assert outcomes(results, "k > d^0.4") == ["fails"]


def test_without_enough_subclasses_or_fresh_samples_nothing_is_decided() -> None:
    for study in (
        dataclasses.replace(STUDY, subclasses=(2,), main=2),
        dataclasses.replace(STUDY, samples=(1,)),
    ):
        verdicts = study.verdicts(made_up(study=study), "paper")
        theorems = [v for v in verdicts if "(3)" in v.setting or "(6)" in v.setting]
        assert theorems and {v.outcome for v in theorems} == {"inconclusive"}
        assert all("needs" in v.note and v.n == 0 for v in theorems)
        assert study.picture(made_up(study=study)) and study.tables(made_up(study=study))


def test_small_must_stay_small() -> None:
    """A loss that is small once and grows again fails, and the note says since when it was judged;
    before the first small read it may be anything."""
    results = made_up()
    results["loss"].loc[{"labels": "coarse", "read": results["read"].values[:3]}] = 0.9
    (verdict,) = (v for v in STUDY.verdicts(results, "paper") if "(3)" in v.setting)
    assert verdict.outcome == "holds" and "from update 20 on" in verdict.note
    assert "k=8 above d^0.4 = 4.7" in verdict.note
    results["loss"].loc[{"labels": "coarse", "read": 100}] += 0.2
    assert outcomes(results, "(3)") == ["fails"] and outcomes(results, "(4)") == ["holds"]
    results["loss"].loc[{"labels": "coarse", "read": 100}] -= 0.16  # about the bound itself
    scattered = 0.05 * np.random.default_rng(2).normal(size=(SEEDS, 1, 1))
    results["loss"].loc[{"labels": "coarse", "read": 100, "variation": AS_CHOSEN}] += scattered
    assert outcomes(results, "(3)") == ["inconclusive"]


RECIPES = ("weaker distraction", "no strong noise", "no distraction")


@pytest.mark.parametrize(
    ("level", "expected"), [(0.5, "holds"), (0.02, "fails"), (0.15, "inconclusive")]
)
def test_other_hard_samples_are_judged_apart(level: float, expected: str) -> None:
    named = [f"hard: {word}" for word in RECIPES]
    results = made_up(scatter=0.03)
    results = xr.concat([results.sel(variation=[AS_CHOSEN])] * 4, "variation")
    results = results.assign_coords(variation=[AS_CHOSEN, *named])
    results["hard_error"].loc[{"variation": named[1], "labels": "coarse"}] += level - 0.5
    study = dataclasses.replace(STUDY, variation=(AS_CHOSEN, *named))
    verdicts = study.verdicts(results, "paper")
    found = {
        word: v.outcome for v in verdicts for word in RECIPES if f"samples ({word})" in v.setting
    }
    assert found == dict(zip(RECIPES, ("holds", expected, "holds"), strict=True))
    main = next(v.note for v in verdicts if "fresh samples, (5)" in v.setting)
    assert "s_dagger iota_upper = 0.6, line 8 of App. B.3 has <= 0.26" in main


def test_other_hard_samples_need_enough_subclasses() -> None:
    study = dataclasses.replace(STUDY, variation=(AS_CHOSEN, "hard: no distraction"), main=2)
    results = made_up().assign_coords(variation=list(study.variation))
    assert outcomes(results, "other hard samples", study) == ["inconclusive"]


# ---------------------------------------------------------------------------------------------- T_0


def with_phase_1(reached: int) -> xr.Dataset:
    """Fine labels are learnt at the read of this place, and the hard error is 0.2 there, 0.01
    after it and 0.9 before."""
    results = made_up()
    reads = results["read"].values
    before = {"labels": "fine", "read": reads[:reached]}
    results["loss"].loc[before] = 2.0
    results["easy_margin"].loc[before] = 0.1
    results["hard_error"].loc[before] = 0.9
    results["hard_error"].loc[{"labels": "fine", "read": reads[reached]}] += 0.19
    return results


def test_the_end_of_phase_1_is_found_by_the_loss_or_by_the_margin() -> None:
    results = with_phase_1(3)
    here = {"labels": "fine", "subclasses": 4, "samples": 0}
    results["easy_margin"].loc[{**here, "read": 10, "seed": 1}] = 0.41
    results["loss"].loc[{**here, "read": 5, "seed": 2}] = 1.7
    words = "(6) error on easy samples at the first"
    (note,) = (v.note for v in STUDY.verdicts(results, "paper") if words in v.setting)
    assert "read at updates 5 to 20 (the read before: 0)" in note
    # own score log 1.5, seven others 0: the loss is log(7 + 1.5) - log(1.5) = 1.73
    assert "at T_0 1.73" in note


def test_errors_at_the_end_of_phase_1_are_judged_apart_from_the_end() -> None:
    results = with_phase_1(3)
    assert outcomes(results, "(6) error on hard samples at the first read after T_0") == ["fails"]
    assert outcomes(results, "(6) error on hard samples at the end") == ["holds"]
    (note,) = (
        v.note
        for v in STUDY.verdicts(results, "paper")
        if "(6) error on easy samples at the first" in v.setting
    )
    assert "reached by 8 of 8 seeds, read at update 20 (the read before: 10)" in note
    assert "3.9 to 4.7 holds 4" in note


def test_without_an_end_of_phase_1_nothing_is_decided() -> None:
    results = with_phase_1(0)
    results["loss"].loc[{"labels": "fine"}] = 2.0
    results["easy_margin"].loc[{"labels": "fine"}] = 0.1
    assert set(outcomes(results, "at the first read after T_0")) == {"inconclusive"}
    notes = [v.note for v in STUDY.verdicts(results, "paper") if "first read after" in v.setting]
    assert len(notes) == 4 and all("T_0 reached by 0 of 8 seeds" in note for note in notes)


def test_the_worst_case_decides_for_all() -> None:
    def judged(*levels: float) -> Verdict:
        draw = np.random.default_rng(1)
        cases = {f"case {i}": level + 0.01 * draw.normal(size=9) for i, level in enumerate(levels)}
        return judge_worst(("G1", "s", "x", "y"), cases, 0.3, "at_most")

    assert judged(0.0, 0.1, 0.2).outcome == "holds"
    assert "case 2, the worst of 3 cases" in judged(0.0, 0.1, 0.2).note
    assert judged(0.0, 0.5, 0.2).outcome == "fails"
    assert judged(0.0, 0.3).outcome == "inconclusive"
    assert judge_worst(("G1", "s", "x", "y"), {}, 0.3, "at_most").outcome == "inconclusive"


def test_the_setting_and_its_premises_are_in_tables() -> None:
    tables = {table.name: table for table in STUDY.tables(made_up())}
    rows = {row[0]: row[2] for row in tables["setting"].rows}
    assert (rows["feature_patches"], rows["sigma"], rows["steps"]) == ("3", "0.02", "400")
    asked = [row[2] for row in tables["premises"].rows]
    assert len(set(asked)) == len(asked)  # a line that is the same for both labels comes once
    for base in ("4", "2"):
        assert sum(f"c_b = sqrt({base}" in line for line in asked) == 2


# ----------------------------------------------------------------------------------- the simulation


@pytest.mark.parametrize("samples", [0, 2])
def test_a_cell_is_what_a_plain_loop_gives(samples: int) -> None:
    study: Any = ERRORS.at("tiny", steps=10, reads=(0, 10), seeds=1)
    cells = cells_at(study, variation=AS_CHOSEN, subclasses=3, samples=samples)
    found = study.simulate(cells, FLOAT64)
    draws, data = cells.draws(FLOAT64), study.model(3)
    for place, per_side in enumerate((1, 3)):
        labels = Labels(data, per_side)
        batches: Any = FreshSamples(data, labels, draws, study.batch)
        if samples:
            batches = StoredSamples(data, labels, draws, samples, study.batch)
        network = assert_plain(found, (0, place, -1), study, labels, draws, batches)
        margin = plain.margins(*network, data, draws, per_side, study.test_each, True).numpy()
        if per_side == 1:  # strata are equal groups by margin in the coarse network
            group = np.empty(len(margin), dtype=int)
            group[np.argsort(margin, kind="stable")] = np.arange(len(margin)) * 5 // len(margin)
        strata = [(margin[group == stratum] <= 0).mean() for stratum in range(5)]
        np.testing.assert_allclose(found["stratum_error"][0, place], strata)


def test_only_as_chosen_is_run_everywhere() -> None:
    study: Any = ERRORS.at("tiny", steps=2, reads=(2,), seeds=1)
    grid = grid_of(study)
    done: list[float] = []
    cells = grid.cells(np.arange(len(grid)))
    found = study.simulate(cells, Context(advance=done.append))
    run = np.isfinite(found["loss"]).all(axis=(1, 2))
    chosen = grid.values["variation"] == AS_CHOSEN
    main = (grid.values["subclasses"] == study.main) & (grid.values["samples"] == 0)
    assert (run == (chosen | main)).all()
    assert sum(done) == len(grid) * study.cost().steps_per_cell


def test_a_run_is_the_same_alone_and_in_a_batch() -> None:
    study: Any = ERRORS.at("tiny", steps=6, reads=(3, 6), seeds=3)
    assert_same_alone(study, rows_at(study, samples=2, variation=AS_CHOSEN))


def test_one_subclass_makes_the_labels_the_same() -> None:
    study: Any = ERRORS.at("tiny", steps=4, reads=(4,), seeds=1)
    found = study.simulate(cells_at(study, subclasses=1, variation=AS_CHOSEN), FLOAT64)
    for name in ("loss", "hard_error", "hard_label_error", "easy_margin"):
        np.testing.assert_array_equal(found[name][:, 0], found[name][:, 1])


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"subclasses": (0, 3)}, "subclasses=0: must be at least 1"),
        ({"subclasses": (3, 8), "batch": 48}, "d=16: must be at least 2 \\+ k_\\+ \\+ k_- = 18"),
        ({"feature_patches": 7}, "feature_patches=7: its samples need 14 patches, there are 12"),
        ({"batch": 8}, "batch=8: must be a multiple of 2 k = 6"),
        ({"variation": ("as chosen", "no such")}, "unknown variation 'no such'"),
        ({"main": 5}, "main=5: must be one of subclasses=\\(1, 3\\)"),
        ({"samples": (-1,)}, "samples=-1: must be at least 0"),
        ({"reads": (0, 10)}, "reads=\\(0, 10\\): must lie in 0..steps=30"),
        ({"strata": 0}, "strata=0: must be at least 1"),
    ],
)
def test_wrong_parameters_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ERRORS.at("tiny", **wrong)
