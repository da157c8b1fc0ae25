"""On a GPU what a pruner does at an update is recorded, and is what it was without."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.pruning.models import recording
from rarefy.pruning.models.recording import Recorded
from rarefy.pruning.schedules import gradual

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_on_a_cpu_it_is_simply_done() -> None:
    recorded, done = Recorded(), []
    for _ in range(5):
        assert recorded([torch.ones(2)], lambda: done.append(1)) is None
        assert recorded([], lambda: torch.ones(1)) == 1
    assert len(done) == 5


AROUND = {"restore", "collect", "apply"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"choose", "choose and count", *AROUND}),
        ({"schedule": gradual(0, 8)}, AROUND),
        ({"moments": "reset"}, AROUND),
        ({"update": "masked", "moments": "reset"}, AROUND - {"collect"}),
        ({"update": "project"}, set()),
    ],
)
@needs_gpu
def test_a_training_is_bit_for_bit_that_without_recordings(
    options: dict[str, object], expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, replayed = trained(options)
    assert replayed <= expected
    assert replayed >= expected - {"choose and count"}  # (counts become rare)
    monkeypatch.setattr(recording, "_recordable", lambda tensors: False)
    second, replayed = trained(options)
    assert not replayed
    for mine, theirs in zip(first, second, strict=True):
        assert torch.equal(mine, theirs)


def trained(options: dict[str, object]) -> tuple[list[Tensor], set[str]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 3))
    model = model.to("cuda", memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    pruner = Pruner(model, optimizer, 0.3, **options)  # type: ignore[arg-type]
    images = torch.randn(30, 5, 2, 6, 6, device="cuda")
    for step, x in enumerate(images):
        if step == 20:  # a copy records anew, where its own weights lie
            model, optimizer, pruner = copy.deepcopy((model, optimizer, pruner))
        optimizer.zero_grad()
        functional.cross_entropy(model(x), torch.arange(5, device="cuda") % 3).backward()
        optimizer.step()
    found = [*model.parameters(), *pruner.masks.values()]
    frame = pruner.trajectory.frame()
    counts = torch.tensor(frame[["kept", "churn", "revived"]].to_numpy(float))
    replayed = {work for work, each in pruner._recorded.items() if each._graph is not None}
    return [each.detach().cpu() for each in [*found, counts]], replayed
