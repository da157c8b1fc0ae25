"""Ways to come to an update: several backward passes, closures, clipped gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant

# double precision: a sum in another order must not turn a choice of masks
DRAW = torch.Generator().manual_seed(1)
X = torch.randn(24, 6, generator=DRAW, dtype=torch.float64)
Y = torch.randn(24, 3, generator=DRAW, dtype=torch.float64)
EXACT = 1e-12
"""Double precision and a few hundred operations."""
WAYS: dict[str, dict[str, Any]] = {
    "dense": {},
    "masked": {"update": "masked", "schedule": constant(2)},
    "project": {"update": "project", "schedule": constant(2)},
    "saliency": {"score": "saliency"},
    "masked saliency": {"update": "masked", "score": "saliency"},
    "rigl": {"update": "masked", "regrow": RigL(20, share=0.5), "schedule": constant(2)},
    "random neurons": {"score": "random", "granularity": "neuron"},
}


def made(way: str, lr: float = 0.3) -> tuple[nn.Module, torch.optim.Optimizer, Pruner]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    return model, optimizer, Pruner(model, optimizer, keep=0.5, **WAYS[way])


def loss(model: nn.Module, place: slice = slice(None)) -> Tensor:
    return nn.functional.mse_loss(model(X[place]), Y[place])


def train_plainly(way: str, updates: int = 6) -> tuple[nn.Module, Pruner]:
    model, optimizer, pruner = made(way)
    for _ in range(updates):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    return model, pruner


def assert_close(first: tuple[nn.Module, Pruner], second: tuple[nn.Module, Pruner]) -> None:
    assert first[1].step == second[1].step
    masks = second[1].masks
    for name, mask in first[1].masks.items():
        assert torch.equal(mask, masks[name]), name
        one, two = (each[1].pruned[name].dense() for each in (first, second))
        torch.testing.assert_close(one, two, atol=EXACT, rtol=0)
    for one, two in zip(first[0].parameters(), second[0].parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=EXACT, rtol=0)


@pytest.mark.parametrize("way", WAYS)
def test_three_backward_passes_are_one_large_batch(way: str) -> None:
    model, optimizer, pruner = made(way)
    for update in range(6):
        optimizer.zero_grad()
        for part in range(3):
            (loss(model, slice(8 * part, 8 * part + 8)) / 3).backward()
            assert pruner.step == update  # a backward pass is no update
        optimizer.step()
    plain = train_plainly(way)
    assert_close((model, pruner), plain)
    assert plain[1].trajectory.frame()["churn"].iloc[2:].gt(0).any()


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_closure_sees_masked_weights(way: str, by_name: bool) -> None:
    model, optimizer, pruner = made(way)
    seen = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        found = loss(model)
        found.backward()
        seen.append(model[0].weight.detach().clone())
        return found

    for _ in range(6):
        acting = model[0].weight.detach().clone()
        found = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
        assert isinstance(found, Tensor) and torch.equal(seen[-1], acting)
    assert len(seen) == 6
    assert_close((model, pruner), train_plainly(way))


def test_a_closure_that_fails_leaves_the_masks_in_force() -> None:
    model, optimizer, pruner = made("dense")

    def closure() -> Tensor:
        raise RuntimeError("out of memory, say")

    with pytest.raises(RuntimeError, match="out of memory"):
        optimizer.step(closure)
    assert pruner.step == 0
    for pruned in pruner.pruned.values():
        assert not pruned.parameter[~pruned.mask].any()
    loss(model).backward()
    optimizer.step()
    assert pruner.step == 1 and pruner.keep == 0.5


def small_problem() -> tuple[nn.Linear, nn.Linear, Tensor]:
    """A layer of six inputs of which three are kept, and the layer of only those three."""
    torch.manual_seed(0)
    whole = nn.Linear(6, 1).double()
    kept = whole.weight.detach().abs()[0].topk(3).indices.sort().values
    part = nn.Linear(3, 1).double()
    with torch.no_grad():
        part.weight.copy_(whole.weight[:, kept])
        part.bias.copy_(whole.bias)
    return whole, part, kept


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_of_a_masked_layer_is_that_of_the_smaller_layer(search: str | None) -> None:
    whole, part, kept = small_problem()
    ends = []
    for model, x in ((whole, X), (part, X[:, kept])):
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4, line_search_fn=search)
        if model is whole:
            pruner = Pruner(model, optimizer, keep=3, update="masked", freeze_at=0)
        calls = 0

        def closure(model: nn.Module = model, x: Tensor = x, optimizer: Any = optimizer) -> Tensor:
            nonlocal calls
            calls += 1
            optimizer.zero_grad()
            found = nn.functional.mse_loss(model(x), Y[:, :1])
            found.backward()
            return found

        losses = [optimizer.step(closure).item() for _ in range(3)]
        ends.append((calls, losses))
    assert ends[0][0] == ends[1][0] > 3 and pruner.step == 3
    assert ends[0][1] == pytest.approx(ends[1][1], abs=EXACT) and losses[-1] < losses[0]
    torch.testing.assert_close(whole.weight[:, kept], part.weight, atol=EXACT, rtol=0)
    assert (whole.weight != 0).sum() == 3


def test_lbfgs_with_dense_updates_trains() -> None:
    torch.manual_seed(0)
    model = nn.Linear(6, 1).double()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    pruner = Pruner(model, optimizer, keep=3)
    losses = []

    def closure() -> Tensor:
        assert (model.weight != 0).sum() == 3
        optimizer.zero_grad()
        found = nn.functional.mse_loss(model(X), Y[:, :1])
        found.backward()
        losses.append(found.item())
        return found

    before = pruner.pruned["weight"].dense().clone()
    for _ in range(10):
        optimizer.step(closure)
    assert losses[-1] < losses[0] and pruner.step == 10
    assert ((pruner.pruned["weight"].dense() - before).abs() > 1e-4).all()  # all are updated


# -------------------------------------------------------------------------------------- clipping


def test_clipping_counts_only_gradients_that_are_used() -> None:
    """With masked updates the norm is that of the smaller layer."""
    whole, part, kept = small_problem()
    norms = []
    for model, x in ((whole, X), (part, X[:, kept])):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
        if model is whole:
            Pruner(model, optimizer, keep=3, update="masked", freeze_at=0)
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), Y[:, :1]).backward()
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.1).item())
            optimizer.step()
    assert norms[:4] == pytest.approx(norms[4:], abs=EXACT) and min(norms) > 0.1
    torch.testing.assert_close(whole.weight[:, kept], part.weight, atol=EXACT, rtol=0)


def test_clipping_counts_all_gradients_where_all_are_used() -> None:
    """With dense updates the gradient of all entries is clipped, at the weights that act."""
    model, optimizer, pruner = made("dense")
    for _ in range(3):
        optimizer.zero_grad()
        plain = pruner.copy_of("masked")
        loss(model).backward()
        loss(plain).backward()
        squares = [float(each.grad.square().sum()) for each in plain.parameters()]
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        assert float(norm) == pytest.approx(sum(squares) ** 0.5, abs=EXACT)
        dense = pruner.pruned["0.weight"].dense().clone()
        scale = 0.1 / (float(norm) + 1e-6)  # torch's way to avoid dividing by zero
        optimizer.state.clear()  # without momentum, for this test
        optimizer.step()
        expected = dense - 0.3 * scale * plain[0].weight.grad
        torch.testing.assert_close(pruner.pruned["0.weight"].dense(), expected, atol=EXACT, rtol=0)


@pytest.mark.parametrize("way", ["masked saliency", "rigl"])
def test_clipping_when_a_score_needs_all_gradients(way: str) -> None:
    """Before a choice that looks at them, gradients of what is left out are there until the step,
    and count in a norm; used by the optimiser they are not."""
    model, optimizer, pruner = made(way)
    while not pruner.rule.needs_gradient(pruner.step + 1):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    optimizer.zero_grad()
    mask, waiting = pruner.masks["0.weight"], pruner.pruned["0.weight"].dense().clone()
    loss(model).backward()
    assert model[0].weight.grad[~mask].any()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    assert not model[0].weight.grad[~mask].any()
    assert not optimizer.state[model[0].weight]["momentum_buffer"][~mask].any()
    came = pruner.masks["0.weight"] & ~mask
    assert came.any()
    stayed = ~mask & ~came
    assert torch.equal(pruner.pruned["0.weight"].dense()[stayed], waiting[stayed])
