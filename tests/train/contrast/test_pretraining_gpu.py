"""On a GPU loss and gradients of a batch are one recording: the training is the one without it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_pretrainings import METHODS, STEPS, encoder, everything, pretraining
from small_trainings import interrupted
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.nets.backbones import Encoder
from rarefy.pruning.masks import keep_largest
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.contrast.pretraining import Pretraining

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
@pytest.mark.parametrize("method", METHODS)
def test_a_training_with_and_without_a_recording_agrees(method: str, compiled: bool) -> None:
    if compiled and method not in ("simclr", "pruned:0.5", "sdclr"):
        pytest.skip("compiling takes long: one of each kind")
    plain, graphed = on_gpu(method, False), on_gpu(method, True, compiled=compiled)
    plain.run(Context())
    graphed.run(Context())
    assert plain.recording is None and graphed.recording is not None
    same(plain, graphed)


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


def test_an_encoder_that_looks_at_values_is_not_recorded() -> None:
    class Looks(Encoder):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * (2.0 if x.sum().item() > 0 else 1.0)

    def made() -> Encoder:
        plain = encoder()
        return Looks(plain.backbone, plain.projection)

    plain, tried = (on_gpu("simclr", graphs, model=made()) for graphs in (False, True))
    plain.run(Context())
    tried.run(Context())
    assert tried.recording is None
    same(plain, tried)
    torch.cuda.synchronize()  # and the device is still of use


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
