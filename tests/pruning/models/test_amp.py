"""Mixed precision: autocast, GradScaler and whole models in 16 bits, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.regrowth import RigL

X = torch.randn(16, 6, generator=torch.Generator().manual_seed(1))
Y = torch.arange(16) % 3
WAYS: dict[str, dict[str, Any]] = {
    "dense": {},
    "masked": {"update": "masked"},
    "project": {"update": "project"},
    "saliency": {"update": "masked", "score": "saliency"},
    "rigl": {"update": "masked", "regrow": RigL(20, share=0.5)},
}


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))


def cast() -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16)


def loss(model: Callable[[Tensor], Tensor]) -> Tensor:
    return nn.functional.cross_entropy(model(X).float(), Y)


# ------------------------------------------------------------------------------------- autocast


@pytest.mark.parametrize("way", WAYS)
def test_autocast_masks_in_full_precision(way: str) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    pruner = Pruner(model, optimizer, keep=0.5, **WAYS[way])
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        with cast():
            found = loss(model)
        found.backward()
        optimizer.step()
        losses.append(found.item())
        for name, pruned in pruner.pruned.items():
            assert pruned.parameter.dtype == pruned.dense().dtype == torch.float32
            assert not pruned.parameter[~pruned.mask].any(), name
    assert losses[-1] < losses[0]
    assert pruner.keep == 0.5 and pruner.step == 20
    with cast(), torch.no_grad():
        assert model(X).dtype == torch.bfloat16
        assert torch.equal(model(X), pruner.copy_of("masked")(X))


def test_dense_and_masked_inside_autocast_are_not_what_autocast_remembers() -> None:
    """Autocast keeps its 16-bit copy of a weight until its context ends."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    pruner = Pruner(model, optimizer, keep=0.5)
    with cast():
        before = model(X)
        with pruner.dense():
            dense = model(X)
        after = model(X)
    with cast():
        assert torch.equal(dense, pruner.copy_of("dense")(X))
    assert torch.equal(before, after) and not torch.equal(before, dense)


def test_an_update_inside_autocast_acts_at_once() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    pruner = Pruner(model, optimizer, keep=0.5)
    with cast():
        loss(model).backward()
        optimizer.step()
        found = model(X)
    with cast():
        assert torch.equal(found, pruner.copy_of("masked")(X))


def test_masked_branch_and_activation_masks_keep_the_type_under_autocast() -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    branches = Pruner(model, optimizer, keep=0.5, branches=True)
    with cast():
        assert branches.masked_branch(X).dtype == torch.bfloat16
    branches.detach()
    seen = []
    Pruner(model, optimizer, keep=0.5, granularity="neuron", layers="0", activations={"0": "1"})
    model[2].register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    with cast():
        model(X)
    assert seen[0].dtype == torch.bfloat16
    assert (seen[0] == 0).all(dim=0).sum() >= 4


# ----------------------------------------------------------------------------------- GradScaler


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda weights: torch.optim.SGD(weights, lr=0.5, momentum=0.9),
    "adamw": lambda weights: torch.optim.AdamW(weights, lr=0.05),
    # these are called by the scaler whatever happens, and skip the update by themselves
    # (not so SGD with momentum: in torch 2.13 an overflow leaves its moments uninitialised)
    "fused sgd": lambda weights: torch.optim.SGD(weights, lr=3.0, fused=True),
    "fused adamw": lambda weights: torch.optim.AdamW(weights, lr=0.05, fused=True),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("way", ["dense", "masked", "project", "rigl", "random"])
def test_overflow_moves_neither_masks_nor_weights_nor_the_count(way: str, kind: str) -> None:
    settings = {"score": "random"} if way == "random" else WAYS[way]
    ends = []
    for overflows in (True, False):
        model = net()
        optimizer = OPTIMIZERS[kind](model.parameters())
        pruner = Pruner(model, optimizer, keep=0.5, **settings)
        # a power of two: scaling changes no digit
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=100)
        for update in range(5):
            if overflows and update in (0, 3):
                before = pruner.state_dict()
                optimizer.zero_grad()
                scaler.scale(loss(model) * float("inf")).backward()
                assert not model[0].weight.grad.isfinite().all()
                scaler.step(optimizer)
                scaler.update()
                assert pruner.step == update
                after = pruner.state_dict()
                assert torch.equal(before["generator"], after["generator"])
                for name, pruned in before["layers"].items():
                    for key, value in pruned.items():
                        same = after["layers"][name][key]
                        assert value is same or torch.equal(value, same), (name, key)
                for name, pruned in pruner.pruned.items():
                    if way != "project":
                        assert not pruned.parameter[~pruned.mask].any(), name
            optimizer.zero_grad()
            scaler.scale(loss(model)).backward()
            scaler.step(optimizer)
            scaler.update()
            assert pruner.step == update + 1
        ends.append((model, pruner))
    for one, two in zip(ends[0][0].parameters(), ends[1][0].parameters(), strict=True):
        assert torch.equal(one, two)
    frames = [pruner.trajectory.frame() for _, pruner in ends]
    assert frames[0].equals(frames[1]) and frames[0]["churn"].iloc[2:].gt(0).any()


def test_unscaled_and_clipped_before_the_step() -> None:
    ends = []
    for scaled in (True, False):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        pruner = Pruner(model, optimizer, keep=0.5, update="masked", score="saliency")
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, enabled=scaled)
        for _ in range(4):
            optimizer.zero_grad()
            scaler.scale(loss(model)).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            scaler.step(optimizer)
            scaler.update()
        ends.append((pruner.step, pruner.masks, list(model.parameters())))
    assert ends[0][0] == ends[1][0] == 4
    assert all(torch.equal(ends[0][1][name], ends[1][1][name]) for name in ends[0][1])
    assert all(torch.equal(a, b) for a, b in zip(ends[0][2], ends[1][2], strict=True))


# ------------------------------------------------------------------------------ 16-bit models


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("way", [*WAYS, "random", "neuron", "global"])
def test_models_in_16_bits(way: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    # so wide that counts are beyond what these types can count to (256 and 2,048)
    width = 3000
    model = nn.Sequential(nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, 3)).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    settings: dict[str, Any] = {
        **{each: WAYS[each] for each in WAYS},
        "random": {"score": "random"},
        "neuron": {"granularity": "neuron"},
        "global": {"granularity": "global"},
    }[way]
    pruner = Pruner(model, optimizer, keep=0.5, **settings)
    x = torch.randn(16, width, generator=torch.Generator().manual_seed(2)).to(dtype) / 50
    for _ in range(4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x).float(), Y).backward()
        optimizer.step()
    kept = int(pruner.masks["0.weight"].sum())
    frame = pruner.trajectory.frame()
    last = frame[(frame["step"] == 4) & (frame["layer"] == "0.weight")]
    assert int(last["kept"].iloc[0]) == kept
    total = sum(int(mask.sum()) for mask in pruner.masks.values())
    if way == "global":
        assert total == (width * 4 + 12) // 2
    else:
        assert kept == width * 4 // 2
    assert float(pruner.trajectory.now()["keep"]) == pytest.approx(pruner.keep, abs=1e-6)
    for pruned in pruner.pruned.values():
        assert pruned.parameter.dtype == pruned.dense().dtype == dtype
        assert not pruned.parameter[~pruned.mask].any()
    assert pruner.export()(x).dtype == dtype


@pytest.mark.parametrize("way", ["dense", "masked"])
def test_a_model_that_changes_its_type_takes_its_pruner_along(way: str) -> None:
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    pruner = Pruner(model, optimizer, keep=0.5, **WAYS[way])
    model.double()
    nn.functional.cross_entropy(model(X.double()), Y).backward()
    optimizer.step()
    assert pruner.step == 1 and pruner.pruned["0.weight"].dense().dtype == torch.float64
    assert not model[0].weight[~pruner.masks["0.weight"]].any()
