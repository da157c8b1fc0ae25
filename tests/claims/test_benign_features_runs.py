"""``benign-features``: what it simulates, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from rarefy.core.contracts import Cells, Context
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

BenignFeatures: Any = get_study("benign-features")

pytestmark = pytest.mark.usefixtures("eager")

FLOAT64 = Context(dtype=torch.float64)


def tiny(**parameters: Any) -> Any:
    study = BenignFeatures.at("tiny", **parameters)
    return study


def plain(study: Any, cells: Cells, row: int) -> tuple[float, float]:
    """Test error and training loss of one cell by autograd, sample by sample."""
    kind, gamma = str(cells.values["schedule"][row]), float(cells.values["gamma"][row])
    size, strength = int(cells.values["size"][row]), float(cells.values["strength"][row])
    noise = study.spectrum(gamma)
    experiment = study.setup(
        cells.take(np.array([row])),
        FLOAT64,
        spectrum=noise,
        strength=torch.tensor([strength], dtype=torch.float64),
        sizes=torch.full((1, study.classes), size),
        schedule=kind,
    )

    def scores(filters: torch.Tensor, samples: Any) -> torch.Tensor:
        labels = samples.labels[0]
        noise = torch.relu(torch.einsum("kmd,nd->nkm", filters, samples.noise[0]))
        own = strength * samples.features[0][labels]
        feature = torch.relu(torch.einsum("kmd,nd->nkm", filters, own))
        return (noise + feature).sum(dim=2)

    training = study.training(kind)
    rate = float(experiment.rates(training)[0])
    filters = experiment.initial[0].clone().requires_grad_(True)
    for _ in range(training.steps):
        out = scores(filters, experiment.samples)
        now = torch.nn.functional.cross_entropy(out, experiment.samples.labels[0])
        (gradient,) = torch.autograd.grad(now, filters)
        filters = (filters - rate * gradient).detach().requires_grad_(True)
        if now <= training.stop_loss:
            break
    with torch.no_grad():
        ended = scores(filters, experiment.samples)
        loss = torch.nn.functional.cross_entropy(ended, experiment.samples.labels[0])
    fresh = [experiment.fresh(250, 0), experiment.fresh(50, 1)]
    wrong = [scores(filters, part).argmax(dim=1) != part.labels[0] for part in fresh]
    return float(torch.cat(wrong).double().mean()), float(loss)


def test_cells_are_what_a_plain_loop_gives() -> None:
    study = tiny(seeds=1, trained_steps=150)
    cells = grid_of(study).cells(np.arange(len(grid_of(study))))
    found = study.simulate(cells, FLOAT64)
    for row in (4, 7, 13, 22, 26, 34):
        error, loss = plain(study, cells, row)
        assert found["test_error"][row] == pytest.approx(error, abs=1e-9)
        assert found["train_loss"][row] == pytest.approx(loss, rel=1e-6)


def test_a_run_that_explodes_has_no_error_rather_than_none() -> None:
    study = tiny(schedule=("trained",), trained_lr=1e39, trained_steps=5)
    found = study.simulate(grid_of(study).cells(np.arange(3)), Context())
    lost = found["nonfinite_step"] >= 0
    assert lost.any() and np.isnan(found["test_error"][lost]).all()
