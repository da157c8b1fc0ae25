"""Pruning within a descent: where a step begins, what stays of it, what a lost run keeps."""

from __future__ import annotations

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
    everything,
    rows,
    seen_weights,
)
from torch import Tensor

from rarefy.train.descent import automatic_gradients, descend
from rarefy.train.optimisers import Sgd


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
