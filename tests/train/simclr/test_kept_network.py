"""A network that was kept on the way: the same again, with its masks, whatever came after."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from same_trainings import unlike
from small_pretrainings import METHODS, everything, pretraining

from rarefy.core.contracts import Context
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.pretraining import Pretraining

OF_THE_NETWORK = ("learnt ", "masked ", "branch ", "model ")


def network_of(made: Pretraining) -> dict[str, torch.Tensor]:
    found = {
        name: value.clone() if isinstance(value, torch.Tensor) else value
        for name, value in everything(made).items()
        if name.startswith(OF_THE_NETWORK)
    }
    assert any(name.startswith("learnt ") for name in found)
    if made.pruner is not None:
        found |= {f"mask {name}": mask.clone() for name, mask in made.pruner.masks.items()}
    return found


@pytest.mark.quick("sdclr", "pruned:0.5+neuron", "branches:0.3", "branches:0.3+own-norms+filter")
@pytest.mark.parametrize("method", METHODS)
def test_going_back_gives_the_network_that_was_kept(method: str, tmp_path: Path) -> None:
    then: dict[str, torch.Tensor] = {}

    def keep_the_second(now: Pretraining) -> None:
        if now.epoch == 2:
            now.keep()
            then.update(network_of(now))

    made = pretraining(method, epochs=4)
    made.run(Context(), watch=keep_the_second)
    end, checkpoint = network_of(made), Checkpoint(tmp_path / "one.pt")
    assert made.history.kept_epoch == 2 and unlike(then, end)
    checkpoint.save(made.state_dict())
    made.go_back()
    assert unlike(then, network_of(made)) == []
    # another process has it too
    again = pretraining(method, epochs=4)
    again.run(Context(), checkpoint)
    assert unlike(end, network_of(again)) == [] and again.history.kept_epoch == 2
    again.go_back()
    assert unlike(then, network_of(again)) == []


def test_nothing_kept_is_nothing_changed() -> None:
    made = pretraining()
    made.run(Context())
    before = network_of(made)
    made.go_back()
    assert unlike(before, network_of(made)) == [] and made.history.kept_epoch == 0


def test_enough_ends_a_training_and_a_second_run_does_nothing() -> None:
    done: list[float] = []

    def stop(now: Pretraining) -> None:
        if now.epoch == 2:
            now.history.stopped_epoch = now.epoch

    made = pretraining(epochs=5)
    seen = made.run(Context(advance=done.append), watch=stop)
    assert made.epoch == 2 and len(seen.loss) == 2 and sum(done) == pytest.approx(5)
    made.run(Context(), watch=stop)
    assert made.epoch == 2
