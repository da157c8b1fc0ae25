"""A contrastive training that was stopped, at any update and by anything, ends as if nobody had."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_pretrainings import (
    METHODS,
    REMEMBERING,
    STEPS,
    batches,
    counting_compiler,
    differences,
    encoder,
    everything,
    pretraining,
)
from small_trainings import Enough, counted, interrupted, stopped_after, training

from rarefy.core.contracts import Context
from rarefy.core.errors import OutOfTime, RunError
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.pretraining import Pretraining

EPOCHS = 2
CPU = torch.device("cpu")


def watch(now: Pretraining) -> None:
    """As a tool does: what was seen is written down in the history."""
    now.history.watched.setdefault("loss", []).append(now.history.loss[-1])


@pytest.mark.quick(
    "sdclr-sgd",
    "pruned:0.5-adamw",
    "branches:0.3+frozen-sgd",
    "branches:0.3+boost+harmonise:6+schedule-sgd",
)
@pytest.mark.parametrize(
    ("method", "optimizer"),
    [
        *((one, "sgd") for one in (*METHODS, *REMEMBERING)),
        ("pruned:0.5", "adamw"),
        ("sdclr", "adamw"),
    ],
)
def test_stopped_before_any_update_it_ends_as_if_undisturbed(
    method: str, optimizer: str, tmp_path: Path
) -> None:
    def make() -> Pretraining:
        rate = 0.1 if optimizer == "sgd" else 0.01
        return pretraining(
            method, dropout=0.3, optimizer=optimizer, learning_rate=rate, epochs=EPOCHS
        )

    undisturbed = make()
    undisturbed.run(Context())
    # in the first epoch, between the epochs, in the second, before the last update
    stops = (1, STEPS - 1, 1, STEPS - 2)
    assert sum(stops) == EPOCHS * STEPS - 1
    resumed = interrupted(make, Checkpoint(tmp_path / "one.pt"), *stops)
    assert differences(undisturbed, resumed) == []


# torch 2.13's own compiler keeps this one from being shown, but here warnings are errors
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_compiled_and_stopped_it_ends_as_if_undisturbed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a graph holds on to (masks, norms of the branch) is what a checkpoint brings back."""
    counter = counting_compiler(monkeypatch)

    def make() -> Pretraining:
        torch._dynamo.reset()  # as in a new process: nothing is compiled yet
        return pretraining("branches:0.3+own-norms+step", compiled=True, epochs=EPOCHS, warm_up=0.0)

    undisturbed = make()
    undisturbed.run(Context())
    assert counter.frame_count == 2  # the network and the loss
    resumed = interrupted(make, Checkpoint(tmp_path / "one.pt"), STEPS + 1)
    assert counter.frame_count == 6
    torch._dynamo.reset()
    assert any(undisturbed.history.churn), "the test needs masks that move"
    assert differences(undisturbed, resumed) == []


def test_what_is_compared() -> None:
    """Own norms, statistics of the branch, moments, masks: else the test above says little."""
    made = pretraining("sdclr", epochs=1)
    made.run(Context())
    names = set(everything(made))
    assert {
        "branch backbone.network.1.weight",
        "branch backbone.network.1.running_mean",
        "branch projection.layers.1.bias",
        "mask backbone.network.4.weight",
        "optimizer 0 momentum_buffer",
        "alignment",
        "churn",
    } <= names
    # all parameters have moments, those of the branch too
    own = 2 * 4
    shared = len(list(made.model.parameters()))
    assert sum(name.endswith("momentum_buffer") for name in names) == shared + own
    other = pretraining("sdclr", shown=batches(run_key=18), epochs=1)
    other.run(Context())
    assert "branch backbone.network.1.weight" in differences(made, other)


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(method=st.sampled_from(METHODS), stops=st.lists(st.integers(0, 3), min_size=2, max_size=3))
def test_stopped_several_times_it_ends_as_if_undisturbed(
    method: str, stops: list[int], tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    checkpoint.remove()
    undisturbed = pretraining(method)
    undisturbed.run(Context())
    resumed = interrupted(lambda: pretraining(method), checkpoint, *stops)
    assert differences(undisturbed, resumed) == []


@pytest.mark.parametrize("method", ["pruned:0.5", "sdclr"])
def test_stopped_by_a_deadline(method: str, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    made = pretraining(method)
    # it passes while the fifth update is under way
    done: list[float] = []
    late = dataclasses.replace(Context(), deadline=time.monotonic() + 3600)

    def advance(amount: float) -> None:
        done.append(amount)
        if len(done) == 5:
            object.__setattr__(late, "deadline", time.monotonic() - 1)

    object.__setattr__(late, "advance", advance)
    with pytest.raises(OutOfTime, match="--max-seconds"):
        made.run(late, checkpoint, watch)
    state = checkpoint.load(CPU)
    assert state is not None and state["step"] == 5 == made.step
    again, undisturbed = pretraining(method), pretraining(method)
    again.run(Context(), checkpoint, watch)
    undisturbed.run(Context(), watch=watch)
    assert differences(undisturbed, again) == []


@pytest.mark.quick("sdclr-4", "pruned:0.5+neuron-6")
@pytest.mark.parametrize("at", [1, STEPS, STEPS + 2])
@pytest.mark.parametrize("method", ["pruned:0.5+neuron", "sdclr"])
def test_killed_after_a_checkpoint_by_the_clock_it_loses_nothing(
    method: str, at: int, tmp_path: Path
) -> None:
    class Killed(BaseException):
        pass

    class Kill(Checkpoint):
        def due(self, seconds: float | None = None) -> bool:
            return True

        def save(self, state: dict[str, Any]) -> None:
            if state["step"] == at and not self.path.exists():
                super().save(state)
                raise Killed

    whole = pretraining(method)
    whole.run(Context(), watch=watch)
    with pytest.raises(Killed):
        pretraining(method).run(Context(), Kill(tmp_path / "one.pt"), watch)
    again = pretraining(method)
    advanced: list[float] = []
    again.run(counted(advanced), Checkpoint(tmp_path / "one.pt"), watch)
    assert differences(whole, again) == [] and sum(advanced) == pytest.approx(3)


def test_a_finished_checkpoint_is_read_and_nothing_is_trained(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    whole = pretraining("sdclr")
    whole.run(Context())
    checkpoint.save(whole.state_dict())
    again = pretraining("sdclr")
    again.run(Context(), checkpoint)
    assert differences(whole, again) == []


@pytest.mark.parametrize(
    "made", ["backbone", "method", "branch", "head", "batch", "kind of training", "file"]
)
def test_a_checkpoint_of_something_else_is_one_line_with_its_path(
    made: str, tmp_path: Path
) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    theirs: dict[str, Any] = {
        "backbone": {"model": encoder(width=7)},
        "method": {"method": "simclr"},
        "branch": {"method": "branches:0.1"},
        "head": {"model": encoder(depth=2)},
        "batch": {"shown": batches(batch=5)},
    }
    if made == "kind of training":
        other = training()
        with pytest.raises(Enough):
            other.run(stopped_after(2), checkpoint)
    elif made == "file":
        checkpoint.save({"step": 2})
    else:
        chosen = {"method": "sdclr", **theirs[made]}
        if "model" not in chosen:
            chosen["model"] = encoder(depth=3)
        with pytest.raises(Enough):
            pretraining(**chosen).run(stopped_after(2), checkpoint)
    with pytest.raises(RunError) as caught:
        pretraining("sdclr").run(Context(), checkpoint)
    said = str(caught.value)
    assert said.startswith(f"checkpoint {checkpoint.path} is of another network (")
    assert said.endswith("; remove it") and "\n" not in said
    assert checkpoint.path.exists()  # it may be somebody's


def test_a_history_of_another_training_is_refused_too(tmp_path: Path) -> None:
    """The same network, but what was seen on its way was something else."""
    checkpoint = Checkpoint(tmp_path / "one.pt")
    begun = pretraining()
    with pytest.raises(Enough):
        begun.run(stopped_after(2))
    checkpoint.save({**begun.state_dict(), "history": {"accuracy": [0.5]}})
    with pytest.raises(RunError, match="one.pt is of another network .*accuracy"):
        pretraining().run(Context(), checkpoint)
