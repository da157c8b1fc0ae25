"""Descent of many runs at once: gradients, batches, records, runs that go non-finite, deadlines."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import pytest
import torch
from small_contrastive import small
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, UsageError
from rarefy.core.rng import Draws, key
from rarefy.train.descent import (
    HandWritten,
    State,
    Trajectory,
    automatic_gradients,
    descend,
    minibatches,
)
from rarefy.train.optimisers import Adam, Sgd

EXACT = 1e-12
RUNS, SAMPLES, WIDTH = 5, 20, 3


@dataclass(frozen=True)
class Regression:
    """Half the mean squared error of a linear map, one a run."""

    def loss(self, parameters: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
        guess = (batch["x"] @ parameters["w"][:, :, None])[..., 0] + parameters["b"][:, None]
        return (guess - batch["y"]).square().mean(dim=1) / 2


@dataclass(frozen=True)
class ByHand(Regression):
    def gradients(
        self, parameters: dict[str, Tensor], batch: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        x, y = batch["x"], batch["y"]
        miss = (x @ parameters["w"][:, :, None])[..., 0] + parameters["b"][:, None] - y
        slope = (x * miss[..., None]).mean(dim=1)
        return miss.square().mean(dim=1) / 2, {"w": slope, "b": miss.mean(dim=1)}


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, Y = normals(RUNS, SAMPLES, WIDTH), normals(RUNS, SAMPLES, seed=1)
DATA = {"x": X, "y": Y}
START = {"w": normals(RUNS, WIDTH, seed=2), "b": normals(RUNS, seed=3)}


def everything(step: int) -> dict[str, Tensor]:
    return DATA


def seen_weights(state: State) -> Tensor:
    return state.parameters["w"]


def rows(values: dict[str, Tensor], runs: Any) -> dict[str, Tensor]:
    return {name: value[runs] for name, value in values.items()}


def assert_same(found: Trajectory, expected: Trajectory, at: Any = slice(None)) -> None:
    for name, value in expected.parameters.items():
        torch.testing.assert_close(found.parameters[name][at], value, rtol=EXACT, atol=EXACT)
    for name, value in expected.records.items():
        torch.testing.assert_close(found.records[name][at], value, rtol=EXACT, atol=EXACT)


# ---------------------------------------------------------------------------------------- gradients


def test_autograd_is_the_default_and_hand_written_gradients_give_the_same() -> None:
    automatic = descend(Regression(), START, everything, Sgd(0.1), 30)
    assert not isinstance(Regression(), HandWritten) and isinstance(ByHand(), HandWritten)
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


@pytest.mark.parametrize("rule", ["sgd", "adam"])
def test_runs_with_their_own_hyper_parameters_are_those_run_alone(rule: str) -> None:
    lr = torch.tensor([0.01, 0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    decay = torch.tensor([0.0, 0.1, 0.0, 0.2, 0.3], dtype=torch.float64)

    def optimiser(runs: Any) -> Any:
        if rule == "adam":
            return Adam(lr[runs], weight_decay=decay[runs])
        return Sgd(lr[runs], momentum=decay[runs], weight_decay=decay[runs])

    options: dict[str, Any] = {"trackers": {"w": seen_weights}, "record": [0, 1, 20]}
    together = descend(Regression(), START, everything, optimiser(slice(None)), 20, **options)
    for run in range(RUNS):
        one = slice(run, run + 1)
        own = rows(DATA, one)
        alone = descend(
            Regression(), rows(START, one), lambda s, own=own: own, optimiser(one), 20, **options
        )
        assert_same(together, alone, one)


def test_minibatches_are_drawn_per_run_and_the_same_in_any_company() -> None:
    keys = [key("minibatch", run) for run in range(RUNS)]
    batch = minibatches(Draws(keys, dtype=torch.float64), DATA, 4)
    together = descend(Regression(), START, batch, Sgd(0.1), 15)
    one = slice(3, 4)
    own = minibatches(Draws(keys[one], dtype=torch.float64), rows(DATA, one), 4)
    assert_same(together, descend(Regression(), rows(START, one), own, Sgd(0.1), 15), one)


def test_a_minibatch_keeps_inputs_and_targets_together_and_reaches_every_sample() -> None:
    number = torch.arange(SAMPLES, dtype=torch.float64).expand(RUNS, -1)
    stored = {"x": number[..., None], "y": 10 * number}
    batch = minibatches(Draws(list(range(RUNS))), stored, 7)
    met = []
    for step in range(60):
        found = batch(step)
        assert found["x"].shape == (RUNS, 7, 1) and torch.equal(10 * found["x"][..., 0], found["y"])
        met.append(found["y"])
    for run in range(RUNS):
        assert len(torch.cat(met, dim=1)[run].unique()) == SAMPLES
    assert not torch.equal(met[0], met[1]) and not torch.equal(met[0][0], met[0][1])


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


# -------------------------------------------------------------------------------- runs that explode

LOST = 2


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adam"])
def test_a_run_that_explodes_is_marked_and_the_others_do_not_notice(
    rule: str, by_hand: bool
) -> None:
    lr = torch.full((RUNS,), 0.1, dtype=torch.float64)
    lr[LOST] = 1e160  # squared, it overflows
    others = [run for run in range(RUNS) if run != LOST]

    def optimiser(rates: Tensor) -> Any:
        return {
            "sgd": Sgd(rates),
            "momentum": Sgd(rates, momentum=0.9),
            "adam": Adam(rates),
        }[rule]

    problem = ByHand() if by_hand else Regression()
    options: dict[str, Any] = {
        "trackers": {"w": seen_weights, "step": _steps_of, "loss": lambda s: s.loss},
        "record": range(11),
    }
    found = descend(problem, START, everything, optimiser(lr), 10, **options)
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
        optimiser(lr[others]),
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


# --------------------------------------------------------------------------------- what is left out


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
