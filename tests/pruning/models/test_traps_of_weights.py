"""Traps into which pruning libraries fall, one test each, second part: which weights are chosen,
what moves them, number types, tied weights, reports. See the docstrings."""

from __future__ import annotations

import copy

import pytest
import torch
from small_networks import cnn, dense_weights, mlp, mlp_batch, pruned, update
from torch import Tensor, nn

from rarefy import Pruner
from rarefy.pruning.filters import Filters
from rarefy.pruning.schedules import one_shot
from rarefy.pruning.selection import Granularity
from rarefy.pruning.update_rules import UPDATE_RULES

# ------------------------------------------------------------------------------ what is chosen


@pytest.mark.slow
def test_selection_among_more_than_two_to_the_24_weights() -> None:
    """Trap: ``torch.quantile`` fails above 2^24 entries, and float32 cannot count them."""
    layers = {"a": Filters((4096, 4096)), "b": Filters((1, 8))}
    torch.manual_seed(0)
    scores = {"a": torch.rand(4096, 4096), "b": torch.full((1, 8), 2.0)}
    keep = 2**23 + 1
    found = Granularity("global").masks(layers, scores, dict.fromkeys(layers, keep))
    assert int(found["a"].sum()) == keep - 8 and bool(found["b"].all())
    # (random float32s have ties: those at the threshold are partly in)
    assert scores["a"][found["a"]].min() >= scores["a"][~found["a"]].max()


def test_pruned_weights_come_back_because_dense_ones_are_scored() -> None:
    """Trap: scored by what acts, a pruned weight is 0 and never returns."""
    model = mlp()
    optimizer, pruner = pruned(model, lr=0.5, keep=0.5)
    for step in range(20):
        update(model, optimizer, mlp_batch(step))
    assert pruner.trajectory.frame()["revived"].sum() > 0
    for name, mask in pruner.masks.items():
        weight = dense_weights(pruner)[name].abs()
        smallest = weight.masked_fill(~mask, float("inf")).min(dim=1).values
        assert (smallest >= weight.masked_fill(mask, 0).max(dim=1).values).all()


def test_equal_weights_keep_an_exact_count() -> None:
    """Trap: with 8 equal entries ``>=`` keeps 8 and ``>`` none; ties by chance differ between
    processes. The first stay."""
    layer = nn.Linear(8, 2)
    nn.init.constant_(layer.weight, 0.5)
    _, pruner = pruned(layer, keep=3)
    assert pruner.masks["weight"].int().tolist() == [[1, 1, 1, 0, 0, 0, 0, 0]] * 2


@pytest.mark.parametrize(("keep", "stay"), [(0.8, 7), (0.5, 4), (0.3, 3), (0.1, 1), (0.01, 1)])
def test_rounding_of_a_three_by_three_kernel_is_exact_and_reported(keep: float, stay: int) -> None:
    """Trap: 80/50/30/10 % of a fan-in of 9 are 78/44/33/11 %: what is kept in fact is shown, and a
    filter never loses its last weight."""
    layer = nn.Conv2d(1, 4, 3)
    _, pruner = pruned(layer, keep=keep)
    assert pruner.masks["weight"].flatten(1).sum(dim=1).tolist() == [stay] * 4
    assert pruner.keep == pytest.approx(stay / 9, rel=1e-12)
    assert pruner.trajectory.frame()["keep"].tolist() == [pytest.approx(stay / 9)]


# -------------------------------------------------------------------- momentum and weight decay


@pytest.mark.parametrize("kind", ["momentum", "decay", "adamw"])
def test_with_masked_updates_momentum_and_decay_move_nothing_that_is_left_out(kind: str) -> None:
    """Trap: they move masked entries even when gradients are masked; and what waits must wait."""
    model = mlp()
    make = {
        "momentum": lambda: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
        "decay": lambda: torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.3),
        "adamw": lambda: torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=0.3),
    }
    optimizer: torch.optim.Optimizer = make[kind]()
    for step in range(3):  # a dense start gives moments to everything
        update(model, optimizer, mlp_batch(step))
    start = model[0].weight.detach().clone()
    pruner = Pruner(model, optimizer, keep=0.5, update="masked", schedule=one_shot(0))
    out = ~pruner.masks["0.weight"]
    for step in range(3):
        update(model, optimizer, mlp_batch(step))
        assert (model[0].weight[out] == 0).all()
        assert torch.equal(dense_weights(pruner)["0.weight"][out], start[out])
        assert not torch.equal(model[0].weight[~out], start[~out])


def test_moments_of_weights_whose_mask_changes_are_kept_or_reset() -> None:
    """Trap: old momentum throws a weight that comes back. ``moments="reset"`` forgets it."""
    for moments in ("keep", "reset"):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
        pruner = Pruner(model, optimizer, keep=0.5, moments=moments)
        seen = 0
        for step in range(6):
            before = pruner.masks["0.weight"]
            update(model, optimizer, mlp_batch(step))
            changed = before != pruner.masks["0.weight"]
            buffer = optimizer.state[model[0].weight]["momentum_buffer"]
            assert (buffer[changed] == 0).all() == (moments == "reset" or not changed.any())
            seen += int(changed.sum())
        assert seen > 0


# ----------------------------------------------------------------------- nothing is lost on the way


@pytest.mark.parametrize("rule", ["dense", "masked"])
def test_forward_and_evaluation_passes_never_lose_dense_weights(rule: str) -> None:
    """Trap: zeroing ``weight.data`` in forward loses the weights; validation passes without a
    backward pass did in other libraries."""
    model, start = mlp(), mlp()
    optimizer, pruner = pruned(model, lr=0.0, keep=0.25, update=rule)
    for _ in range(3):
        model.eval()
        with torch.no_grad():
            model(mlp_batch()[0])
        model.train()
        model(mlp_batch()[0]).sum().backward()
        update(model, optimizer, mlp_batch())
        with pruner.dense(), torch.no_grad():
            model(mlp_batch()[0])
    for name, weight in start.named_parameters():
        assert torch.equal(dense_weights(pruner)[name], weight)


def test_steps_are_updates_not_batches_and_skipped_ones_do_not_count() -> None:
    """Trap: schedules that count batches are wrong under gradient accumulation and when GradScaler
    skips an overflow."""
    model = mlp()
    optimizer, pruner = pruned(model)
    for step in range(6):
        (model(mlp_batch(step)[0]) - mlp_batch(step)[1]).square().mean().backward()
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    assert pruner.step == 2
    scaler = torch.amp.GradScaler("cpu")
    before = model[0].weight.detach().clone()
    scaler.scale(model(mlp_batch()[0]).sum() * float("inf")).backward()
    scaler.step(optimizer)
    scaler.update()
    assert pruner.step == 2 and torch.equal(model[0].weight, before)


# ------------------------------------------------------------------------------- number types


def test_a_model_that_becomes_half_stays_pruned() -> None:
    """Trap: ``.half()`` changes weights and not masks (bool), or masks with them."""
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.25)
    masks = pruner.masks
    dense = dense_weights(pruner)
    model.half()
    x, y = mlp_batch()
    update(model, optimizer, (x.half(), y.half()))
    assert model[0].weight.dtype == torch.float16
    assert all(mask.dtype == torch.bool for mask in pruner.masks.values())
    assert (model[0].weight != 0).sum(dim=1).tolist() == [1] * 8  # 1.5 of 6: pruned is rounded up
    # 0.1 times a gradient of order 0.1 away from where they were, in half precision
    torch.testing.assert_close(
        dense_weights(pruner)["0.weight"].float(), dense["0.weight"], rtol=0, atol=0.1
    )
    assert masks.keys() == pruner.masks.keys()


@pytest.mark.parametrize("rule", UPDATE_RULES)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_models_of_other_number_types(rule: str, dtype: torch.dtype) -> None:
    model = mlp().to(dtype)
    optimizer, pruner = pruned(model, keep=0.5, update=rule)
    x, y = mlp_batch()
    for _ in range(3):
        update(model, optimizer, (x.to(dtype), y.to(dtype)))
    assert (model[0].weight != 0).sum(dim=1).tolist() == [3] * 8
    assert model[0].weight.dtype == dtype == pruner.pruned["0.weight"].kept.dtype


def test_autocast_uses_the_masked_weights() -> None:
    """Trap: autocast keeps a cast copy of every weight for a forward pass."""
    model = mlp()
    optimizer, pruner = pruned(model, keep=0.25)
    x, y = mlp_batch()
    for step in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            output = model(x)
            assert output.dtype == torch.bfloat16
            assert torch.equal(output, pruner.copy_of("masked")(x))
        optimizer.zero_grad()
        (output.float() - y).square().mean().backward()
        optimizer.step()
        assert pruner.step == step + 1
    with torch.autocast("cpu", torch.bfloat16), pruner.dense():
        assert not torch.equal(model(x), output)


def test_masked_activations_keep_the_number_type_of_autocast() -> None:
    model = mlp()
    pruned_places = {"granularity": "neuron", "layers": "0", "activations": {"0": "1"}}
    _, pruner = pruned(model, keep=0.5, **pruned_places)
    with torch.autocast("cpu", torch.bfloat16):
        assert model[:2](mlp_batch()[0]).dtype == torch.bfloat16
    assert pruner.keep == 0.5


# -------------------------------------------------------------------------------- tied weights


class Tied(nn.Module):
    """An embedding and a read-out with one weight."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(10, 6)
        self.readout = nn.Linear(6, 10, bias=False)
        self.readout.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        return self.readout(self.embedding(tokens).mean(dim=1))


@pytest.mark.parametrize("rule", UPDATE_RULES)
def test_tied_weights_are_pruned_once_and_on_both_sides(rule: str) -> None:
    """Trap: pruning one side of a tied weight leaves the other one dense, or unties them; and
    reports count the tensor twice."""
    model = Tied()
    optimizer, pruner = pruned(model, keep=0.5, update=rule)
    tokens = torch.randint(10, (4, 3), generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        update(model, optimizer, (tokens, torch.zeros(4, 10)))
        assert model.readout.weight is model.embedding.weight
        assert (model.embedding(torch.arange(10)) != 0).sum(dim=1).tolist() == [3] * 10
    assert list(pruner.pruned) == ["readout.weight"]
    assert sum(each.kept.numel() for each in pruner.pruned.values()) == 60
    assert pruner.keep == 0.5
    plain = pruner.export()
    assert plain.readout.weight is plain.embedding.weight
    assert torch.equal(plain(tokens), model(tokens))


def test_a_layer_used_in_two_places_is_pruned_once() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    _, pruner = pruned(model, keep=0.5)
    assert list(pruner.pruned) == ["0.weight"] and pruner.trajectory.frame()["weights"].sum() == 16


# ------------------------------------------------------------------------------------- reports


def test_biases_and_norms_are_neither_pruned_nor_counted() -> None:
    """Trap: sparsity figures that count biases and normalisation, or a tensor twice."""
    model = cnn()
    _, pruner = pruned(model, keep=0.5)
    assert list(pruner.pruned) == ["0.weight", "3.weight", "6.weight"]
    total = 4 * 2 * 9 + 4 * 2 * 9 + 3 * 16
    assert sum(each.kept.numel() for each in pruner.pruned.values()) == total
    assert f"3 weights with {total} entries, 50.0 % kept" in repr(pruner)
    plain = cnn()
    for name in ("0.bias", "1.weight", "1.bias", "3.bias", "6.bias"):
        assert torch.equal(model.get_parameter(name), plain.get_parameter(name))


def test_the_documentation_says_first_that_nothing_becomes_faster() -> None:
    """Trap: that masks save neither time nor memory is the top surprise of users."""
    import rarefy.pruning.models.pruner as module

    assert "No speed and no memory is gained while training" in str(module.__doc__)


def test_a_copy_of_model_optimiser_and_pruner_goes_on_by_itself() -> None:
    """Trap: copies whose hooks still belong to the original."""
    for rule in UPDATE_RULES:
        model = mlp()
        optimizer, pruner = pruned(model, keep=0.5, update=rule)
        update(model, optimizer, mlp_batch(0))
        other, its_optimizer, its_pruner = copy.deepcopy((model, optimizer, pruner))
        assert its_pruner.model is other and its_pruner.optimizer is its_optimizer
        before = {name: each.clone() for name, each in model.state_dict().items()}
        update(other, its_optimizer, mlp_batch(1))
        assert its_pruner.step == 2 and pruner.step == 1
        assert all(torch.equal(model.state_dict()[name], each) for name, each in before.items())
        update(model, optimizer, mlp_batch(1))
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)
        for name, mask in pruner.masks.items():
            assert torch.equal(mask, its_pruner.masks[name])
