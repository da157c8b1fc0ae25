"""A training that was stopped, at any update and by anything, ends as if nobody had stopped it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_trainings import (
    BATCH,
    PRUNING_SPECS,
    STEPS,
    Enough,
    batches,
    counted,
    differences,
    interrupted,
    network,
    stopped_after,
    training,
)
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import RunError
from rarefy.train import checkpoints
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.image_batches import Augmentation
from rarefy.train.supervised import Training

OPTIMIZERS = ("sgd", "adamw")


def watch(now: Training) -> None:
    """As a study does: what was seen is written down in the history."""
    now.history.watched.setdefault("loss", []).append(now.history.loss[-1])


@pytest.mark.quick(
    "project-adamw", "masked once-sgd", "dense rule-adamw", "masked rule, every 3-adamw"
)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", PRUNING_SPECS)
def test_stopped_before_any_update_it_ends_as_if_undisturbed(
    name: str, optimizer: str, tmp_path: Path
) -> None:
    def make() -> Training:
        return training(name, dropout=0.3, optimizer=optimizer, epochs=2)

    undisturbed = make()
    undisturbed.run(Context())
    every = [0] + (2 * STEPS - 1) * [1]
    resumed = interrupted(make, Checkpoint(tmp_path / "one.pt"), *every)
    assert differences(undisturbed, resumed) == []


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(sorted(PRUNING_SPECS)),
    optimizer=st.sampled_from(OPTIMIZERS),
    fresh=st.booleans(),
    stops=st.lists(st.integers(0, 4), min_size=2, max_size=3),
)
def test_stopped_several_times_it_ends_as_if_undisturbed(
    name: str, optimizer: str, fresh: bool, stops: list[int], tmp_path: Path
) -> None:
    def make() -> Training:
        shown = batches(changes=Augmentation(1, True, 0.2, fresh))
        return training(name, shown=shown, optimizer=optimizer)

    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.remove()
    undisturbed = make()
    undisturbed.run(Context())
    assert differences(undisturbed, interrupted(make, checkpoint, *stops)) == []


def test_a_training_that_is_not_gone_on_with_differs() -> None:
    """Else the tests above could not fail."""
    whole, other = training("project", dropout=0.3), training("project", dropout=0.3)
    whole.run(Context())
    torch.manual_seed(24)  # other dropout
    other.run(Context())
    assert "model 0.weight" in differences(whole, other)


def test_a_finished_checkpoint_is_read_and_nothing_is_trained(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    whole = training("project")
    whole.run(Context())
    checkpoint.save(whole.state_dict())
    again = training("project")
    advanced: list[float] = []
    again.run(counted(advanced), checkpoint)
    assert differences(whole, again) == [] and sum(advanced) == pytest.approx(3)


@pytest.mark.parametrize("step", [1, STEPS, STEPS + 1])
def test_progress_adds_up_over_a_stop(step: int, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    with pytest.raises(Enough):
        training().run(stopped_after(step), checkpoint)
    advanced: list[float] = []
    training().run(counted(advanced), checkpoint)
    assert advanced[0] == pytest.approx(step / STEPS)  # at once what was done before
    assert sum(advanced) == pytest.approx(3)


@pytest.mark.quick("3", "6", "10")
@pytest.mark.parametrize("at", range(1, 2 * STEPS + 1))
def test_killed_after_a_checkpoint_on_the_way_it_loses_nothing(at: int, tmp_path: Path) -> None:
    """Checkpoints are also written by the clock: after any update, also the last of an epoch."""
    whole = training("project, every 3")
    whole.run(Context(), watch=watch)

    class Killed(BaseException):
        pass

    class Kill(Checkpoint):
        finished = 0

        def due(self, seconds: float | None = None) -> bool:
            return True

        def save(self, state: dict[str, Any]) -> None:
            if state["step"] > at or self.finished:
                return
            if state["step"] == at:
                super().save(state)
                self.finished = 1
                raise Killed

    with pytest.raises(Killed):
        training("project, every 3").run(Context(), Kill(tmp_path / "one.pt"), watch)
    again = training("project, every 3")
    advanced: list[float] = []
    again.run(counted(advanced), Checkpoint(tmp_path / "one.pt"), watch)
    assert differences(whole, again) == []
    assert sum(advanced) == pytest.approx(3)


class Interrupts(nn.Module):
    """Ctrl-C comes in the middle of an update: after the forward pass, in the backward pass."""

    def __init__(self, at: int, where: str) -> None:
        super().__init__()
        self.inner, self.at, self.where, self.calls = network(), at, where, 0

    def forward(self, x: Tensor) -> Tensor:
        answers: Tensor = self.inner(x)
        self.calls += 1
        if self.calls == self.at + 1:
            if self.where == "forward":
                raise KeyboardInterrupt
            answers.register_hook(self._stop)
        return answers

    def _stop(self, gradient: Tensor) -> Tensor:
        raise KeyboardInterrupt


@pytest.mark.quick("6-watch", "1-optimizer", "4-forward", "6-end of epoch", "6-backward")
@pytest.mark.parametrize("where", ["forward", "backward", "optimizer", "end of epoch", "watch"])
@pytest.mark.parametrize("at", [1, STEPS - 1, STEPS + 1])
def test_stopped_by_ctrl_c_anywhere_it_ends_as_if_undisturbed(
    at: int, where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half an update must not be kept: then the state before it, or an older one, is."""
    checkpoint = Checkpoint(tmp_path / "one.pt")

    def make(at: int) -> Training:
        return training("dense rule", model=Interrupts(at, where))

    whole = make(-1)
    whole.run(Context(), watch=watch)
    stopped = make(at if where in ("forward", "backward") else -1)

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def watch_once(now: Training) -> None:
        if where == "watch" and now.epoch == at // STEPS + 1:
            raise KeyboardInterrupt
        watch(now)

    if where == "optimizer":
        # after the weights have moved, before anybody has counted it
        calls, step = [0], stopped.optimizer.step

        def moved(*_: Any, **__: Any) -> None:
            step()
            calls[0] += 1
            if calls[0] == at + 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(stopped.optimizer, "step", moved)
    if where == "end of epoch":
        monkeypatch.setattr(stopped, "_end_of_epoch", interrupt)
    with pytest.raises(KeyboardInterrupt):
        stopped.run(Context(), checkpoint, watch_once)
    again = make(-1)
    again.run(Context(), checkpoint, watch)
    assert differences(whole, again) == []


def test_ctrl_c_between_two_updates_keeps_what_was_trained(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    with pytest.raises(KeyboardInterrupt):
        training("project").run(stopped_after(7, KeyboardInterrupt), checkpoint)
    state = checkpoint.load(torch.device("cpu"))
    assert state is not None and state["step"] == 7
    assert len(state["history"]["loss"]) == 7 // STEPS
    assert int(state["right"]) <= BATCH * (7 % STEPS)


def test_a_loss_that_was_no_number_is_found_after_a_stop(tmp_path: Path) -> None:
    """The first half of an epoch was seen by another process than its end."""
    checkpoint = Checkpoint(tmp_path / "one.pt")
    first = training(learning_rate=1e30, warm_up=0.0)
    with pytest.raises(Enough):
        first.run(stopped_after(STEPS - 1), checkpoint)
    bad = (~torch.isfinite(first._losses)).nonzero()[0].item()
    again = training(learning_rate=1e30, warm_up=0.0)
    assert again.run(Context(), checkpoint).nonfinite_step == bad < STEPS - 1


def test_a_damaged_checkpoint_means_starting_over(tmp_path: Path, logged: list[str]) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    whole = training("project")
    whole.run(Context())
    with pytest.raises(Enough):
        training("project").run(stopped_after(4), checkpoint)
    checkpoint.path.write_bytes(checkpoint.path.read_bytes()[:1000])
    again = training("project")
    again.run(Context(), checkpoint)
    assert "starting over" in "\n".join(logged)
    assert differences(whole, again) == []


def wider() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(25, 3))


@pytest.mark.parametrize("made", ["another network", "another rule", "another file", "odd"])
def test_a_checkpoint_of_something_else_is_one_line(made: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    with pytest.raises(Enough):
        training("project").run(stopped_after(4), checkpoint)
    if made == "another rule":
        (tmp_path / "one.pt").unlink()
        with pytest.raises(Enough):
            training("dense").run(stopped_after(4), checkpoint)  # there is no pruner in it
    if made == "another file":
        checkpoint.save({"step": 4})
    if made == "odd":
        checkpoint.save({**(checkpoint.load(torch.device("cpu")) or {}), "random": "4"})
    again = training("project", model=wider() if made == "another network" else None)
    with pytest.raises(RunError, match="one.pt is of another network .*; remove it$") as caught:
        again.run(Context(), checkpoint)
    assert "\n" not in str(caught.value)
    assert checkpoint.path.exists()  # it may be somebody's


def test_a_checkpoint_is_written_by_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY_SECONDS", 0.0)
    checkpoint = Checkpoint(tmp_path / "one.pt")
    training().run(Context(), checkpoint)
    state = checkpoint.load(torch.device("cpu"))
    assert state is not None and state["step"] > 2 * STEPS


def test_a_checkpoint_of_a_gpu_is_gone_on_with_on_a_cpu(tmp_path: Path) -> None:
    """A store may be gone on with on another machine."""
    whole = training("project")
    whole.run(Context())
    begun = training("project")
    with pytest.raises(Enough):
        begun.run(stopped_after(4))
    state = {**begun.state_dict(), "cuda random": torch.zeros(16, dtype=torch.uint8)}
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.save(state)
    again = training("project")
    again.run(Context(), checkpoint)
    assert differences(whole, again) == []
