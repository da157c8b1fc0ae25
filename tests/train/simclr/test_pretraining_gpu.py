"""On a GPU loss and gradients of a batch are one recording: the training is the one without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_pretrainings import METHODS, REMEMBERING, STEPS, encoder, everything, pretraining
from small_trainings import interrupted
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.nets.backbones import Encoder
from rarefy.pruning.masks import keep_largest
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.simclr.pretraining import Pretraining

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch's own, from the first product in the thread of the backward pass
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),
]
NEAR: dict[str, Any] = {"rtol": 0, "atol": 2e-3}
"""Sums in another order, over a dozen updates; masks and steps are compared exactly."""


@pytest.fixture(autouse=True)
def full_precision() -> Iterator[None]:
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        yield


def on_gpu(method: str, graphs: bool, **options: Any) -> Pretraining:
    return pretraining(method, device="cuda", graphs=graphs, learning_rate=0.02, **options)


def same(first: Pretraining, second: Pretraining) -> None:
    one, other = everything(first), everything(second)
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            torch.testing.assert_close(other[name], value, msg=name, **NEAR)
        elif isinstance(value, Tensor):
            assert (other[name] != value).double().mean() < 0.03, name  # a tie at the threshold
        elif isinstance(value, list):
            assert other[name] == pytest.approx(value, abs=0.02), name
        else:
            assert other[name] == value, name


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", [*METHODS, *REMEMBERING])
def test_a_training_with_and_without_a_recording_agrees(method: str, compiled: bool) -> None:
    one_of_each = ("simclr", "pruned:0.5", "sdclr", "branches:0.3+both", "branches:0.3+dropout")
    if compiled and method not in (*one_of_each, REMEMBERING[2]):
        pytest.skip("compiling takes long: one of each kind")
    plain, graphed = on_gpu(method, False), on_gpu(method, True, compiled=compiled)
    seen: list[bool] = []
    plain.run(Context(), watch=lambda now: seen.append(now.recording is not None))
    graphed.run(Context(), watch=lambda now: seen.append(now.recording is not None))
    assert seen == [False] * 3 + [True] * 3
    same(plain, graphed)


def test_masks_act_in_a_compiled_training_after_another_without() -> None:
    """Compiled code does not look at hooks by itself."""
    torch._dynamo.config.skip_nnmodule_hook_guards = True  # as in a new process
    torch._dynamo.reset()
    losses = {}
    for method in ("simclr", "pruned:0.5+neuron"):
        for compiled in (True, False):
            made = on_gpu(method, compiled, compiled=compiled)
            losses[method, compiled] = made.run(Context()).loss
    for method in ("simclr", "pruned:0.5+neuron"):
        assert losses[method, True] == pytest.approx(losses[method, False], abs=0.02)
    assert losses["simclr", False] != pytest.approx(losses["pruned:0.5+neuron", False], abs=0.1)


def test_two_recorded_trainings_in_turn() -> None:
    made = [on_gpu(method, True) for method in ("simclr", "sdclr")]
    plain = [on_gpu(method, False) for method in ("simclr", "sdclr")]
    for trainings in (made, plain):
        for batches in zip(*(one.batches.epoch(0) for one in trainings), strict=True):
            for one, batch in zip(trainings, batches, strict=True):
                one.advance(batch)
    for one, other in zip(plain, made, strict=True):
        same(one, other)


@pytest.mark.parametrize("method", ["simclr", "pruned:0.5", "sdclr"])
def test_recording_leaves_no_trace(method: str) -> None:
    made = on_gpu(method, True, dropout=0.5)
    batch = next(iter(made.batches.epoch(0)))
    before = {
        name: value.clone() for name, value in everything(made).items() if isinstance(value, Tensor)
    }
    random = torch.cuda.get_rng_state()
    made.model.train()
    made._record(batch)
    assert made.recording is not None
    after = everything(made)
    assert [name for name, value in before.items() if not torch.equal(after[name], value)] == []
    assert torch.equal(torch.cuda.get_rng_state(), random)


@pytest.mark.parametrize("method", ["pruned:0.5", "sdclr"])
def test_a_stopped_training_goes_on(method: str, tmp_path: Path) -> None:
    whole = on_gpu(method, True)
    whole.run(Context())
    for step in (2, STEPS, STEPS + 3):
        again = interrupted(lambda: on_gpu(method, True), Checkpoint(tmp_path / f"{step}.pt"), step)
        same(whole, again)


class Looks(Encoder):
    """At values, which a recording cannot see."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (2.0 if x.sum().item() > 0 else 1.0)


class Draws(Encoder):
    """On the host, which a recording would repeat for ever."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * (1 + torch.rand(1).item())


@pytest.mark.parametrize("kind", [Looks, Draws])
def test_an_encoder_that_cannot_be_recorded(kind: type[Encoder]) -> None:
    def made(graphs: bool) -> Pretraining:
        own = encoder(dropout=0.5)
        return on_gpu("simclr", graphs, model=kind(own.backbone, own.projection))

    stream = torch.cuda.current_stream()
    plain, tried = made(False), made(True)
    for one in (plain, tried):
        torch.manual_seed(5)
        for batch in one.batches.epoch(0):
            one.advance(batch)
    assert tried.recording is None and not tried._to_record
    same(plain, tried)
    # and the device is as it was
    assert torch.cuda.current_stream() == stream
    assert torch.rand(1, device="cuda").item() >= 0
    again = on_gpu("simclr", True)
    again.advance(next(iter(again.batches.epoch(0))))
    assert again.recording is not None
    torch.cuda.synchronize()


@pytest.mark.parametrize("kind", ["different", "many equals", "with nan"])
def test_masks_of_all_layers_together_are_those_of_a_cpu_and_nobody_waits(kind: str) -> None:
    scores = torch.randn(1, 300_000, generator=torch.Generator().manual_seed(1))
    if kind == "many equals":
        scores = (4 * scores).round()
    if kind == "with nan":
        scores[0, 77] = torch.nan
    there = scores.cuda()
    torch.cuda.synchronize()
    for keep in (1, 30_000, 210_000, 299_999):
        torch.cuda.set_sync_debug_mode("error")
        try:
            found = keep_largest(there, keep)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert torch.equal(found.cpu(), keep_largest(scores, keep))
