"""An update whose gradients come from a recording: the training is the same, to the bit. (What a
GPU records is played here by a function that writes into fixed places, as a replay does.)"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
import torch
from small_pretrainings import METHODS, REMEMBERING, STEPS, differences, pretraining
from small_trainings import interrupted
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.cuda_graphs import RecordedGradients
from rarefy.train.simclr import pretraining as room
from rarefy.train.simclr.objective import Contrast
from rarefy.train.simclr.pretraining import Pretraining


def played(
    work: Callable[[Tensor], Contrast],
    example: Tensor,
    weights: Sequence[nn.Parameter],
    buffers: Iterable[Tensor],
) -> RecordedGradients[Contrast]:
    batch = example.clone()
    places = [torch.full_like(weight, torch.nan) for weight in weights]
    buffers = list(buffers)
    before = [one.clone() for one in buffers]
    first = work(batch)  # a trial, which leaves no trace
    for one, value in zip(buffers, before, strict=True):
        one.copy_(value)
    found = Contrast(*(None if one is None else torch.full_like(one, torch.nan) for one in first))

    def replay() -> None:
        for weight in weights:
            weight.grad = None
        new = work(batch)
        for place, weight in zip(places, weights, strict=True):
            assert weight.grad is not None
            place.copy_(weight.grad)
        for place, value in zip(found, new, strict=True):
            if place is not None:
                place.copy_(value)
        for weight in weights:
            weight.grad = None  # a replay does not touch attributes of weights

    for weight, place in zip(weights, places, strict=True):
        weight.grad = place
    made = RecordedGradients(replay, batch, found, weights)
    for weight in weights:
        weight.grad = None
    return made


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Pretraining]:
    monkeypatch.setattr(room, "record_gradients", played)

    def make(method: str) -> Pretraining:
        made = pretraining(method, warm_up=0.0, epochs=2)
        made._record_it = made._to_record = True
        return made

    return make


def watch(seen: list[bool]) -> Callable[[Pretraining], None]:
    """As somebody's watcher may do, which sets gradients to None."""

    def look(now: Pretraining) -> None:
        seen.append(now.recording is not None)
        now.optimizer.zero_grad(set_to_none=True)
        now.export_encoder()

    return look


@pytest.mark.quick(
    "branches:0.3+noise+own-norms",
    "sdclr",
    "branches:0.3+both",
    "branches:0.3+dropout",
    "pruned:0.5+harmonise:4",
)
@pytest.mark.parametrize("method", [*METHODS, *REMEMBERING])
def test_the_training_is_the_same(method: str, recorded: Callable[[str], Pretraining]) -> None:
    plain, made = pretraining(method, warm_up=0.0, epochs=2), recorded(method)
    plain.run(Context())
    seen: list[bool] = []
    made.run(Context(), watch=watch(seen))
    assert seen == [True, True]
    assert differences(plain, made) == []
    # and nothing holds on to the recording
    assert made.recording is None
    assert all(one.grad is None for one in made.model.parameters())


@pytest.mark.parametrize("method", ["pruned:0.5", "sdclr"])
def test_stopped_it_ends_as_if_undisturbed(
    method: str, recorded: Callable[[str], Pretraining], tmp_path: Path
) -> None:
    plain = pretraining(method, warm_up=0.0, epochs=2)
    plain.run(Context())
    again = interrupted(lambda: recorded(method), Checkpoint(tmp_path / "one.pt"), STEPS + 1)
    assert differences(plain, again) == []


def test_losses_are_not_one_tensor(recorded: Callable[[str], Pretraining]) -> None:
    made = recorded("simclr")
    losses = [made.update(batch) for batch in made.batches.epoch(0)]
    assert len({loss.item() for loss in losses}) == len(losses)


def test_a_batch_of_another_size_is_refused(recorded: Callable[[str], Pretraining]) -> None:
    made = recorded("simclr")
    batch = next(iter(made.batches.epoch(0)))
    made.update(batch)
    with pytest.raises(ValueError, match=r"recorded for \(2, 6, .*not \(2, 1,"):
        made.update(batch[:, :1])


def test_where_nothing_can_be_recorded_it_trains_without(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(room, "record_gradients", lambda *given: asked.append(given))
    plain, made = (pretraining("pruned:0.5", epochs=1) for _ in range(2))
    made._record_it = made._to_record = True
    plain.run(Context())
    made.run(Context())
    assert len(asked) == 1  # it is tried once
    assert differences(plain, made) == []


def test_several_processes_record_nothing_and_neither_does_a_cpu() -> None:
    assert not pretraining("simclr")._to_record
