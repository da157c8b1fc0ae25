"""Recorded networks on a GPU: the same gradients, the same training, no traces of the recording."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from small_trainings import PRUNING_SPECS, STEPS, batches, interrupted, network, training
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.core.contracts import Context
from rarefy.core.writing import OutputFolder
from rarefy.tools import image_data
from rarefy.tools.sparse_training import Task, own_random_state, train_one
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.cuda_graphs import record_forward
from rarefy.train.image_batches import Augmentation
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.recipe import Recipe
from rarefy.train.supervised import Training

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    # torch's own, from the first product in the thread of the backward pass
    pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS"),
]
GPU = "cuda"
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}
"""float32 sums in another order; weights here are of size 0.1 to 1."""


@pytest.fixture(autouse=True)
def full_precision() -> Any:
    """float32 products in full: TF32 would differ by a part in a thousand."""
    with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
        yield


def shown(count: int = 8) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(2)
    x = torch.randn(count, 1, 5, 5, generator=draws)
    return x.to(GPU), (torch.arange(count) % 3).to(GPU)


def gradients(model: nn.Module, forward: Any) -> list[Tensor]:
    x, y = shown()
    model.zero_grad()
    functional.cross_entropy(forward(x), y).backward()
    return [one.grad.clone() for one in model.parameters() if one.grad is not None]


def test_a_recording_gives_the_gradients_of_the_network() -> None:
    plain, model = network().to(GPU), network().to(GPU)
    forward = record_forward(model, model, shown()[0], "float32")
    assert forward is not model
    for _ in range(3):  # with momentum of BatchNorm moving on the way
        expected, found = gradients(plain, plain), gradients(model, forward)
        for one, other in zip(expected, found, strict=True):
            torch.testing.assert_close(other, one, **NEAR)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, **NEAR)


def test_recording_leaves_no_trace() -> None:
    model = network(dropout=0.5).to(GPU)
    before = {name: one.clone() for name, one in model.state_dict().items()}
    random = torch.cuda.get_rng_state()
    places = {name: one.data_ptr() for name, one in model.state_dict().items()}
    record_forward(model, model, shown()[0], "float32")
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]) and value.data_ptr() == places[name]
    assert all(one.grad is None for one in model.parameters())
    assert torch.equal(torch.cuda.get_rng_state(), random)


@pytest.mark.parametrize("update", ["project", "dense", "masked"])
def test_weights_changed_in_place_are_seen(update: str) -> None:
    model = network().to(GPU)
    forward = record_forward(model, model, shown()[0], "float32")
    x, _ = shown()
    before = forward(x).detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Pruner(model, optimizer, keep=0.3, update=update)
    after = forward(x).detach().clone()
    assert not torch.allclose(before, after, atol=1e-3)
    torch.testing.assert_close(after, model.train()(x), **NEAR)


def test_a_network_that_looks_at_values_runs_as_it_is() -> None:
    class Looks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) * (2.0 if x.sum().item() > 0 else 1.0)

    plain, model = Looks().to(GPU), Looks().to(GPU)
    forward = record_forward(model, model, shown()[0], "float32")
    assert forward is model
    for one, other in zip(gradients(plain, plain), gradients(model, forward), strict=True):
        torch.testing.assert_close(other, one, **NEAR)
    # and the device is still of use, for another recording too
    again = network().to(GPU)
    assert record_forward(again, again, shown()[0], "float32") is not again
    torch.cuda.synchronize()


def test_a_copy_of_a_recorded_network_is_independent() -> None:
    model = network().to(GPU)
    forward = record_forward(model, model, shown()[0], "float32")
    x, _ = shown()
    copied = copy.deepcopy(model)
    with torch.no_grad():
        for one in model.parameters():
            one.zero_()
    assert (forward(x) == 0).all()
    assert (copied(x) != 0).all()
    assert (copied.eval()(x[:3]) != 0).all()  # another size of batch


def test_dropout_is_drawn_anew_at_every_call() -> None:
    model = network(dropout=0.5).to(GPU)
    forward = record_forward(model, model, shown()[0], "float32")
    x, _ = shown()
    assert not torch.equal(forward(x).clone(), forward(x).clone())


def on_gpu(name: str, graphs: bool, **options: Any) -> Training:
    # float32 noise and order drawn on the GPU are the same in both
    return training(name, device=GPU, graphs=graphs, **options)


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
@pytest.mark.parametrize("name", PRUNING_SPECS)
def test_a_training_with_and_without_graphs_agrees(name: str, optimizer: str) -> None:
    rate = 0.02 if optimizer == "sgd" else 0.002
    eager, graphed = (
        on_gpu(name, graphs, optimizer=optimizer, learning_rate=rate) for graphs in (False, True)
    )
    histories = [eager.run(Context()), graphed.run(Context())]
    assert graphed.forward is not graphed.model and eager.forward is eager.model
    assert histories[0].loss == pytest.approx(histories[1].loss, abs=1e-3)
    for key, value in eager.model.state_dict().items():
        torch.testing.assert_close(graphed.model.state_dict()[key], value, rtol=0, atol=1e-3)


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("name", ["dense", "project, every 3", "masked rule, every 3"])
def test_a_stopped_training_goes_on(name: str, graphs: bool, tmp_path: Path) -> None:
    def make() -> Training:
        return on_gpu(name, graphs, dropout=0.2, learning_rate=0.02)

    whole = make()
    whole.run(Context())
    for steps in (2, STEPS, STEPS + 3):
        again = interrupted(make, Checkpoint(tmp_path / f"{steps}.pt"), steps)
        assert again.history.loss == pytest.approx(whole.history.loss, abs=1e-3)
        for key, value in whole.model.state_dict().items():
            torch.testing.assert_close(again.model.state_dict()[key], value, rtol=0, atol=1e-3)


def test_bfloat16_with_graphs_learns_as_without() -> None:
    losses = []
    for graphs in (False, True):
        made = batches(torch.bfloat16, Augmentation(), GPU, torch.channels_last)
        options: dict[str, Any] = {"epochs": 10, "learning_rate": 0.02, "precision": "bf16"}
        made_training = on_gpu("project", graphs, shown=made, **options)
        losses.append(made_training.run(Context()).loss[-1])
    assert losses[0] == pytest.approx(losses[1], rel=0.05)  # products of 8 bits


def test_a_whole_training_of_digits(tmp_path: Path) -> None:
    changes = Augmentation(1, False, 0.1)
    task = Task("digits", "cnn", Recipe(epochs=8, learning_rate=0.05), changes, 64, samples=600)
    context = Context(
        device=torch.device(GPU), scratch=tmp_path, models=OutputFolder(tmp_path / "nets")
    )
    accuracies = []
    for spec in (PruningSpec(), PruningSpec(0.3), PruningSpec(0.3, every=5)):
        found = train_one(task, spec, 1, context, f"{spec.every}")
        accuracies.append(found.test[0].accuracy)
        assert found.history.nonfinite_step == -1
    assert min(accuracies) > 0.6
    stored = torch.load(tmp_path / "nets" / "5.pt", map_location="cpu", weights_only=True)
    assert stored["test_accuracy"][0] == accuracies[-1]
    image_data._loaded.cache_clear()


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_the_gpus_random_state_is_given_back(device: str) -> None:
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    with own_random_state(3, torch.device(device)):
        torch.rand(5, device=device)
    assert torch.equal(before, torch.cuda.get_rng_state())
