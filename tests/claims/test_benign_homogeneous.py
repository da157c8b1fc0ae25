"""B15: the classical transition, on errors made up and at a small size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from made_up_results import fabricated

from rarefy.core.contracts import Context, Verdict
from rarefy.core.picture import HeatMap
from rarefy.measure.separation import error_of, separation
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory import benign

BenignHomogeneous: Any = get_study("benign-homogeneous")

pytestmark = pytest.mark.usefixtures("eager")

STUDY = BenignHomogeneous(seeds=6, schedule=("trained",))
Law = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def results_of(law: Law, loss: float = 0.009, study: Any = STUDY) -> xr.Dataset:
    """Results in which the separation is ``law``(n, d, |u|), a little different by seed."""
    d, size, strength = np.meshgrid(study.dimension, study.size, study.strength, indexing="ij")
    wobble = 1 + 0.02 * np.random.default_rng(0).normal(size=(study.seeds, 1, 1, 1))
    error = error_of(wobble * law(2 * size, d - 2, strength), 2)
    values = {"test_error": (("seed", "dimension", "size", "strength"), error)}
    return fabricated(study, study.seeds, {**values, "train_loss": loss})


def classical(n: np.ndarray, d: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.sqrt(3 * n * u**4 / (2 * d))


def outcomes(results: xr.Dataset, study: Any = STUDY) -> dict[str, str]:
    return {short(v): v.outcome for v in study.verdicts(results, "paper")}


def short(verdict: Verdict) -> str:
    """A primary reading by its id, another by what it is about."""
    return verdict.claim if verdict.role == "primary" else verdict.setting.partition(" of the")[0]


NAMES = ("B15.1", "B15.2", "B15.3", "exponent in n", "exponent in d")


def test_the_classical_law_holds_everywhere() -> None:
    assert outcomes(results_of(classical)) == dict.fromkeys(NAMES, "holds")


def test_a_boundary_that_does_not_move_with_n_fails() -> None:
    found = outcomes(results_of(lambda n, d, u: np.sqrt(3 * 40 * u**4 / (2 * d))))
    assert found["exponent in n"] == "fails" and found["exponent in d"] == "holds"
    assert found["B15.3"] == "fails"


def test_a_transition_elsewhere_fails_on_one_side() -> None:
    late = outcomes(results_of(lambda n, d, u: 0.05 * classical(n, d, u)))
    assert late["B15.2"] == "fails" and late["B15.1"] == "holds"
    early = outcomes(results_of(lambda n, d, u: 20 * classical(n, d, u)))
    assert early["B15.1"] == "fails" and early["B15.2"] == "holds"
    assert early["exponent in n"] in ("holds", "inconclusive")  # few boundaries are on the grid


def test_a_large_training_loss_leaves_it_undecided() -> None:
    found = STUDY.verdicts(results_of(classical, loss=0.6), "paper")
    assert {v.outcome for v in found} == {"premise-not-met"} and len(found) == 5
    assert all("the median training loss is 0.6" in v.note for v in found)


def test_a_boundary_that_moves_less_with_d_fails_and_its_exponents_are_told() -> None:
    """|u| goes like n^-0.25 d^0.15; n is at most d/4 in 9 of 12 pairs."""
    results = results_of(lambda n, d, u: n**0.5 * u**2 / d**0.3)
    found = {short(v): v for v in STUDY.verdicts(results, "paper")}
    for name, power, outcome in (("n", -0.25, "holds"), ("d", 0.15, "fails")):
        verdict = found[f"exponent in {name}"]
        assert verdict.value == pytest.approx(power, abs=5e-3)
        assert verdict.note.startswith("9 of 9 boundaries") and verdict.outcome == outcome


def test_another_training_is_robustness() -> None:
    study = BenignHomogeneous(seeds=6, schedule=("carried on",))
    found = study.verdicts(results_of(classical, study=study), "paper")
    assert [(v.claim, v.outcome) for v in found] == [("B15", "holds")] * 3
    assert all(v.setting.startswith("carried on: ") for v in found)


def test_the_ratio_is_that_of_theorem_1() -> None:
    """At the boundary of the made-up law separation^2 = 3 x, alike everywhere."""
    classes, n, d = 2, 100, 500
    panel = STUDY.picture(results_of(classical))[0].panels[1]
    assert isinstance(panel, HeatMap)
    u = float(panel.curves[1].x[list(STUDY.size).index(n // classes)])
    ratio = benign.signal_ratio(np.full((classes, classes), d - classes), [50, 50], [u, u])
    expected = float(separation(0.25, 2)) ** 2 / 3
    assert benign.binding(ratio)[0] == pytest.approx(expected, rel=0.1)


def test_noise_covers_everything_but_the_features_alike() -> None:
    table = STUDY.at_dimension(250).spectrum(1.0).table()
    assert table.shape == (1, 2, 250)
    assert (table[:, :, :2] == 0).all() and (table[:, :, 2:] == 1).all()


def test_dimensions_are_computed_apart_and_give_what_each_gives_alone() -> None:
    study = BenignHomogeneous.at("tiny", seeds=1)
    grid = grid_of(study)
    context = Context(dtype=torch.float64)
    found = study.simulate(grid.cells(np.arange(len(grid))), context)
    alone = BenignHomogeneous.at("tiny", seeds=1, dimension=(40,))
    expected = alone.simulate(grid_of(alone).cells(np.arange(len(grid_of(alone)))), context)
    here = np.flatnonzero(grid.values["dimension"] == 40)
    np.testing.assert_allclose(found["test_error"][here], expected["test_error"], rtol=1e-12)
    strong = (grid.values["strength"] == 4.0) & (grid.values["schedule"] == "trained")
    weak = (grid.values["strength"] == 0.5) & (grid.values["schedule"] == "trained")
    assert found["test_error"][strong].max() < 0.1 < found["test_error"][weak].min()


def test_the_picture_puts_the_law_over_the_maps() -> None:
    picture = STUDY.picture(results_of(classical))[0]
    assert len(picture.panels) == 3
    panel = picture.panels[0]
    assert isinstance(panel, HeatMap)
    line, points = panel.curves
    np.testing.assert_allclose(np.sort(line.x)[: len(points.x)], np.sort(points.x), rtol=0.02)
