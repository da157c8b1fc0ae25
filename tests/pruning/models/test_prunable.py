"""Which layers are pruned: every way to choose them, and every refusal by name."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from small_networks import cnn, mlp, pruned
from torch import nn
from torch.nn.utils import parametrizations, prune

from rarefy.core.errors import UsageError
from rarefy.pruning.models.prunable import find_prunable


class Several(nn.Module):
    """Layers of many kinds, nested."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv1d(2, 4, 3)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm([2, 4]), nn.Linear(4, 2))
        self.up = nn.ConvTranspose1d(4, 2, 2)
        self.attention = nn.MultiheadAttention(4, 2)
        self.table = nn.Embedding(5, 4)
        self.memory = nn.GRU(4, 3)
        self.scale = nn.Parameter(torch.ones(2, 2))


def chosen(layers: Any = None, model: nn.Module | None = None) -> list[str]:
    return [each.name for each in find_prunable(model or Several(), layers)]


ATTENTION = ["attention.in_proj_weight", "attention.out_proj.weight"]
USUAL = ["stem.weight", "block.0.weight", "block.2.weight", "up.weight", *ATTENTION]


def test_by_default_linear_layers_convolutions_and_attention() -> None:
    """Not embeddings, recurrent layers, norms, or loose parameters."""
    assert chosen() == USUAL


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (nn.Conv1d, ["stem.weight"]),
        ([nn.Conv1d, nn.ConvTranspose1d], ["stem.weight", "up.weight"]),
        (nn.Linear, ["block.0.weight", "block.2.weight", "attention.out_proj.weight"]),
        (nn.Embedding, ["table.weight"]),
        (nn.GRU, ["memory.weight_ih_l0", "memory.weight_hh_l0"]),
        (nn.MultiheadAttention, ATTENTION),
        ("stem", ["stem.weight"]),
        ("block.*", ["block.0.weight", "block.1.weight", "block.2.weight"]),
        ("block.[02]", ["block.0.weight", "block.2.weight"]),
        ("attention*", ATTENTION),
        ("?tem", ["stem.weight"]),
        (["stem", "block.2"], ["stem.weight", "block.2.weight"]),
        (("stem", nn.Embedding), ["stem.weight", "table.weight"]),
        ("re:^block\\.[02]$", ["block.0.weight", "block.2.weight"]),
        ("re:em", ["stem.weight", "memory.weight_ih_l0", "memory.weight_hh_l0"]),
        ("", ["scale"]),
        (lambda name, module: "block" in name and isinstance(module, nn.Linear),
         ["block.0.weight", "block.2.weight"]),
    ],
)  # fmt: skip
def test_layers_are_chosen_by_type_name_pattern_or_function(
    layers: Any, expected: list[str]
) -> None:
    assert chosen(layers) == expected


def test_a_model_that_is_one_layer() -> None:
    found = find_prunable(nn.Linear(3, 2))
    assert [each.name for each in found] == ["weight"] and found[0].bias is not None


def test_biases_go_with_their_weights() -> None:
    found = {each.name: each for each in find_prunable(Several())}
    assert found["attention.in_proj_weight"].bias is not None
    assert found["attention.in_proj_weight"].bias.shape == (12,)
    assert found["up.weight"].bias is not None and found["up.weight"].bias.shape == (2,)
    assert find_prunable(nn.Linear(2, 2, bias=False))[0].bias is None
    assert find_prunable(nn.Embedding(3, 2), nn.Embedding)[0].bias is None


def test_other_names_of_a_tied_weight_are_remembered() -> None:
    model = nn.Module()
    model.table = nn.Embedding(5, 4)
    model.readout = nn.Linear(4, 5)
    model.readout.weight = model.table.weight
    [found] = find_prunable(model)
    assert (found.name, found.others) == ("readout.weight", ("table.weight",))
    [found] = find_prunable(model, [nn.Embedding, nn.Linear])
    assert (found.name, found.others) == ("table.weight", ("readout.weight",))


# ------------------------------------------------------------------------- patterns that miss


NAMES = (
    "'' (the model itself), stem, block.0, block.1, block.2, up, attention, attention.out_proj, ..."
)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ("steam", f"layers='steam': matches no module with a weight; there are {NAMES}"),
        (["stem", "head*"], f"layers='head*': matches no module with a weight; there are {NAMES}"),
        ("re:^head", f"layers='re:^head': matches no module with a weight; there are {NAMES}"),
        # a container: its layers are called block.0 and so on; it must not be passed over
        (["stem", "block"], f"layers='block': matches no module with a weight; there are {NAMES}"),
        (nn.Conv2d, "layers='Conv2d': no module of this type has a weight"),
        ([nn.Linear, nn.ReLU], "layers='ReLU': no module of this type has a weight"),
        ([], "layers=[]: must be names, types, or a function (name, module)"),
        ([3], "layers=[3]: must be names, types, or a function (name, module)"),
        (
            lambda name, module: False,
            "model: Several has none in layers= (weights of 2 dimensions or more)",
        ),
    ],
)
def test_a_choice_that_matches_nothing_is_refused(layers: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        find_prunable(Several(), layers)
    assert str(error.value) == message


def test_a_model_without_weights_to_prune_is_refused() -> None:
    for model in (nn.ReLU(), nn.LayerNorm(3), nn.Embedding(3, 2)):
        with pytest.raises(UsageError) as error:
            find_prunable(model)
        assert str(error.value) == (
            f"model: {type(model).__name__} has no layers that can be pruned "
            "(weights of 2 dimensions or more)"
        )


# ---------------------------------------------------------------------------- what is refused


def old_weight_norm(layer: nn.Module) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # deprecated, and still met
        return nn.utils.weight_norm(layer)


def quantised(layer: nn.Module) -> nn.Module:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {nn.Linear})[0]


def prepared(layer: nn.Module) -> nn.Module:
    config = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
    layer.qconfig = config
    return torch.ao.nn.qat.Linear.from_float(layer)


PARAMETRIZED = "its weight is computed by a parametrization (weight_norm and the like)"
COMPUTED = "its weight is computed by spectral_norm or torch.nn.utils.prune"


@pytest.mark.filterwarnings("ignore:.*torch.ao.quantization.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*reduce_range.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*quantize.*:UserWarning")
@pytest.mark.filterwarnings("ignore:.*TypedStorage.*:UserWarning")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (old_weight_norm, "its weight is computed by weight_norm"),
        (parametrizations.weight_norm, PARAMETRIZED),
        (parametrizations.spectral_norm, PARAMETRIZED),
        (parametrizations.orthogonal, PARAMETRIZED),
        (nn.utils.spectral_norm, COMPUTED),
        (lambda layer: prune.l1_unstructured(layer, "weight", 0.5), COMPUTED),
        (quantised, "it is quantised"),
        (prepared, "it is prepared for quantisation"),
    ],
    ids=[
        "old weight_norm", "weight_norm", "spectral_norm", "orthogonal", "old spectral_norm",
        "torch prune", "dynamically quantised", "quantisation aware",
    ],
)  # fmt: skip
def test_weights_that_are_computed_are_refused_by_name_however_chosen(
    change: Any, why: str
) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    model[2] = change(model[2])
    for layers in (None, "2", ["0", "2"], type(model[2]), lambda name, _: name in ("0", "2")):
        with pytest.raises(UsageError) as error:
            find_prunable(model, layers)
        assert str(error.value) == (f"layers: 2 cannot be pruned: {why}; leave it out with layers=")
    assert chosen("0", model) == ["0.weight"]  # as the message says


def test_a_refused_model_is_named_by_its_type() -> None:
    with pytest.raises(UsageError, match=r"^layers: ParametrizedLinear cannot be pruned: its weig"):
        find_prunable(parametrizations.weight_norm(nn.Linear(2, 2)))


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_a_layer_without_a_shape_is_refused_not_overlooked() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(2))
    for layers in (None, "1", nn.Linear):
        with pytest.raises(UsageError) as error:
            find_prunable(model, layers)
        assert str(error.value) == (
            "layers: 1.weight cannot be pruned: it has no shape yet: run the model once first"
        )
    model(torch.zeros(1, 4))
    assert chosen(None, model) == ["0.weight", "1.weight"]


@pytest.mark.parametrize("dtype", [torch.int8, torch.complex64])
def test_numbers_that_cannot_be_trained_by_size_are_refused(dtype: torch.dtype) -> None:
    model = mlp()
    model[0].weight = nn.Parameter(torch.zeros(8, 6, dtype=dtype), requires_grad=False)
    with pytest.raises(UsageError) as error:
        find_prunable(model)
    assert str(error.value) == f"layers: 0.weight cannot be pruned: it is of type {dtype}"


class Elsewhere(torch.Tensor):
    """As a sharded tensor, a subclass."""


def test_spread_out_parameters_are_refused() -> None:
    model = mlp()
    model[0].weight = nn.Parameter(torch.zeros(8, 6).as_subclass(Elsewhere))
    with pytest.raises(UsageError) as error:
        find_prunable(model)
    assert str(error.value) == (
        "layers: 0.weight cannot be pruned: it is spread over several processes (FSDP, DTensor), "
        "which is not supported"
    )


def test_a_frozen_layer_can_be_pruned_with_every_rule() -> None:
    """``requires_grad=False`` is common in fine-tuning; it gets a mask all the same."""
    for update in ("dense", "masked", "project"):
        model = cnn()
        model[0].requires_grad_(False)
        optimizer, pruner = pruned(model, keep=0.5, update=update)
        assert pruner.masks["0.weight"].sum() == 36
        model(torch.ones(2, 2, 6, 6)).sum().backward()
        optimizer.step()
        assert (model[0].weight != 0).sum() == 36
