"""``benign-correlation``: a cell by a plain loop, the best classifier, wrong use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rarefy.core.contracts import Cells, Context
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio

BenignCorrelation: Any = get_study("benign-correlation")

FLOAT64 = Context(dtype=torch.float64)


def study(**parameters: Any) -> Any:
    return BenignCorrelation.at("tiny", **parameters)


def test_a_cell_is_what_its_parts_give_one_after_the_other() -> None:
    small = study()
    grid = grid_of(small)
    columns = [grid.values[name] for name in ("law", "schedule", "strength", "gamma", "seed")]
    wanted = ("gaussian", "trained", 1.0, 10.0, 1)
    (place,) = (i for i, row in enumerate(zip(*columns, strict=True)) if row == wanted)
    found = small.simulate(grid.cells(np.array([place])), FLOAT64)
    whole = small.setup(
        grid.cells(np.array([place])),
        FLOAT64,
        spectrum=spectrum_for(10.0, small.d, small.classes),
        strength=torch.ones(1, dtype=torch.float64),
        sizes=torch.full((1, small.classes), small.size),
        schedule="trained",
        zeta_axes="rotated",
    )
    fitted = whole.fit(FLOAT64, small.training("trained"))
    filters = fitted.filters[0]
    wrong = []
    for start in (0, 250):
        fresh = whole.fresh(min(250, small.test_samples - start), start // 250)
        scores = torch.relu(fresh.noise[0] @ filters.transpose(1, 2)).sum(dim=2)  # (class, n)
        own = torch.relu(filters @ fresh.features[0].T).sum(dim=1)  # (class, feature)
        scores = scores + own[:, fresh.labels[0]]
        wrong.append(scores.argmax(dim=0) != fresh.labels[0])
    assert found["test_error"][0] == pytest.approx(torch.cat(wrong).double().mean().item())
    assert found["stopped_at"][0] == fitted.stopped_at[0] > 0


def test_the_best_classifier_errs_as_the_formula_says() -> None:
    """Two filters per class, along its special direction and against: F_k is |x_k|."""
    small, gamma, samples = study(), np.array([1.2, 4.0, 30.0]), 20_000
    trial = small.setup(
        Cells({"seed": np.zeros(3)}, np.full(3, 3, dtype=np.int64)),
        FLOAT64,
        spectrum=small.spectrum(torch.tensor(gamma)),
        strength=torch.zeros(3, dtype=torch.float64),
        sizes=torch.full((1, small.classes), small.size),
        zeta_axes="rotated",
    )
    filters = torch.zeros(3, small.classes, 2, small.d, dtype=torch.float64)
    for k in range(small.classes):
        filters[:, k, 0, small.classes + k] = 1
        filters[:, k, 1, small.classes + k] = -1
    seen = trial.test(filters, FLOAT64, samples).error.numpy()
    expected = least_noise_error(special_ratio(gamma, small.d - small.classes), small.classes)
    np.testing.assert_allclose(seen, expected, atol=4 * 0.5 / np.sqrt(samples))
