"""Traps into which pruning libraries fall, one test each: see the docstrings.

Here attention, checkpoints, BatchNorm and the phases of ``project``; weights themselves are in
``test_traps_of_weights.py``, weights written by hand in ``test_written_by_hand.py``."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from small_networks import cnn, cnn_batch, dense_weights, mlp, mlp_batch, pruned, update
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.pruning.finishing.batchnorm import reestimate
from rarefy.pruning.schedules import constant, one_shot
from rarefy.pruning.update_rules import UPDATE_RULES

# ----------------------------------------------------------------------------------- attention


class Attending(nn.Module):
    """Self-attention and a mean."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0].mean(dim=1)[:, :3]


def sequences(seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(4, 5, 8, generator=generator), torch.randn(4, 3, generator=generator)


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_attention_is_pruned_in_both_projections_and_trains_for_more_than_one_step(
    rule: str,
) -> None:
    """Trap: hooks on ``MultiheadAttention.out_proj`` fail at the second step, because its forward
    is never called; and ``in_proj_weight`` is no ``Linear`` and is overlooked."""
    model = Attending()
    optimizer, pruner = pruned(model, keep=0.25, update=rule)
    assert list(pruner.pruned) == ["attention.in_proj_weight", "attention.out_proj.weight"]
    for step in range(3):
        update(model, optimizer, sequences(step))
        for name in ("in_proj_weight", "out_proj.weight"):
            weight = model.get_parameter(f"attention.{name}")
            assert (weight != 0).sum(dim=1).tolist() == [2] * len(weight)
    # the zeros act: the same network from plain pieces
    x = sequences()[0]
    plain = copy.deepcopy(model)
    assert torch.equal(plain(x), model(x))
    with pruner.dense():
        assert torch.equal(plain(x), model(x)) == (rule == "project")


def test_attentions_key_and_value_biases_are_no_weights() -> None:
    """Trap: ``bias_k`` and ``bias_v`` have three dimensions and look like weights."""
    model = nn.MultiheadAttention(8, 2, add_bias_kv=True, kdim=6, vdim=4)
    _, pruner = pruned(model)
    assert list(pruner.pruned) == [
        "q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight",
    ]  # fmt: skip


def test_the_fast_path_of_an_encoder_layer_at_evaluation_sees_the_masks() -> None:
    """Trap: at evaluation nn.TransformerEncoderLayer hands its weights to one fused function, past
    all forward methods and hooks."""
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    optimizer, pruner = pruned(model, keep=0.25)
    x = sequences()[0]
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        fast = model(x)
        with pruner.dense():
            dense = model(x)
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            slow = model(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)
    # two orders of summation in float32, values of order 1
    torch.testing.assert_close(fast, slow, rtol=0, atol=1e-5)
    assert not torch.allclose(fast, dense, atol=1e-2)


# ------------------------------------------------------------------- names, order, checkpoints


@pytest.mark.parametrize(
    "choices",
    [
        {"update": "dense"},
        {"update": "masked"},
        {"update": "project"},
        {"branches": True},
        {"granularity": "neuron", "layers": "0", "activations": {"0": "2"}},
    ],
    ids=str,
)
def test_names_and_order_of_parameters_and_buffers_stay(choices: dict[str, Any]) -> None:
    """Trap: parametrizations re-order ``model.parameters()`` (weight, bias becomes bias, weight)
    and rename keys; masks as buffers are broadcast at every forward pass of DDP."""
    model, plain = cnn(), cnn()
    before = list(model.parameters())
    optimizer, pruner = pruned(model, **choices)
    update(model, optimizer, cnn_batch())
    assert list(model.state_dict()) == list(plain.state_dict())
    assert [name for name, _ in model.named_buffers()] == [
        name for name, _ in plain.named_buffers()
    ]
    assert all(a is b for a, b in zip(model.parameters(), before, strict=True))
    assert type(model[0]) is nn.Conv2d
    assert pruner.step == 1


def test_an_optimisers_state_from_before_the_pruning_fits_parameter_by_parameter() -> None:
    """Trap: with re-ordered parameters an old Adam state loads silently with swapped moments."""
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    update(model, optimizer, mlp_batch())
    moments = {name: optimizer.state[each]["exp_avg"] for name, each in model.named_parameters()}
    again = mlp()
    new = torch.optim.AdamW(again.parameters(), lr=0.01)
    pruner = Pruner(again, new, keep=0.5)
    new.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for name, each in again.named_parameters():
        assert torch.equal(new.state[each]["exp_avg"], moments[name])
        assert new.state[each]["exp_avg"].shape == each.shape
    assert pruner.step == 0
    update(again, new, mlp_batch())
    # and back into a plain training
    plain = mlp()
    third = torch.optim.AdamW(plain.parameters(), lr=0.01)
    third.load_state_dict(copy.deepcopy(new.state_dict()))
    for (_, a), (_, b) in zip(plain.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(third.state[a]["exp_avg"], new.state[b]["exp_avg"])


def test_plain_checkpoints_load_into_a_pruned_model_and_pruned_ones_into_a_plain_model() -> None:
    """Trap: checkpoints with changed keys, or that hold only masked weights."""
    model, trained = mlp(), mlp()
    plain = torch.optim.SGD(trained.parameters(), lr=0.5)
    update(trained, plain, mlp_batch())
    optimizer, pruner = pruned(model, lr=0.0, keep=0.25)
    model.load_state_dict(trained.state_dict())
    kept = [each.weight.count_nonzero() for each in (model[0], model[2])]
    assert kept == [int(pruner.masks[name].sum()) for name in pruner.masks], "masks act at once"
    assert torch.equal(model[0].weight, trained[0].weight * pruner.masks["0.weight"])
    update(model, optimizer, mlp_batch())
    # (biases are not pruned: they were simply loaded)
    for name, weight in trained.named_parameters():
        assert torch.equal(dense_weights(pruner)[name], weight)
    other = mlp()
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(mlp_batch()[0]), model(mlp_batch()[0]))
    # the dense ones are in the pruner's state, or in the model's inside dense()
    with pruner.dense():
        other.load_state_dict(model.state_dict())
    assert torch.equal(other[0].weight, trained[0].weight)


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_a_pruned_model_can_be_copied_and_saved_whole(rule: str) -> None:
    """Trap: pruned modules that cannot be deep-copied after a forward pass, or pickled."""
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.25, update=rule)
    update(model, optimizer, mlp_batch())
    model(mlp_batch()[0])
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    x = mlp_batch()[0]
    for plain in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        assert torch.equal(plain(x), model(x))
        # a plain model: training it touches nothing here, and moves its zeros
        before = model[0].weight.detach().clone()
        update(plain, torch.optim.SGD(plain.parameters(), lr=0.1), mlp_batch())
        assert (plain[0].weight != 0).sum() > (before != 0).sum()
        assert torch.equal(model[0].weight, before)
    assert pruner.step == 1


# --------------------------------------------------------------------------------- BatchNorm


def filter_gradients(beta: float, **choices: Any) -> tuple[Tensor, Tensor]:
    """Norms of the gradients of pruned and of kept filters in front of a BatchNorm."""
    model = cnn()
    nn.init.constant_(model[1].bias, beta)
    _, pruner = pruned(model, keep=0.5, granularity="neuron", layers="0", **choices)
    x, y = cnn_batch()
    (model(x) - y).square().mean().backward()
    norms = model[0].weight.grad.flatten(1).norm(dim=1)
    kept = pruner.pruned["0.weight"].neurons()
    return norms[~kept], norms[kept]


def test_the_gradient_of_a_zeroed_filter_before_batchnorm_and_the_remedy() -> None:
    """Trap: BatchNorm divides by sqrt(eps) where a filter is zero, so gradients of pruned filters
    are a hundred times those of kept ones, or exactly 0 (ReLU, beta <= 0). Remedy: mask the
    activation behind the BatchNorm."""
    pruned_norms, kept_norms = filter_gradients(beta=0.5)
    assert pruned_norms.min() > 30 * kept_norms.max()
    assert filter_gradients(beta=-0.1)[0].tolist() == [0.0, 0.0]
    for beta in (0.5, -0.1):
        pruned_norms, kept_norms = filter_gradients(beta, activations={"0": "2"})
        assert 0 < pruned_norms.min() and pruned_norms.max() < 10 * kept_norms.min()


def test_running_variance_of_a_zeroed_filter_decays_and_the_remedies() -> None:
    """Trap: by 0.9 a step, so that a filter that comes back is mis-scaled at evaluation. Remedies:
    masks behind the BatchNorm, or statistics estimated anew."""
    model = cnn()
    optimizer, pruner = pruned(
        model, lr=0.0, keep=0.5, granularity="neuron", layers="0", schedule=one_shot(0)
    )
    for _ in range(5):
        update(model, optimizer, cnn_batch())
    gone = ~pruner.pruned["0.weight"].neurons()
    expected = torch.full((2,), 0.9**5)
    torch.testing.assert_close(model[1].running_var[gone], expected, rtol=1e-5, atol=0)
    dense = pruner.copy_of("dense")
    reestimate(dense, [cnn_batch()[0]])
    true = dense[0](cnn_batch()[0]).transpose(0, 1).flatten(1).var(dim=1)
    torch.testing.assert_close(dense[1].running_var, true.detach(), rtol=1e-4, atol=0)

    behind = cnn()
    optimizer, pruner = pruned(
        behind, lr=0.0, keep=0.5, granularity="neuron", layers="0", activations={"0": "2"}
    )
    for _ in range(200):
        update(behind, optimizer, cnn_batch())
    torch.testing.assert_close(behind[1].running_var, true.detach(), rtol=1e-4, atol=0)


# -------------------------------------------------------------------------- phases of project


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adamw"])
def test_project_is_dense_between_choices_and_says_so(kind: str) -> None:
    """Trap: with a projection every k steps the weights are dense k-1 steps out of k, and metrics
    taken then are those of a dense network. ``masked()`` and ``copy_of("projected")`` are not."""
    model = mlp()
    optimizer: torch.optim.Optimizer = {
        "sgd": lambda: torch.optim.SGD(model.parameters(), lr=0.1),
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "adamw": lambda: torch.optim.AdamW(model.parameters(), lr=0.1),
    }[kind]()
    pruner = Pruner(model, optimizer, keep=0.25, update="project", schedule=constant(every=5))
    x, y = mlp_batch()

    def density(network: nn.Module) -> float:
        return (network.get_parameter("2.weight") != 0).double().mean().item()

    for step in range(1, 11):
        update(model, optimizer, (x, y))
        if step % 5 == 0:
            assert density(model) == 0.25
            continue
        assert density(model) > 0.75
        loss = (model(x) - y).square().mean()
        with pruner.masked() as network:
            assert density(network) == 0.25
            assert (network(x) - y).square().mean() != loss
        for name in ("masked", "projected"):
            assert density(pruner.copy_of(name)) == 0.25
        # masked: with the masks of the last choice; projected: with those it would get now
        now = pruner.copy_of("projected")[2].weight
        largest = model[2].weight.abs().topk(2, dim=1).values
        assert torch.equal(now.abs().topk(2, dim=1).values, largest)
        assert density(model) > 0.75  # looking changed nothing
