"""Q3, Q4 and Q8: trainings of one seed, what is measured of them, verdicts with known answers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import Made, fabricated
from pruning_results import FLOAT64, by_group, close, simulated

from rarefy.data.finite_set import FRESH
from rarefy.studies import get_study
from rarefy.sweep.grid import Grid
from rarefy.train.descent import automatic_gradients
from rarefy.train.two_branches import TwoBranches

ContrastSamples = get_study("contrast-samples")
pytestmark = pytest.mark.usefixtures("eager")
SMALL: dict[str, Any] = {
    "seeds": 2,
    "samples": (16, FRESH),
    "d1": 24,
    "batch": 8,
    "steps": 12,
    "reads": (0, 4, 12),
    "probe_pairs": 40,
    "test_pairs": 40,
    "loss_pairs": 20,
}


@cache
def measured() -> tuple[ContrastSamples, Grid, dict[str, np.ndarray]]:
    study = ContrastSamples.at("tiny", **SMALL)
    return study, *simulated(study)


def rows(grid: Grid, **wanted: Any) -> np.ndarray:
    chosen = [np.asarray(grid.values[name]) == value for name, value in wanted.items()]
    return np.flatnonzero(np.all(chosen, axis=0))


def test_all_trainings_of_a_seed_begin_alike_and_end_apart() -> None:
    _, grid, found = measured()
    here = rows(grid, again="sample", samples=16, seed=1)
    assert len(here) == 4
    for row in here[1:]:
        np.testing.assert_array_equal(found["best"][row][0], found["best"][here[0]][0])
    assert len(np.unique(found["best"][here][:, -1, 1])) == 4


def test_trained_and_fresh_samples_cost_the_same_before_training() -> None:
    study, grid, found = measured()
    untrained = found["loss"][:, 0]
    np.testing.assert_allclose(untrained, np.log(study.batch), rtol=1e-3)
    gap = found["loss"][:, -1, 1] - found["loss"][:, -1, 0]
    assert np.abs(gap[rows(grid, samples=16)]).mean() > np.abs(untrained - np.log(8)).max()


def test_what_lies_outside_the_features_is_a_share() -> None:
    study, grid, found = measured()
    outside = found["outside"]
    assert ((outside > 0) & (outside < 1)).all()
    # weights are drawn without a direction: of d1 directions d are features
    assert outside[:, 0].mean() == pytest.approx(1 - study.d / study.d1, abs=0.1)
    assert (outside[:, -1] < outside[:, 0]).all()


@pytest.mark.slow
def test_a_cell_gives_the_same_alone_and_in_a_batch() -> None:
    study, grid, found = measured()
    for row in (*rows(grid, training="masked", again="sample", samples=16), len(grid) - 1):
        alone = study.simulate(grid.cells(np.array([row])), FLOAT64)
        for name in ("best", "loss", "outside", "accuracy"):
            close(alone[name][0], found[name][row], name)


@pytest.mark.parametrize("training", ["plain", "pruned", "branches", "masked"])
def test_each_training_descends_on_its_own_problem(training: str) -> None:
    study, grid, _ = measured()
    cells = grid.cells(rows(grid, training=training))
    trial = study.trial(training, cells, FLOAT64)
    two = isinstance(trial.problem, TwoBranches)
    assert two == (training in ("branches", "masked"))
    assert (trial.pruning is not None) == (training == "pruned")
    if isinstance(trial.problem, TwoBranches):
        assert trial.problem.keep == (study.keep if training == "masked" else 1)
    parameters = {"weights": 100 * trial.weights}
    if trial.pruning is not None:
        trial.pruning.before(0, parameters)
    batch = trial.batch(3)
    expected = automatic_gradients(trial.problem, parameters, batch)[1]["weights"]
    found = trial.problem.gradients(parameters, batch)[1]["weights"]  # type: ignore[attr-defined]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def results(
    study: ContrastSamples, rare: Made, frequent: Made = lambda c: 0.9 + 0 * c["seed"]
) -> xr.Dataset:
    values: dict[str, Made] = {
        "best": by_group(rare, frequent),
        "accuracy": by_group(rare, frequent),
        "loss": lambda c: xr.where(c["seen"] == "fresh", 2.0, 1.0) + 0 * c["seed"],
        "outside": lambda c: xr.where(c["samples"] == FRESH, 0.1, 0.2),
        "bias_on": lambda c: 5,
    }
    return fabricated(study, 6, values)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"plain": -0.1, "branches": -0.1, "masked": 0.0}, ["holds"] * 4),
        ({"plain": 0.1, "branches": -0.1, "masked": -0.2}, ["fails"] * 4),
        ({"plain": 0.0, "branches": 0.1, "masked": 0.2}, ["fails"] * 2 + ["premise-not-met"] * 2),
    ],
)
def test_rare_features_must_fall_and_the_mask_must_keep_them(
    change: dict[str, float], expected: list[str]
) -> None:
    study = ContrastSamples.at("tiny")

    def rare(c: xr.Dataset) -> xr.DataArray:
        here = (c["samples"] == 32) & (c["again"] == "sample") & (c["read"] == 16)
        by = sum((c["training"] == name) * value for name, value in change.items())
        return 0.7 + here * by

    found = study.verdicts(results(study, rare), "tiny")
    primary = {v.claim: v.outcome for v in found if v.role == "primary"}
    assert primary == dict(zip(("Q3.1", "Q3.2", "Q4.1", "Q4.2"), expected, strict=True))
    pairs = [v.outcome for v in found if v.claim == "Q3" and "pairs come back" in v.setting]
    assert pairs == ["fails", "fails"]  # no effect at all
    gaps = [v.outcome for v in found if "loss on fresh less" in v.setting]
    assert gaps == ["holds"] * 3


def test_at_the_linear_scale_primaries_are_the_same_question_under_another_choice() -> None:
    study = ContrastSamples.at("linear")
    found = study.verdicts(results(study, lambda c: 0.7 + 0 * c["seed"]), "linear")
    assert [v.claim for v in found] == ["Q3", "Q3", "Q4", "Q4", "Q8.1", "Q8.2", "Q8.3"]


@pytest.mark.parametrize(
    ("free", "masked", "frequent", "expected"),
    [
        (-0.1, 0.0, 0.0, ["holds"] * 3),
        (-0.1, -0.2, -0.2, ["holds", "fails", "fails"]),
        (0.1, 0.2, 0.0, ["fails", "fails", "holds"]),
    ],
)
def test_fresh_samples_must_cost_rare_features_and_the_mask_must_keep_them(
    free: float, masked: float, frequent: float, expected: list[str]
) -> None:
    study = ContrastSamples.at("linear")

    def made(branches: float, kept: float) -> Made:
        def values(c: xr.Dataset) -> xr.DataArray:
            here = (c["samples"] == FRESH) & (c["again"] == "sample") & (c["read"] == 3000)
            by = (c["training"] == "branches") * branches + (c["training"] == "masked") * kept
            return 0.7 + here * by

        return values

    found = results(study, made(free, masked), made(frequent, 0.0))
    outcome = {v.claim: v.outcome for v in study.verdicts(found, "linear")}
    assert [outcome[f"Q8.{place}"] for place in (1, 2, 3)] == expected


def test_the_picture_shows_every_training_on_few_and_on_fresh_samples() -> None:
    study = ContrastSamples.at("tiny")
    (picture,) = study.picture(results(study, lambda c: 0.7 + 0 * c["seed"]))
    assert [panel.title for panel in picture.panels] == ["32 samples", "fresh samples"] * 2
    assert all(len(panel.curves) == 4 for panel in picture.panels)
