"""torch.compile: masks act in the compiled training, and one graph does for all of them."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo.testing
from small_pretrainings import REMEMBERING, STEPS, counting_compiler, pretraining
from torch import Tensor, nn

from rarefy.core.settings import can_compile
from rarefy.nets.backbones import Encoder, Features, Projection
from rarefy.train.simclr import pretraining as room
from rarefy.train.simclr.pretraining import Pretraining

UPDATES = STEPS + 2
"""With two choices of masks at least, also where they are chosen once per epoch."""
CLOSE = {"atol": 1e-4, "rtol": 1e-3}
"""Fused operations round in another order, 1e-7 an update, and six updates of a small batch with
BatchNorm and a temperature of 0.2 make that grow; without masks it is 1e-2 or more."""

pytestmark = [
    pytest.mark.usefixtures("compiler_afresh"),
    # torch 2.13's own compiler imports what it calls old
    pytest.mark.filterwarnings(
        "ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning"
    ),
    # and keeps this one from being shown, which does not help where warnings are errors
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]


def small() -> Encoder:
    """Every kernel takes a second to build: one layer of each kind."""
    torch.manual_seed(11)
    network = nn.Sequential(nn.Conv2d(1, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU())
    return Encoder(Features(network), Projection(6, 5, depth=1))


def advanced(
    method: str, compiled: bool, model: Encoder | None = None
) -> tuple[Pretraining, list[Tensor], list[float]]:
    """After some updates: the training, its masks of one layer on the way, its losses."""
    made = pretraining(method, model=model, compiled=compiled, warm_up=0.0)
    masks, losses = [], []
    for step in range(UPDATES):
        batch = list(made.batches.epoch(step // STEPS))[step % STEPS]
        losses.append(made.update(batch).item())
        made.step += 1
        if made.pruner is not None:
            masks.append(made.pruner.masks["backbone.network.0.weight"])
    return made, masks, losses


@pytest.mark.slow
@pytest.mark.skipif(not can_compile(torch.device("cpu")), reason="needs a C++ compiler")
@pytest.mark.usefixtures("quickly_compiled")
def test_masks_act_in_a_training_compiled_for_real() -> None:
    """(of a pruner alone: tests/pruning/models/test_compile.py)"""
    method = "branches:0.3+own-norms"
    made, masks, losses = advanced(method, True, small())
    eager, its_masks, its_losses = advanced(method, False, small())
    moved = sum(not torch.equal(a, b) for a, b in zip(masks, masks[1:], strict=False))
    assert moved >= 1, "the test needs masks that move"
    for one, two in zip(masks, its_masks, strict=True):
        assert torch.equal(one, two)
    assert losses == pytest.approx(its_losses, abs=CLOSE["atol"])
    for which in ("dense", "masked"):
        theirs = eager.export_encoder(which).state_dict()
        for name, value in made.export_encoder(which).state_dict().items():
            torch.testing.assert_close(value, theirs[name], msg=f"{which} {name}", **CLOSE)
    for name, value in made.pruner.branch.state().items():
        its = eager.pruner.branch.state()[name]
        torch.testing.assert_close(value, its, msg=f"branch {name}", **CLOSE)
    _, _, dense_losses = advanced("simclr", False, small())
    apart = max(abs(one - two) for one, two in zip(losses, dense_losses, strict=True))
    assert apart > 100 * CLOSE["atol"]  # the masks act


@pytest.mark.quick("branches:0.3+dropout")
@pytest.mark.parametrize(
    "method",
    [
        *("simclr+schedule", "pruned:0.5", "pruned:0.5+neuron", "branches:0.3+step", "sdclr"),
        *("branches:0.3+random+both", "branches:0.3+dropout", "branches:0.3+noise+straight"),
        REMEMBERING[2],
    ],
)
def test_one_graph_for_all_masks_and_temperatures(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs as the compiler sees them, without kernels."""
    counter = counting_compiler(monkeypatch)
    _, _, losses = advanced(method, True, small())
    assert counter.frame_count == 2  # the network and the loss
    _, _, its_losses = advanced(method, False, small())
    assert losses == pytest.approx(its_losses, abs=CLOSE["atol"])
    # a second seed finds them made
    advanced(method, True, small())
    assert counter.frame_count == 2


@pytest.mark.slow
@pytest.mark.parametrize("together", [False, True])
def test_masks_act_whatever_was_compiled_before(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code does not look at hooks by itself: what was made for one training must not be
    taken for another in the same process, be it there already or not."""
    real = torch.compile
    monkeypatch.setattr(room, "can_compile", lambda device: True)
    monkeypatch.setattr(torch, "compile", lambda function: real(function, backend="eager"))
    torch._dynamo.config.error_on_recompile = False
    methods = [
        *("simclr", "pruned:0.5+neuron", "pruned:0.3+neuron", "simclr", "with a hook"),
        *("pruned:0.5+neuron", "branches:0.3", "sdclr"),
    ]

    def make(method: str, compiled: bool) -> Pretraining:
        model = small() if method != "sdclr" else None
        if method == "with a hook" and model is not None:
            model.backbone.register_forward_hook(lambda module, args, output: 0.5 * output + 1)
            method = "simclr"
        return pretraining(method, model, compiled=compiled, warm_up=0.0)

    def losses(made: Pretraining) -> list[float]:
        return [made.update(batch).item() for batch in made.batches.epoch(0)]

    wanted = [losses(make(method, False)) for method in methods]  # all of them before the others
    assert len({round(values[0], 3) for values in wanted}) >= 5, "the test needs masks that matter"
    torch._dynamo.config.skip_nnmodule_hook_guards = True  # as in a new process
    torch._dynamo.reset()
    made = [make(method, True) for method in methods] if together else []
    for number, method in enumerate(methods):
        found = losses(made[number] if made else make(method, True))
        assert found == pytest.approx(wanted[number], abs=CLOSE["atol"]), method
