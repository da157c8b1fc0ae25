"""Traps into which pruning libraries fall, one test each: see the docstrings.

What happens when weights are written by hand is in ``test_written_by_hand.py``."""

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
from rarefy.pruning.filters import Filters
from rarefy.pruning.schedules import constant, one_shot
from rarefy.pruning.selection import Granularity
from rarefy.pruning.updates import UPDATE_RULES

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
    assert list(pruner.held) == ["attention.in_proj_weight", "attention.out_proj.weight"]
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
    assert list(pruner.held) == [
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
    with pytest.warns(UserWarning, match="0.weight, 2.weight written by hand"):
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
    kept = pruner.held["0.weight"].neurons()
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
    gone = ~pruner.held["0.weight"].neurons()
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


# ------------------------------------------------------------------------------ what is chosen


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
    assert model[0].weight.dtype == dtype == pruner.held["0.weight"].kept.dtype


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
    assert list(pruner.held) == ["readout.weight"]
    assert sum(each.kept.numel() for each in pruner.held.values()) == 60
    assert pruner.keep == 0.5
    plain = pruner.export()
    assert plain.readout.weight is plain.embedding.weight
    assert torch.equal(plain(tokens), model(tokens))


def test_a_layer_used_in_two_places_is_pruned_once() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(shared, nn.ReLU(), shared)
    _, pruner = pruned(model, keep=0.5)
    assert list(pruner.held) == ["0.weight"] and pruner.trajectory.frame()["weights"].sum() == 16


# ------------------------------------------------------------------------------------- reports


def test_biases_and_norms_are_neither_pruned_nor_counted() -> None:
    """Trap: sparsity figures that count biases and normalisation, or a tensor twice."""
    model = cnn()
    _, pruner = pruned(model, keep=0.5)
    assert list(pruner.held) == ["0.weight", "3.weight", "6.weight"]
    total = 4 * 2 * 9 + 4 * 2 * 9 + 3 * 16
    assert sum(each.kept.numel() for each in pruner.held.values()) == total
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
