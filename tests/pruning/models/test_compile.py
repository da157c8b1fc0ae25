"""torch.compile: one graph for all masks, and the graph has the masks."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from torch import Tensor, nn

from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.regrowth import RigL
from rarefy.pruning.schedules import constant

pytestmark = pytest.mark.usefixtures("compiler_afresh")
UPDATES = 5
X = torch.randn(8, 2, 5, 5, generator=torch.Generator().manual_seed(1))
Y = torch.arange(8) % 3


# torch 2.13's own compiler imports what it calls old
old_script = pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning"
)


class Net(nn.Module):
    """Convolution, normalisation and attention: the ways in which weights are read."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.relu = nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.relu(self.norm(self.conv(x))).flatten(2).transpose(1, 2)
        mixed, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        return self.head(mixed.mean(dim=1))


def counting(backend: str = "aot_eager") -> torch._dynamo.testing.CompileCounterWithBackend:
    return torch._dynamo.testing.CompileCounterWithBackend(backend)


def train(
    optimizer: torch.optim.Optimizer,
    forward: Callable[[Tensor], Tensor],
    pruner: Pruner,
    step: Callable[[], Any] | None = None,
) -> list[dict[str, Tensor]]:
    """Masks after every update."""
    masks = []
    for _ in range(UPDATES):
        optimizer.zero_grad()
        nn.functional.cross_entropy(forward(X), Y).backward()
        (step or optimizer.step)()
        masks.append(pruner.masks)
    return masks


def moves(masks: list[dict[str, Tensor]]) -> int:
    """Updates at which some mask changed."""
    pairs = zip(masks, masks[1:], strict=False)
    return sum(any(not torch.equal(a[name], b[name]) for name in a) for a, b in pairs)


def made(**settings: Any) -> tuple[Net, torch.optim.Optimizer, Pruner]:
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
    return model, optimizer, Pruner(model, optimizer, **{"keep": 0.4, **settings})


WAYS = {
    "dense": {},
    "masked": {"update": "masked", "granularity": "layer"},
    "project": {"update": "project", "schedule": constant(2), "score": "random"},
    "neuron": {"granularity": "neuron", "keep": 0.5, "score": "random"},
    "rigl": {"update": "masked", "regrow": RigL(20, share=0.5), "granularity": "global"},
    "activations": {
        "granularity": "neuron",
        "keep": 0.5,
        "score": "random",
        "layers": "conv",
        "activations": {"conv": "relu"},
    },
}


@pytest.mark.quick("project")
@pytest.mark.parametrize("way", WAYS)
def test_one_graph_for_all_masks_and_the_same_weights_as_eager(way: str) -> None:
    model, optimizer, pruner = made(**WAYS[way])
    counter = counting()
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    masks = train(optimizer, compiled, pruner)
    assert moves(masks) >= 2, "the test needs masks that move"
    assert counter.frame_count == 1
    other, its_optimizer, its_pruner = made(**WAYS[way])
    its_masks = train(its_optimizer, other, its_pruner)
    for one, two in zip(masks, its_masks, strict=True):
        assert all(torch.equal(one[name], two[name]) for name in one)
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        # the same operations in the same order, up to fusions by the compiler
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.quick("masked")
@pytest.mark.parametrize("way", ["dense", "masked", "neuron", "activations"])
def test_the_compiled_masked_model_differs_from_the_dense_one(way: str) -> None:
    model, optimizer, pruner = made(**WAYS[way])
    train(optimizer, model, pruner)
    counter = counting()
    compiled = torch.compile(model.eval(), fullgraph=True, backend=counter)
    # (without gradients eager attention takes its fast path, which reads weights on its own)
    with torch.no_grad():
        masked = compiled(X)
        with pruner.dense():
            dense, eager_dense = compiled(X), model(X)
        again, eager = compiled(X), model(X)
    assert counter.frame_count == 1
    torch.testing.assert_close(masked, eager, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(dense, eager_dense, atol=1e-6, rtol=1e-5)
    assert torch.equal(masked, again)
    assert (masked - dense).abs().max() > 1e-3


@pytest.mark.quick("True")
@pytest.mark.parametrize("masked_gradients", [False, True])
def test_masked_branch_compiled(masked_gradients: bool) -> None:
    counter = counting()

    def loss(model: nn.Module, pruner: Pruner, compiled: bool) -> Callable[[Tensor], Tensor]:
        branch: Callable[[Tensor], Tensor] = lambda x: pruner.masked_branch(x)  # noqa: E731
        if compiled:
            branch = torch.compile(branch, fullgraph=True, backend=counter)
        return lambda x: model(x) + branch(x)

    ends = []
    for compiled in (True, False):
        model, optimizer, pruner = made(branches=True, masked_gradients=masked_gradients)
        masks = train(optimizer, loss(model, pruner, compiled), pruner)
        assert moves(masks) >= 2
        ends.append((model, pruner))
    assert counter.frame_count == 1
    (model, pruner), (other, its_pruner) = ends
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5, msg=name)
    for name, value in pruner.masked_branch.buffers.items():
        # the branch's own statistics move in the compiled graph, too
        torch.testing.assert_close(value, its_pruner.masked_branch.buffers[name])
    own = dict(model.named_buffers())
    assert not torch.equal(own["norm.running_mean"], pruner.branch.buffers["norm.running_mean"])


def small(update: str) -> tuple[nn.Module, torch.optim.Optimizer, Pruner]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(50, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    return model, optimizer, Pruner(model, optimizer, keep=0.4, update=update, score="saliency")


@pytest.mark.quick("masked")
@old_script
@pytest.mark.parametrize("update", ["dense", "masked"])
def test_compiled_step_of_the_optimizer(update: str) -> None:
    model, optimizer, pruner = small(update)
    # (the first update makes the optimiser's moments: torch compiles the step again after it)
    with torch._dynamo.config.patch(error_on_recompile=False):
        counter = counting()
        step = torch.compile(optimizer.step, backend=counter)
        masks = train(optimizer, model, pruner, step)
    # once before there are moments and once with them, not once an update: masks are not compiled
    assert 1 <= counter.frame_count <= 2
    assert pruner.step == UPDATES and moves(masks) >= 2
    other, its_optimizer, its_pruner = small(update)
    its_masks = train(its_optimizer, other, its_pruner)
    for one, two in zip(masks, its_masks, strict=True):
        assert all(torch.equal(one[name], two[name]) for name in one)
    for (name, one), two in zip(model.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5, msg=name)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")
@old_script
def test_inductor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model, optimizer, pruner = small("dense")
    counter = counting("inductor")
    compiled = torch.compile(model, fullgraph=True, backend=counter)
    masks = []
    # it is one small kernel: no further processes, headers or trials of vector units in advance
    quick = {"compile_threads": 1, "cpp_cache_precompile_headers": False, "cpp.vec_isa_ok": False}
    with inductor.patch(quick):
        for _ in range(UPDATES):
            optimizer.zero_grad()
            found = model(X)
            with torch.no_grad():
                compiled_found = compiled(X)
            torch.testing.assert_close(compiled_found, found, atol=1e-5, rtol=1e-5)
            nn.functional.cross_entropy(found, Y).backward()
            optimizer.step()
            masks.append(pruner.masks)
        assert moves(masks) >= 2
        with torch.no_grad():
            masked = compiled(X)
            with pruner.dense():
                assert (compiled(X) - masked).abs().max() > 1e-3
    assert counter.frame_count == 1


def small_with_hooks() -> tuple[nn.Module, Callable[[], Pruner]]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settings: dict[str, Any] = {"granularity": "neuron", "layers": ["0"], "activations": {"0": "1"}}
    return model, lambda: Pruner(model, optimizer, keep=0.5, **settings)


@pytest.fixture
def hooks_not_looked_at(compiler_afresh: None) -> Iterator[None]:
    """As in a new process: compiled code does not look at hooks."""
    torch._dynamo.reset()
    settings = {"skip_nnmodule_hook_guards": True, "error_on_recompile": False}
    with torch._dynamo.config.patch(settings):
        yield
    torch._dynamo.reset()


@pytest.mark.usefixtures("hooks_not_looked_at")
def test_masks_on_activations_reach_a_model_that_was_compiled_before_them() -> None:
    x = torch.randn(5, 6)
    model, prune = small_with_hooks()
    compiled = torch.compile(model, backend="eager")
    dense = compiled(x).detach()
    pruner = prune()
    masked = compiled(x).detach()
    assert torch.equal(masked, model(x)) and not torch.allclose(masked, dense, atol=1e-2)
    pruner.detach()
    assert torch.equal(compiled(x), dense)


@pytest.mark.usefixtures("hooks_not_looked_at")
@pytest.mark.parametrize("copied", [False, True])
def test_masks_on_activations_act_beside_a_compiled_model_without(copied: bool) -> None:
    """The other one is of the same class: what was compiled for it must not be taken."""
    x = torch.randn(5, 6)
    plain, _ = small_with_hooks()
    model, prune = small_with_hooks()
    pruner = prune()
    if copied:
        model = copy.deepcopy(model)
    dense = torch.compile(plain, backend="eager")(x)
    masked = torch.compile(model, backend="eager")(x)
    assert torch.equal(masked, model(x)) and torch.equal(dense, plain(x))
    assert not torch.allclose(masked, dense, atol=1e-2)
    assert pruner.neuron_masks
