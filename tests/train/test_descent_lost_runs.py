"""A run that stops being finite is marked, keeps its last weights and leaves the others alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_regression import (
    DATA,
    EXACT,
    LOST,
    RUNS,
    START,
    ByHand,
    Regression,
    X,
    Y,
    everything,
    rows,
    seen_weights,
)
from torch import Tensor

from rarefy.train.descent import State, automatic_gradients, descend
from rarefy.train.optimisers import Sgd


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_run_that_explodes_is_marked_and_the_others_do_not_notice(by_hand: bool) -> None:
    lr = torch.full((RUNS,), 0.1, dtype=torch.float64)
    lr[LOST] = 1e160  # squared, it overflows
    others = [run for run in range(RUNS) if run != LOST]
    problem = ByHand() if by_hand else Regression()
    options: dict[str, Any] = {
        "trackers": {"w": seen_weights, "step": _steps_of, "loss": lambda s: s.loss},
        "record": range(11),
    }
    found = descend(problem, START, everything, Sgd(lr), 10, **options)
    lost_at = int(found.nonfinite_step[LOST])
    assert 0 <= lost_at < 10
    assert found.nonfinite_step[others].tolist() == [-1] * len(others)
    # records up to the last finite weights, NaN from the update that failed
    assert found.records["w"][LOST, : lost_at + 1].isfinite().all()
    assert found.records["w"][LOST, lost_at + 1 :].isnan().all()
    assert found.records["loss"][LOST, lost_at + 1 :].isnan().all()
    assert torch.equal(found.parameters["w"][LOST], found.records["w"][LOST, lost_at])
    # whole numbers cannot be NaN and go on
    assert found.records["step"][LOST].tolist() == list(range(11))
    without = descend(
        problem,
        rows(START, others),
        lambda step: rows(DATA, others),
        Sgd(lr[others]),
        10,
        **options,
    )
    assert torch.equal(found.parameters["w"][others], without.parameters["w"])
    assert torch.equal(found.records["w"][others], without.records["w"])


def _steps_of(state: State) -> Tensor:
    return torch.full((len(state.parameters["w"]),), state.step)


def test_a_run_lost_at_the_first_update_keeps_its_start() -> None:
    lr = torch.full((RUNS,), 0.1, dtype=torch.float64)
    lr[LOST] = float("inf")
    found = descend(Regression(), START, everything, Sgd(lr), 3)
    assert found.nonfinite_step.tolist() == [-1, -1, 0, -1, -1]
    assert torch.equal(found.parameters["w"][LOST], START["w"][LOST])
    assert torch.equal(found.parameters["b"][LOST], START["b"][LOST])


def test_a_loss_that_is_not_finite_counts_even_if_the_weights_are() -> None:
    wrong = {"x": X, "y": Y.clone()}
    wrong["y"][LOST, 0] = float("nan")

    class Deaf(Regression):
        def gradients(self, parameters, batch):  # type: ignore[no-untyped-def]
            loss = self.loss(parameters, batch)
            return loss, {name: torch.zeros_like(value) for name, value in parameters.items()}

    found = descend(Deaf(), START, lambda step: DATA if step < 2 else wrong, Sgd(0.1), 4)
    assert found.nonfinite_step.tolist() == [-1, -1, 2, -1, -1]


def test_a_lost_run_stays_lost_even_when_its_loss_recovers() -> None:
    wrong = {"x": X, "y": Y.clone()}
    wrong["y"][LOST, 0] = float("inf")
    found = descend(
        Regression(),
        START,
        lambda step: wrong if step == 1 else DATA,
        Sgd(0.1),
        5,
        trackers={"w": seen_weights},
        record=range(6),
    )
    assert int(found.nonfinite_step[LOST]) == 1
    assert found.records["w"][LOST, 2:].isnan().all()
    assert torch.equal(found.parameters["w"][LOST], found.records["w"][LOST, 1])


# ------------------------------------------------------------------------------------------- pruned


class Halves:
    """A pruning that writes down what it is shown, halves ``w`` before a step and puts ``b`` back
    after it."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int]] = []
        self.begun: list[dict[str, Tensor]] = []
        self.step = -1

    def before(self, step: int, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        self.shown.append(("before", step))
        self.step = step
        self.begun.append(parameters)
        return {**parameters, "w": parameters["w"] / 2}

    def after(self, before: dict[str, Tensor], moved: dict[str, Tensor]) -> dict[str, Tensor]:
        self.shown.append(("after", self.step))
        assert torch.equal(before["w"], self.begun[-1]["w"] / 2)
        return {**moved, "b": before["b"]}


@pytest.mark.parametrize("by_hand", [False, True])
def test_pruning_chooses_where_a_step_begins_and_what_stays_of_it(by_hand: bool) -> None:
    problem, halves, order = ByHand() if by_hand else Regression(), Halves(), []

    def batches(step: int) -> dict[str, Tensor]:
        order.append(list(halves.shown))
        return DATA

    found = descend(
        problem,
        START,
        batches,
        Sgd(0.1),
        3,
        trackers={"w": seen_weights, "loss": lambda s: s.loss},
        record=range(4),
        after_update=lambda state: halves.shown.append(("update", state.step)),
        pruning=halves,
    )
    assert halves.shown == [
        (what, step + (what == "update"))
        for step in range(3)
        for what in ("before", "after", "update")
    ]
    weights, bias = START["w"], START["b"]
    for step in range(3):
        assert torch.equal(halves.begun[step]["w"], found.records["w"][:, step])
        loss, slope = automatic_gradients(Regression(), {"w": weights / 2, "b": bias}, DATA)
        weights = weights / 2 - 0.1 * slope["w"]
        torch.testing.assert_close(found.records["w"][:, step + 1], weights, rtol=EXACT, atol=EXACT)
        # the loss of a step is that of the weights it began with
        torch.testing.assert_close(found.records["loss"][:, step + 1], loss, rtol=EXACT, atol=EXACT)
    assert torch.equal(found.parameters["b"], bias)


def test_a_lost_run_keeps_the_weights_it_had_before_pruning_touched_them() -> None:
    lr = torch.full((RUNS,), 0.1, dtype=torch.float64)
    lr[LOST] = float("inf")
    found = descend(Regression(), START, everything, Sgd(lr), 3, pruning=Halves())
    assert found.nonfinite_step.tolist() == [-1, -1, 0, -1, -1]
    assert torch.equal(found.parameters["w"][LOST], START["w"][LOST])
    others = [run for run in range(RUNS) if run != LOST]
    alone = descend(
        Regression(),
        rows(START, others),
        lambda step: rows(DATA, others),
        Sgd(lr[others]),
        3,
        pruning=Halves(),
    )
    assert torch.equal(found.parameters["w"][others], alone.parameters["w"])
