"""G1 and G2: the verdicts on errors made up, and the study against a plain loop."""

from __future__ import annotations

import math
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
    cells_at,
    rows_at,
)

from rarefy.core.contracts import Context, Verdict
from rarefy.data.granularity_labels import Labels
from rarefy.data.multi_view_sets import FreshSamples
from rarefy.studies import get_study
from rarefy.studies.kit.worst import judge_worst
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")

ERRORS: Any = get_study("granularity-errors")
STUDY = ERRORS(s_star=(3, 6), subclasses=(8, 16), d=48, seeds=SEEDS)
PRIMARY = ("G1.1", "G1.2", "G1.3", "G2.1", "G2.2", "G2.3")


def made_up(
    *,
    coarse_hard: float = 0.5,
    fine_hard: float = 0.01,
    loss: float = 0.01,
    easy: float = 0.0,
    fine_easy: float = 0.0,
    label: float = 0.02,
    early: float | None = None,
    scatter: float = 0.002,
) -> xr.Dataset:
    """The same at every s*; ``early``: hard error of coarse labels at the second read. Fine labels
    are learnt from the fourth read on."""
    reads = np.array(STUDY.reads)
    shape = (SEEDS, len(STUDY.variation), 2, 2, len(reads))
    noise = scatter * np.random.default_rng(0).normal(size=shape)
    levels = {
        "loss": (loss, loss),
        "easy_error": (easy, fine_easy),
        "hard_error": (coarse_hard, fine_hard),
        "no_strong_error": (coarse_hard, fine_hard),
        "weak_traces_error": (coarse_hard, fine_hard),
        "easy_label_error": (easy, fine_easy),
        "hard_label_error": (coarse_hard, label),
        "easy_margin": (3.0, 3.0),
    }
    dims = ("seed", "variation", "s_star", "labels", "read")
    found = {name: (dims, np.array(each)[:, None] + noise) for name, each in levels.items()}
    results = xr.Dataset(found, coordinates_of(STUDY, SEEDS))
    if early is not None:
        results["hard_error"].loc[{"labels": "coarse", "read": reads[1]}] += early - coarse_hard
    before = {"labels": "fine", "read": reads[:3]}
    results["loss"].loc[before] = 4.0
    results["easy_margin"].loc[before] = 0.1
    results["hard_error"].loc[before] = 0.9
    return results


def judged(results: xr.Dataset) -> dict[str, list[Verdict]]:
    """By claim."""
    found: dict[str, list[Verdict]] = {}
    for verdict in STUDY.verdicts(results, "paper"):
        found.setdefault(verdict.claim, []).append(verdict)
    return found


# ------------------------------------------------------------------------------------- the verdicts


def test_what_the_theorems_say_holds() -> None:
    found = judged(made_up())
    assert {v.outcome for several in found.values() for v in several} == {"holds"}
    assert {len(found[name]) for name in PRIMARY} == {1}
    assert all("drawn counts, s*=6, k=16" in found[name][0].setting for name in PRIMARY)
    settings = [v.setting for several in found.values() for v in several]
    assert len(set(settings)) == len(settings)
    # other s*, fixed counts, another width, two kinds of hard samples; and the end of training
    assert (len(found["G1"]), len(found["G2"]), len(found[""])) == (5, 3, 2)


@pytest.mark.parametrize(
    ("wrong", "broken"),
    [
        ({"loss": 0.2}, "G1.1"),
        ({"easy": 0.2}, "G1.2"),
        ({"early": 0.05}, "G1.3"),
        ({"coarse_hard": 0.05}, "G1.3"),
        ({"fine_hard": 0.2}, "G2.1"),
        ({"fine_easy": 0.2}, "G2.2"),
        ({"label": 0.3}, "G2.3"),
    ],
)
def test_each_part_can_fail_alone(wrong: dict[str, float], broken: str) -> None:
    found = judged(made_up(**wrong))
    assert found[broken][0].outcome == "fails"
    others = {"G2.2", "G2.3"} if broken == "G2.2" else {broken}  # wrong sides are wrong labels
    assert {found[name][0].outcome for name in set(PRIMARY) - others} == {"holds"}


def test_errors_between_the_bounds_decide_nothing() -> None:
    found = judged(made_up(coarse_hard=0.16, fine_hard=0.05, scatter=0.05))
    assert found["G1.3"][0].outcome == found["G2.1"][0].outcome == "inconclusive"


def test_the_coarse_theorem_is_judged_where_it_speaks() -> None:
    """Traces of 2 x 0.3 beat what s* patches of a feature k times as rare teach if s*/k < 0.6."""
    weak: Any = ERRORS(s_star=(3, 6), subclasses=(4, 8), d=48, seeds=SEEDS)
    found = {v.claim: v for v in weak.verdicts(made_up(), "paper")}
    for name in ("G1.1", "G1.2", "G1.3"):
        assert found[name].outcome == "premise-not-met"
        assert "traces of 0.6 below s*/k = 0.75 (133)" in found[name].note
    few: Any = ERRORS(s_star=(1, 2), subclasses=(2, 3), patches=10, d=48, seeds=SEEDS)
    results = made_up().assign_coords(s_star=[1, 2])
    (verdict,) = (v for v in few.verdicts(results, "paper") if v.claim == "G1.3")
    assert verdict.outcome == "premise-not-met" and "k=3 below log(d)=3.9" in verdict.note
    assert found["G2.1"].outcome == "holds"


def test_the_end_of_phase_1_is_found_by_the_loss_or_by_the_margin() -> None:
    results = made_up()
    here = {"labels": "fine", "s_star": 6, "variation": AS_CHOSEN}
    results["easy_margin"].loc[{**here, "read": STUDY.reads[2], "seed": 1}] = 0.41
    # own score log 1.5, 31 others 0: the loss is log(31 + 1.5) - log(1.5) = 3.08
    results["loss"].loc[{**here, "read": STUDY.reads[1], "seed": 2}] = 3.0
    note = judged(results)["G2.2"][0].note
    assert f"T_0 reached by {SEEDS} of {SEEDS} seeds, read at updates 10 to 50" in note


def test_without_an_end_of_phase_1_nothing_is_decided() -> None:
    results = made_up()
    results["loss"].loc[{"labels": "fine"}] = 4.0
    results["easy_margin"].loc[{"labels": "fine"}] = 0.1
    found = judged(results)
    for name in ("G2.1", "G2.2", "G2.3"):
        assert found[name][0].outcome == "inconclusive"
        assert f"T_0 reached by 0 of {SEEDS} seeds" in found[name][0].note


def test_the_worst_case_decides_for_all() -> None:
    def worst(*levels: float) -> Verdict:
        draw = np.random.default_rng(1)
        cases = {f"case {i}": level + 0.01 * draw.normal(size=9) for i, level in enumerate(levels)}
        return judge_worst(("G1", "s", "x", "y"), cases, 0.3, "at_most")

    assert worst(0.0, 0.1, 0.2).outcome == "holds"
    assert "case 2, the worst of 3 cases" in worst(0.0, 0.1, 0.2).note
    assert worst(0.0, 0.5, 0.2).outcome == "fails"
    assert worst(0.0, 0.3).outcome == "inconclusive"
    assert judge_worst(("G1", "s", "x", "y"), {}, 0.3, "at_most").outcome == "inconclusive"


def test_pictures_and_tables_are_made_from_such_results() -> None:
    assert [each.name for each in STUDY.picture(made_up())] == ["training", "patches"]
    tables = {table.name: table for table in STUDY.tables(made_up())}
    rows = {row[0]: row[2] for row in tables["setting"].rows}
    assert (rows["feature_patches"], rows["patches"], rows["steps"]) == ("6", "48", "2000")
    asked = [row[2] for row in tables["premises"].rows]
    assert len(set(asked)) == len(asked)  # a line that is the same for both labels comes once
    for base in ("4", "2"):
        assert sum(f"c_b = sqrt({base}" in line for line in asked) == 2
    widths = {row[:5] for row in tables["errors"].rows}
    assert (AS_CHOSEN, 6, 16, "coarse", 48 * 256) in widths
    assert ("equal neurons in all", 6, 16, "coarse", 16 * 256) in widths
    assert (AS_CHOSEN, 6, 16, "fine", 256) in widths and len(widths) == 8


# ----------------------------------------------------------------------------------- the simulation


def test_widths_keep_the_number_of_detectors() -> None:
    """App. B.3, 6: d times the neurons go with a c_b^2 larger by 2."""
    here = STUDY.at_size(6)
    assert here.wide(48 * 256).threshold ** 2 == pytest.approx(0.75**2 + 2)
    for neurons in (256, 16 * 256, 48 * 256):
        wide = here.wide(neurons)
        law = neurons * math.exp(-(wide.threshold**2) * math.log(48) / 2)
        assert law == pytest.approx(256 * math.exp(-(0.75**2) * math.log(48) / 2))


@pytest.mark.parametrize("variation", [AS_CHOSEN, "equal neurons in all"])
def test_a_cell_is_what_a_plain_loop_gives(variation: str) -> None:
    study: Any = ERRORS.at("tiny", steps=6, reads=(0, 6), seeds=1)
    cells = cells_at(study, variation=variation, s_star=2)
    found = study.simulate(cells, FLOAT64)
    here = study.at_size(2)
    assert (here.patches, here.sigma_0, here.lr) == (16, 0.05, 1.0)
    draws, data = cells.draws(FLOAT64), here.model(3)
    times = study.d if variation == AS_CHOSEN else 3
    for place, (per_side, neurons) in enumerate(((1, times * 12), (3, 12))):
        labels = Labels(data, per_side)
        fresh = FreshSamples(data, labels, draws, study.batch)
        assert_plain(found, (0, place, -1), here.wide(neurons), labels, draws, fresh)


def test_only_as_chosen_is_run_everywhere() -> None:
    study: Any = ERRORS.at("tiny", steps=2, reads=(2,), seeds=1)
    grid = grid_of(study)
    done: list[float] = []
    found = study.simulate(grid.cells(np.arange(len(grid))), Context(advance=done.append))
    run = np.isfinite(found["loss"]).all(axis=(1, 2))
    variation, s = grid.values["variation"], grid.values["s_star"]
    fixed = variation == "patch counts fixed"
    assert (run == ((variation == AS_CHOSEN) | (s == np.where(fixed, 1, 2)))).all()
    assert sum(done) == len(grid) * study.cost().steps_per_cell


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "small", "cells"),
    [
        ("errors", {"steps": 6, "reads": (3, 6)}, ({"s_star": 2},)),
        ("extreme", {"steps": 5, "reads": (5,)}, ({"per_side": 8, "patch_noise": 0.3},)),
        (
            "labels",
            {"steps": 5, "reads": (5,)},
            ({"turn": 1, "knob": "noisy"}, {"turn": 1, "knob": "misaligned"}),
        ),
        (
            "ablation",
            {"steps": 4, "reads": (4,), "tune_steps": 2, "tune_reads": (0, 2)},
            ({"variation": AS_CHOSEN, "world": "quiet"},),
        ),
    ],
)
def test_a_run_is_the_same_alone_and_in_a_batch(
    name: str, small: dict[str, Any], cells: tuple[dict[str, Any], ...]
) -> None:
    """The first and the last of some cells."""
    study = get_study(f"granularity-{name}").at("tiny", seeds=3, **small)
    grid, rows = grid_of(study), np.sort(np.concatenate([rows_at(study, **at) for at in cells]))
    together = study.simulate(grid.cells(rows), FLOAT64)
    for place in (0, len(rows) - 1):
        alone = study.simulate(grid.cells(rows[[place]]), FLOAT64)
        for output, values in alone.items():
            np.testing.assert_allclose(values[0], together[output][place], rtol=1e-10, atol=1e-12)
