"""Training in blocks that leave out who has stopped is training run by run, one step at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_spectrum import spectrum_for
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.nets.patch_cnn import initial_filters
from rarefy.train.descent import State
from rarefy.train.fitting import BLOCK, FitResult, StopAtLoss, fit

M, D = 5, 40
SIZES = torch.tensor([[3, 9, 5]])
GAMMA = (3.5, 3.5, 40.0, 40.0)
STRENGTH = (0.01, 4.0, 0.01, 12.0)
LR, STEPS, STOP = 4.0, 170, 0.02


def ready(runs: slice = slice(None), shared: bool = True) -> tuple[PatchSamples, Tensor]:
    gamma, strength = torch.tensor(GAMMA)[runs], torch.tensor(STRENGTH, dtype=torch.float64)[runs]
    keys = [7] if shared else list(range(4))[runs]
    draws = Draws(keys, dtype=torch.float64)
    data = ClassNoise(
        spectrum_for(gamma, D, 3).table(), strength[:, None].expand(-1, 3).contiguous()
    )
    start = 0.1 * initial_filters(draws, 3, M, D)
    return data.sample(draws, labels_by_size(SIZES)), start.expand(len(gamma), -1, -1, -1)


def fitted(
    form: str = "auto",
    runs: slice = slice(None),
    shared: bool = True,
    stop: float = STOP,
    steps: int = STEPS,
    lr: float = LR,
    done: list[float] | None = None,
) -> FitResult:
    samples, start = ready(runs, shared)
    context = Context(dtype=torch.float64, advance=(done if done is not None else []).append)
    return fit(samples, start, 1 / M, start.new_full((len(start),), lr), steps, stop, context, form)


def plain(run: int, stop: float, shared: bool = True) -> tuple[Tensor, int]:
    """One run by autograd: filters, and updates made when the stopping loss had been seen."""
    samples, start = ready(slice(run, run + 1), shared)
    labels = samples.labels[0]
    patches = torch.stack(
        [samples.strength[0, labels, None] * samples.features[0][labels], samples.noise[0]]
    )
    weights = start[0].clone().requires_grad_(True)
    for step in range(STEPS):
        seen = torch.relu(torch.einsum("kmd,pnd->pnkm", weights, patches)).sum(dim=(0, 3)) / M
        loss = functional.cross_entropy(seen, labels)
        (slope,) = torch.autograd.grad(loss, weights)
        weights = (weights - LR * slope).detach().requires_grad_(True)
        if loss <= stop:
            return weights.detach(), step + 1
    return weights.detach(), -1


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "apart"])
@pytest.mark.parametrize("form", ["auto", "primal", "dual"])
def test_every_run_ends_as_a_plain_loop_does(form: str, shared: bool) -> None:
    found = fitted(form, shared=shared)
    for run in range(4):
        weights, stopped = plain(run, STOP, shared)
        assert found.stopped_at[run] == stopped
        torch.testing.assert_close(found.filters[run], weights, rtol=1e-9, atol=1e-10)
    assert found.nonfinite_step.tolist() == [-1] * 4
    # the test is of blocks: one stops in the first, one later, one not at all
    stops = found.stopped_at.tolist()
    assert min(s for s in stops if s > 0) < BLOCK < max(stops) and -1 in stops


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_run_does_not_depend_on_who_trains_beside_it(form: str) -> None:
    together = fitted(form, shared=False)
    for run in range(4):
        alone = fitted(form, slice(run, run + 1), shared=False)
        assert alone.stopped_at[0] == together.stopped_at[run]
        for name, value in alone.parameters.items():
            torch.testing.assert_close(value[0], together.parameters[name][run])


def test_without_a_stopping_loss_all_steps_are_made() -> None:
    found = fitted(stop=0.0)
    assert found.stopped_at.tolist() == [-1] * 4
    for run in (1, 3):
        weights, _ = plain(run, 0.0)
        torch.testing.assert_close(found.filters[run], weights, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("stop", "steps"), [(STOP, STEPS), (0.0, 30), (STOP, BLOCK), (1e9, 120)])
def test_progress_counts_every_step_of_every_run(stop: float, steps: int) -> None:
    done: list[float] = []
    fitted(stop=stop, steps=steps, done=done)
    assert sum(done) == 4 * steps


def test_rates_and_initial_filters_are_left_as_they_were() -> None:
    samples, start = ready()
    lr, before = start.new_full((4,), LR), start.clone()
    fit(samples, start, 1 / M, lr, STEPS, STOP, Context(dtype=torch.float64))
    assert lr.tolist() == [LR] * 4 and torch.equal(start, before)


@pytest.mark.parametrize("form", ["primal", "dual"])
def test_a_run_that_explodes_is_left_out_and_known_to_be_lost(form: str) -> None:
    samples, start = ready()
    lr = torch.tensor([LR, 1e308, LR, 1e308], dtype=torch.float64)
    found = fit(samples, start, 1 / M, lr, STEPS, STOP, Context(dtype=torch.float64), form)
    assert (found.nonfinite_step >= 0).tolist() == [False, True, False, True]
    assert torch.isnan(found.known(torch.zeros(4, 2))).all(dim=1).tolist() == [0, 1, 0, 1]
    well = fitted(form)
    for run in (0, 2):
        torch.testing.assert_close(found.filters[run], well.filters[run])


def test_a_run_stops_once_and_stays_where_it_is() -> None:
    def state(step: int, loss: list[float]) -> State:
        return State(step, {}, torch.tensor(loss))

    lr = torch.full((3,), 2.0)
    stopping = StopAtLoss(lr, 0.1)
    stopping(state(1, [0.5, 0.1, torch.nan]))
    assert lr.tolist() == [2, 0, 2] and stopping.stopped_at.tolist() == [-1, 1, -1]
    stopping(state(2, [0.05, 0.3, torch.nan]))
    assert lr.tolist() == [0, 0, 2] and stopping.stopped_at.tolist() == [2, 1, -1]


def test_an_unknown_form_is_named() -> None:
    with pytest.raises(UsageError, match="form='weights': must be one of auto, primal, dual"):
        fitted("weights")
