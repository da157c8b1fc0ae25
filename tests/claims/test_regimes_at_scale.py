"""The searches of the study of boundaries in any dimension, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scale_results import ends_of, study_of

from rarefy.core.contracts import Cells, Context
from rarefy.sweep.grid import grid_of

pytestmark = pytest.mark.usefixtures("eager")
WIDE = Context(dtype=torch.float64)


def cells_of(study: Any) -> Cells:
    grid = grid_of(study)
    return grid.cells(np.arange(len(grid)))


def small(**parameters: Any) -> Any:
    words = ("side 1", "signal 0.5", "tail 2", "feature 0.5", "side 2", "feature 0.2")
    given = {"question": words, "size": (6,), "classes": (2,), "precision": 0.5, "filters": 6}
    return study_of(**{**given, "test_samples": 100, **parameters})


@pytest.mark.slow
def test_a_cell_alone_is_what_it_is_among_questions_of_its_world() -> None:
    study = small()
    cells = cells_of(study)
    together = study.simulate(cells, WIDE)
    for one in range(0, len(cells), 5):
        alone = study.simulate(cells.take(np.array([one])), WIDE)
        for name, values in together.items():
            np.testing.assert_allclose(alone[name][0], values[one], rtol=1e-9, atol=1e-12)


def test_bisection_finds_what_a_full_grid_finds() -> None:
    """The first place at which the outcome has turned, all places looked at."""
    study = small(question=("signal 0.5", "feature 0.5", "side 2"), audits=0)
    cells = cells_of(study)
    found = study.simulate(cells, WIDE)
    for word in study.question:
        rows = np.flatnonzero(np.asarray(cells.values["question"]) == word)
        world = "noise" if word == "side 2" else word.split()[0]
        path = study.path(world, 6, 2, cells.take(rows), WIDE)
        low, high = ends_of(word, 6, 2)
        halvings = math.ceil(math.log2((high - low) / study.precision))
        places = np.linspace(low, high, 2**halvings + 1)
        # half of log T, half of chance, the tail's level of chance
        level = {"signal": 0.5 * math.log(2), "feature": 0.25, "noise": 0.025}[world]
        turned = np.stack(
            [
                (path.judged(path.at(torch.full((len(rows),), place, dtype=torch.float64))) < level)
                for place in places
            ]
        )
        assert (np.diff(turned.astype(int), axis=0) >= 0).all()  # a single turn
        first = turned.argmax(axis=0)
        inside = found["outside"][rows] == 0
        assert inside.any()
        middle = (places[first] + places[np.maximum(first - 1, 0)]) / 2
        np.testing.assert_allclose(found["boundary"][rows][inside], middle[inside], atol=1e-12)
        assert (turned[-1][found["outside"][rows] > 0] == 0).all()


@pytest.mark.slow
def test_single_precision_finds_the_boundaries_of_double_precision() -> None:
    study = small(precision=0.25)
    cells = cells_of(study)
    single, double = (study.simulate(cells, context) for context in (Context(), WIDE))
    for name in ("outside", "runs", "grid"):
        np.testing.assert_array_equal(single[name], double[name])
    apart = np.abs(single["boundary"] - double["boundary"])
    assert np.nanmax(apart) <= 0.25  # one bracket, where an error is at its level
    assert (apart[np.isfinite(apart)] == 0).mean() > 0.9
    ends = [0, 2]
    np.testing.assert_allclose(
        single["train_loss"][:, ends], double["train_loss"][:, ends], rtol=1e-3
    )


def test_sides_differ_in_their_test_alone_and_the_filters_side_is_the_easier_one() -> None:
    study = small(question=("tail 2", "side 2"), seeds=3, d=(10**6,))
    found = study.simulate(cells_of(study), WIDE)
    tail, side = np.split(np.arange(len(cells_of(study))).reshape(3, 2), 2, axis=1)
    np.testing.assert_array_equal(
        found["train_loss"][tail.ravel()][:, [0, 2]], found["train_loss"][side.ravel()][:, [0, 2]]
    )
    error = found["test_error"][:, 2]
    assert (error[side.ravel()] <= error[tail.ravel()]).all()
    assert error[side.ravel()].sum() < error[tail.ravel()].sum()


def test_signal_and_noise_are_told_only_where_002_speaks() -> None:
    study = small(question=("signal 0.5", "feature 0.5"), d=(10**6,))
    found = study.simulate(cells_of(study), WIDE)
    signal = np.asarray(cells_of(study).values["question"]) == "signal 0.5"
    for name in ("gamma", "rho", "noise_active", "signal_learnt", "rho_all"):
        assert np.isfinite(found[name][signal][:, [0, 2]]).all(), name
        assert np.isnan(found[name][~signal]).all(), name
    ratio = found["gamma"][signal] / found["rho"][signal]
    low, high = ends_of("signal 0.5", 6, 2)
    np.testing.assert_allclose(np.log10(ratio[:, [0, 2]]), [[low, high]] * signal.sum(), atol=0.15)
    share = found["noise_active"][signal][:, [0, 2]]
    assert ((share > 0.3) & (share <= 1)).all()
