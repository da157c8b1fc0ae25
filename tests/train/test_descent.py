"""Descent of many runs at once: gradients, batches, records, deadlines."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event
from typing import Any

import pytest
import torch
from small_contrastive import small
from small_regression import (
    DATA,
    EXACT,
    RUNS,
    SAMPLES,
    START,
    WIDTH,
    ByHand,
    Regression,
    X,
    Y,
    assert_same,
    everything,
    rows,
    seen_weights,
)
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.train.descent import HasGradients, State, Trajectory, automatic_gradients, descend
from rarefy.train.optimisers import Sgd

# ---------------------------------------------------------------------------------------- gradients


def test_autograd_is_the_default_and_hand_written_gradients_give_the_same() -> None:
    automatic = descend(Regression(), START, everything, Sgd(0.1), 30)
    assert not isinstance(Regression(), HasGradients) and isinstance(ByHand(), HasGradients)
    assert_same(descend(ByHand(), START, everything, Sgd(0.1), 30), automatic)


def test_hand_written_gradients_are_used_unless_autograd_is_asked_for() -> None:
    class Wrong(ByHand):
        def gradients(self, parameters, batch):  # type: ignore[no-untyped-def]
            loss, found = super().gradients(parameters, batch)
            return loss, {name: -value for name, value in found.items()}

    right = descend(Regression(), START, everything, Sgd(0.1), 5)
    assert_same(descend(Wrong(), START, everything, Sgd(0.1), 5, automatic=True), right)
    wrong = descend(Wrong(), START, everything, Sgd(0.1), 5)
    assert not torch.allclose(wrong.parameters["w"], right.parameters["w"])


def test_the_contrastive_problem_descends_alike_by_hand_and_by_autograd() -> None:
    def train(automatic: bool) -> Trajectory:
        case = small(runs=3, bias=0.1, tau=0.8)
        return descend(
            case.problem,
            case.parameters,
            lambda step: case.data.sample(case.draws, 6, step),
            Sgd(0.2, weight_decay=0.01),
            8,
            trackers={"loss": lambda s: s.loss},
            record=range(1, 9),
            automatic=automatic,
        )

    assert_same(train(False), train(True))


def test_losses_are_summed_over_runs_so_company_does_not_change_the_gradient() -> None:
    loss, found = automatic_gradients(Regression(), START, DATA)
    assert loss.shape == (RUNS,)
    for run in range(RUNS):
        one = slice(run, run + 1)
        _, alone = automatic_gradients(Regression(), rows(START, one), rows(DATA, one))
        torch.testing.assert_close(found["w"][one], alone["w"], rtol=EXACT, atol=EXACT)


def test_full_batch_descent_solves_the_least_squares_problem() -> None:
    found = descend(Regression(), START, everything, Sgd(0.3), 400).parameters
    design = torch.cat([X, torch.ones(RUNS, SAMPLES, 1, dtype=torch.float64)], dim=2)
    exact = torch.linalg.lstsq(design, Y[..., None]).solution[..., 0]
    torch.testing.assert_close(found["w"], exact[:, :WIDTH], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found["b"], exact[:, WIDTH], rtol=1e-9, atol=1e-9)


# ---------------------------------------------------------------- runs in company, hyper-parameters


def test_runs_with_their_own_hyper_parameters_are_those_run_alone() -> None:
    lr = torch.tensor([0.01, 0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    decay = torch.tensor([0.0, 0.1, 0.0, 0.2, 0.3], dtype=torch.float64)

    def optimiser(runs: Any) -> Any:
        return Sgd(lr[runs], weight_decay=decay[runs])

    options: dict[str, Any] = {"trackers": {"w": seen_weights}, "record": [0, 1, 20]}
    together = descend(Regression(), START, everything, optimiser(slice(None)), 20, **options)
    for run in range(RUNS):
        one = slice(run, run + 1)
        own = rows(DATA, one)
        alone = descend(
            Regression(), rows(START, one), lambda s, own=own: own, optimiser(one), 20, **options
        )
        assert_same(together, alone, one)


# ------------------------------------------------------------------------------------------ records


def test_a_record_at_k_is_taken_after_k_updates_and_0_is_the_start() -> None:
    steps = 6
    found = descend(
        Regression(),
        START,
        everything,
        Sgd(0.1),
        steps,
        trackers={"w": seen_weights, "loss": lambda s: s.loss, "step": lambda s: _steps(s)},
        record=[6, 0, 2, 2],
    )
    assert list(found.steps) == [0, 2, 6]
    assert found.records["w"].shape == (RUNS, 3, WIDTH)
    assert found.records["step"][0].tolist() == [0, 2, 6]
    assert torch.equal(found.records["w"][:, 0], START["w"])
    assert torch.equal(found.records["w"][:, 2], found.parameters["w"])
    two = descend(Regression(), START, everything, Sgd(0.1), 2)
    assert torch.equal(found.records["w"][:, 1], two.parameters["w"])
    # the loss of a state is that of the batch before its last update
    one = descend(Regression(), START, everything, Sgd(0.1), 1)
    expected = Regression().loss(one.parameters, DATA)
    torch.testing.assert_close(found.records["loss"][:, 1], expected, rtol=EXACT, atol=EXACT)
    assert found.records["loss"][:, 0].isnan().all()


def _steps(state: State) -> Tensor:
    return torch.full((RUNS,), state.step)


def test_without_a_list_only_the_end_is_recorded_and_without_trackers_nothing() -> None:
    found = descend(Regression(), START, everything, Sgd(0.1), 4, trackers={"w": seen_weights})
    assert list(found.steps) == [4] and found.records["w"].shape == (RUNS, 1, WIDTH)
    assert descend(Regression(), START, everything, Sgd(0.1), 4).records == {}


@pytest.mark.parametrize("record", [[-1, 3], [0, 5]])
def test_a_step_that_is_never_reached_cannot_be_recorded(record: list[int]) -> None:
    with pytest.raises(UsageError, match=r"record=.*must lie in 0..steps=4"):
        descend(Regression(), START, everything, Sgd(0.1), 4, record=record)


def test_batches_and_what_follows_an_update_are_called_once_a_step_in_order() -> None:
    asked: list[int] = []
    after: list[int] = []

    def batches(step: int) -> dict[str, Tensor]:
        asked.append(step)
        return DATA

    advanced: list[float] = []
    context = replace(Context(), advance=advanced.append)
    descend(
        Regression(),
        START,
        batches,
        Sgd(0.1),
        3,
        after_update=lambda state: after.append(state.step),
        context=context,
    )
    assert asked == [0, 1, 2] and after == [1, 2, 3] and advanced == [RUNS] * 3


def test_the_starting_parameters_are_left_as_they_were() -> None:
    before = {name: value.clone() for name, value in START.items()}
    descend(Regression(), START, everything, Sgd(0.1), 3)
    assert all(torch.equal(START[name], before[name]) for name in before)


# --------------------------------------------------------------------------------------------- time


def test_a_deadline_that_has_passed_ends_the_descent() -> None:
    context = Context(deadline=time.monotonic() - 1)
    with pytest.raises(OutOfTime):
        descend(Regression(), START, everything, Sgd(0.1), 3, context=context)
    far = Context(deadline=time.monotonic() + 1000)
    assert_same(
        descend(Regression(), START, everything, Sgd(0.1), 3, context=far),
        descend(Regression(), START, everything, Sgd(0.1), 3),
    )


def test_the_deadline_is_looked_at_before_every_step() -> None:
    stop = Event()
    done: list[int] = []

    def after(state: State) -> None:
        done.append(state.step)
        if state.step == 2:
            stop.set()

    with pytest.raises(OutOfTime, match="stopped"):
        descend(
            Regression(),
            START,
            everything,
            Sgd(0.1),
            5,
            after_update=after,
            context=Context(stop=stop),
        )
    assert done == [1, 2]
