"""A loss that is no number, a training with nothing in it: what is said and what is kept."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from small_pretrainings import METHODS, STEPS, batches, encoder, pretraining
from small_trainings import Enough, counted, stopped_after
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.nets.backbones import Encoder
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.pretraining import Pretraining, PretrainingHistory

CPU = torch.device("cpu")
BRANCHES = 2


class Breaks(nn.Module):
    """From call number ``at`` on its answers are no numbers, or their gradients are not."""

    def __init__(self, inner: nn.Module, at: int, where: str) -> None:
        super().__init__()
        self.inner, self.at, self.where, self.calls = inner, at, where, 0

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)
        self.calls += 1
        if self.calls <= self.at:
            return found
        if self.where == "forward":
            return found * math.nan
        found.register_hook(lambda gradient: gradient * math.nan)
        return found


class AlwaysDue(Checkpoint):
    """Written after every update, if it is good."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.steps: list[int] = []

    def due(self, seconds: float | None = None) -> bool:
        return True

    def save(self, state: dict[str, Any]) -> None:
        self.steps.append(state["step"])
        super().save(state)


def broken(method: str, update: int, where: str, **recipe: Any) -> Pretraining:
    """Whose update number ``update`` fails."""
    calls = update * (BRANCHES if method.startswith(("branches", "sdclr")) else 1)
    whole = encoder(depth=3 if method == "sdclr" else 2)
    breaks = Breaks(whole.projection, calls, where)
    made = pretraining(method, model=Encoder(whole.backbone, breaks), **recipe)
    breaks.calls = 0  # (to see what stands behind its layers it was called once)
    return made


@pytest.mark.quick(
    "sdclr-4-backward",
    "sdclr-7-forward",
    "pruned:0.5-7-backward",
    "pruned:0.5-4-forward",
    "simclr-2-forward",
)
@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("update", [2, STEPS, 2 * STEPS - 1])
@pytest.mark.parametrize("method", ["simclr", "pruned:0.5", "sdclr"])
def test_a_loss_that_is_no_number_ends_it_and_the_last_good_state_stays(
    method: str, update: int, where: str, tmp_path: Path
) -> None:
    checkpoint = AlwaysDue(tmp_path / "one.pt")
    made = broken(method, update, where)
    advanced: list[float] = []
    seen = made.run(counted(advanced), checkpoint)
    # a gradient that is no number spoils the weights; the loss says so an update later
    first = update if where == "forward" else update + 1
    assert seen.nonfinite_step == first
    assert made.step == (first // STEPS + 1) * STEPS  # losses are looked at once per epoch
    assert math.isnan(seen.loss[-1]) and len(seen.loss) == made.epoch
    assert sum(advanced) == pytest.approx(3)  # to the progress bar it is done
    # the last one that was written is the one before the trouble
    assert checkpoint.steps == list(range(1, update + 1))
    state = checkpoint.load(CPU)
    assert state is not None and state["step"] == update
    assert all(bool(one.isfinite().all()) for one in state["model"].values())
    assert state["history"]["nonfinite_step"] == -1
    assert not any(map(math.isnan, state["history"]["loss"]))
    again = broken(method, 99, where, learning_rate=0.01)  # what usually helps
    assert again.run(Context(), Checkpoint(checkpoint.path)).nonfinite_step == -1
    assert again.step == 3 * STEPS


@pytest.mark.parametrize("method", ["simclr", "sdclr"])
def test_the_very_last_update_may_be_the_one(method: str) -> None:
    seen = broken(method, 3 * STEPS - 1, "backward").run(Context())
    assert seen.nonfinite_step == 3 * STEPS - 1
    assert not any(map(math.isnan, seen.loss))


def test_a_branch_of_its_own_may_be_the_one() -> None:
    """Its parameters are not the model's."""
    made = pretraining("sdclr")
    assert made.pruner is not None
    made.run(Context())
    made.history = PretrainingHistory()
    next(iter(made.pruner.masked_branch.own.values())).data.fill_(math.nan)
    assert made.run(Context()).nonfinite_step == 3 * STEPS - 1


@pytest.mark.parametrize("method", METHODS)
def test_steps_that_are_far_too_large(method: str) -> None:
    """No warning, no error from inside: only the number of the step."""
    made = pretraining(method, learning_rate=1e25, warm_up=0.0)
    seen = made.run(Context())
    assert 0 < seen.nonfinite_step < STEPS == made.step
    assert math.isnan(seen.loss[0])


def test_nothing_is_watched_after_trouble() -> None:
    watched: list[int] = []
    broken("simclr", STEPS + 1, "forward").run(
        Context(), watch=lambda now: watched.append(now.epoch)
    )
    assert watched == [1]


def test_stopped_before_the_first_update_nothing_is_written(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    made = pretraining("pruned:0.5")
    with pytest.raises(Enough):
        made.run(stopped_after(0), checkpoint)
    assert not checkpoint.path.exists() and made.history == PretrainingHistory() and made.step == 0


def test_stopped_in_the_first_epoch_the_history_is_empty(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "one.pt")
    with pytest.raises(Enough):
        pretraining().run(stopped_after(1), checkpoint)
    state = checkpoint.load(CPU)
    assert state is not None and PretrainingHistory(**state["history"]) == PretrainingHistory()
    assert len(pretraining().run(Context(), checkpoint).loss) == 3


def test_a_training_of_one_update() -> None:
    made = pretraining("branches:0.3", shown=batches(6, 6), epochs=1)
    seen = made.run(Context())
    assert made.step == 1 and len(seen.loss) == 1 and math.isfinite(seen.uniformity[0])
    assert made.run(Context()) is seen and made.step == 1  # there is no more to do


def test_two_images_are_enough() -> None:
    """The smallest batch: one other image, two other views."""
    made = pretraining(shown=batches(2, 2), epochs=2)
    seen = made.run(Context())
    assert all(map(math.isfinite, seen.loss + seen.alignment + seen.uniformity))


def test_what_the_watcher_writes_down_stays() -> None:
    def watch(now: Pretraining) -> None:
        now.history.watched.setdefault("twice", []).append(2.0 * now.epoch)

    seen = pretraining().run(Context(), watch=watch)
    assert seen.watched == {"twice": [2.0, 4.0, 6.0]}
