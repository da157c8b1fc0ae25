"""``topk-phase``: what it simulates, and what it refuses."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch

from rarefy.core.contracts import Cells, Context
from rarefy.core.rng import Draws
from rarefy.data.signal_noise import SignalNoise
from rarefy.nets.patch_cnn import initial_filters
from rarefy.studies import get_study
from rarefy.sweep.grid import grid_of

TopKPhase: Any = get_study("topk-phase")

SMALL = TopKPhase.at("tiny")
WIDE = Context(dtype=torch.float64)


def simulated(study: Any, context: Context = WIDE) -> dict[str, np.ndarray]:
    grid = grid_of(study)
    return study.simulate(grid.cells(np.arange(len(grid))), context)


class OpenAtZero(torch.autograd.Function):
    """ReLU whose derivative at 0 is 1, as 002 has it; PyTorch's own is 0."""

    @staticmethod
    def forward(ctx: Any, z: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(z)
        return torch.relu(z)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (z,) = ctx.saved_tensors
        return gradient * (z >= 0)


def plain_losses(study: Any, cell: Cells, row: int) -> tuple[float, float]:
    """One cell written out: autograd, a Python loop, a sort. Training and test loss."""
    sigma, keep = float(cell.values["sigma"][row]), int(cell.values["keep"][row])
    draws = Draws(cell.keys[row : row + 1], dtype=torch.float64)
    one = torch.tensor([sigma], dtype=torch.float64)
    data = SignalNoise(study.classes, study.d, torch.full_like(one, study.mu), one)
    train = data.sample(draws, study.samples)
    start = initial_filters(draws, study.classes, study.filters, study.d)[0] * study.sigma_0
    filters = start.clone().requires_grad_(True)
    support: torch.Tensor | None = None
    relu = torch.relu if cell.values["reading"][row] == "revive0" else OpenAtZero.apply

    def loss_of(noise: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        signal = study.mu * torch.eye(study.d, dtype=torch.float64)[labels]
        both = torch.stack([signal, sigma * noise], dim=1)
        scores = relu(torch.einsum("npd,kmd->nkmp", both, filters)).sum(dim=(2, 3))
        return torch.nn.functional.cross_entropy(scores, labels)

    loss = torch.tensor(0.0)
    for _ in range(study.steps):
        loss = loss_of(train.noise[0], train.labels[0])
        (gradient,) = torch.autograd.grad(loss, filters)
        with torch.no_grad():
            filters -= study.lr * gradient
            order = filters.abs().argsort(dim=2, descending=True, stable=True)
            kept = torch.zeros_like(filters).scatter_(2, order[:, :, :keep], 1.0)
            if cell.values["reading"][row] == "fixed":
                support = kept if support is None else support
                kept = support
            filters *= kept
    test = data.sample(draws, study.test_samples, "test", 0)
    with torch.no_grad():
        return float(loss), float(loss_of(test.noise[0], test.labels[0]))


def test_a_cell_is_the_plain_loop() -> None:
    study = dataclasses.replace(SMALL, seeds=1, steps=25, keep=(3, 40))
    grid = grid_of(study)
    cells = grid.cells(np.arange(len(grid)))
    found = study.simulate(cells, WIDE)
    for row in range(len(grid)):
        train, test = plain_losses(study, cells, row)
        assert found["train_loss"][row] == pytest.approx(train, rel=1e-9)
        assert found["test_loss"][row] == pytest.approx(test, rel=1e-9)


def test_cells_whose_seeds_go_together_are_those_of_each_seed_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a GPU that would have too little to do with one seed."""
    alone = simulated(SMALL)
    monkeypatch.setattr(TopKPhase, "by_seed", lambda self, cells, context, run: run(cells))
    for name, values in simulated(SMALL).items():
        np.testing.assert_allclose(values, alone[name], rtol=1e-9, err_msg=name)


def test_a_cell_alone_is_the_cell_in_a_batch() -> None:
    study = dataclasses.replace(SMALL, steps=20)
    grid = grid_of(study)
    together = simulated(study)
    for row in (0, 7, len(grid) - 1):
        alone = study.simulate(grid.cells(np.array([row])), WIDE)
        for name, values in alone.items():
            np.testing.assert_allclose(values[0], together[name][row], rtol=1e-9, err_msg=name)


def test_keeping_all_is_the_same_in_every_reading() -> None:
    readings = ("dense", "revive", "revive0", "fixed", "random")
    study = dataclasses.replace(SMALL, keep=(40,), reading=readings, seeds=1)
    found = simulated(study)["test_loss"].reshape(len(readings), -1)
    for other in found[2:]:
        np.testing.assert_array_equal(other, found[1])
    # dense training takes another form, by responses, which is the same up to rounding
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_a_signal_comes_back_only_where_relu_is_open_at_zero() -> None:
    study = dataclasses.replace(SMALL, keep=(2,), reading=("revive", "revive0"), sigma=(1.0,))
    loss = simulated(study)["test_loss"].reshape(2, -1)
    assert (loss[0] < loss[1]).all()


def test_the_first_update_is_that_of_the_gradient_written_out() -> None:
    """Of filters that are open on it, a signal gains lr mu (1 - 1/T) times its class's share."""
    study = dataclasses.replace(SMALL, labels="balanced", sigma_0=1e-9, steps=1, seeds=1)
    found = simulated(study)
    gain = study.lr * study.mu * (1 - 1 / study.classes) / study.classes
    np.testing.assert_allclose(found["first_signal"], gain, rtol=1e-6)
    sigma = grid_of(study).values["sigma"]
    ratio = found["first_noise"] / sigma
    assert ratio.std() < 1e-3 * ratio.mean()  # in proportion to the noise
