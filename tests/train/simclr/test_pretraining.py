"""Contrastive training of small networks: every method learns, and does what its words say."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from small_pretrainings import METHODS, STEPS, batches, encoder, pretraining
from torch import Tensor, nn

from rarefy.core.contracts import Context
from rarefy.core.errors import UsageError
from rarefy.nets.backbones import Encoder, Features, Projection
from rarefy.train.simclr.method import temperature
from rarefy.train.simclr.objective import Contrast
from rarefy.train.simclr.pretraining import Pretraining


# (each word of a method once; that every method is trained as it is written: ``by_hand``)
@pytest.mark.quick("simclr", "pruned:0.5+layer+epoch")
@pytest.mark.parametrize(
    "method",
    [
        *("simclr", "simclr+one-sided", "pruned:0.5+layer+epoch", "pruned:0.5+neuron", "sdclr"),
        *("branches:0.3+own-norms+filter", "branches:0.3+frozen", "branches:0.3+noise+own-norms"),
    ],
)
def test_the_loss_falls(method: str) -> None:
    rows = 30
    made = pretraining(method, shown=batches(60, rows), epochs=40)
    seen = made.run(Context())
    begun, ended = sum(seen.loss[:3]) / 3, sum(seen.loss[-3:]) / 3
    # where all points are one: log of the number of choices
    ignorant = math.log(rows if "one-sided" in method else 2 * rows - 1)
    assert ended < begun - 0.2 and ended < ignorant - 0.1
    assert seen.nonfinite_step == -1 and made.step == 80
    lengths = {len(values) for name, values in vars(seen).items() if isinstance(values, list)}
    assert lengths == {40}
    assert 0 < seen.alignment[-1] < seen.alignment[0] and -8 < seen.uniformity[-1] < 0
    assert (made.pruner is None) == method.startswith("simclr")
    if method != "pruned:0.5+neuron":  # (six filters: the same ones may stay the largest)
        assert any(seen.churn) == (made.pruner is not None and not made.method.frozen)


def advanced(made: Pretraining, updates: int) -> list[dict[str, Tensor]]:
    """Masks before each of so many updates, and after the last."""
    assert made.pruner is not None
    masks = [made.pruner.masks]
    for step in range(updates):
        batch = list(made.batches.epoch(step // STEPS))[step % STEPS]
        made.advance(batch)
        masks.append(made.pruner.masks)
    return masks


@pytest.mark.parametrize(
    ("method", "every"),
    [
        ("pruned:0.5", 1),
        ("pruned:0.5+epoch", STEPS),
        ("branches:0.3", STEPS),
        ("branches:0.3+step", 1),
    ],
)
def test_masks_change_when_they_are_asked_to(method: str, every: int) -> None:
    made = pretraining(method, warm_up=0.0)
    masks = advanced(made, 2 * STEPS)
    changed = [
        step
        for step in range(1, len(masks))
        if any(not torch.equal(masks[step][name], old) for name, old in masks[step - 1].items())
    ]
    if every > 1:
        assert changed == [every, 2 * every]
    else:  # (now and then no weight overtakes another)
        assert len(changed) >= STEPS + 2
    for each in masks:  # all kernels of the backbone compete
        kept = sum(int(mask.sum()) for mask in each.values())
        total = sum(mask.numel() for mask in each.values())
        assert total == 486 and kept == round(made.method.keep * total)


@pytest.mark.parametrize("words", ["layer", "filter", "neuron"])
def test_what_competes(words: str) -> None:
    made = pretraining(f"pruned:0.5+{words}")
    masks = advanced(made, 2)[-1]
    for mask in masks.values():
        if words == "layer":
            assert int(mask.sum()) == mask.numel() // 2
            continue
        of_filters = mask.flatten(1).sum(dim=1)
        if words == "filter":
            assert set(of_filters.tolist()) <= {
                math.ceil(mask[0].numel() / 2),
                mask[0].numel() // 2,
            }
        else:
            assert set(of_filters.tolist()) == {0, mask[0].numel()}
            assert int((of_filters > 0).sum()) == len(mask) // 2


def test_whole_filters_are_left_out_behind_their_normalisation_and_learn_on() -> None:
    made = pretraining("pruned:0.5+neuron", warm_up=0.0, weight_decay=0.0, momentum=0.0)
    assert made.pruner is not None
    assert made.pruner.settings["activations"] == {
        "backbone.network.0": "backbone.network.1",
        "backbone.network.4": "backbone.network.5",
    }
    seen: dict[str, Tensor] = {}

    def look(name: str) -> Any:
        return lambda module, given: seen.__setitem__(name, given[0])

    for norm, behind in (("1", "2"), ("5", "6")):
        made.model.get_submodule(f"backbone.network.{behind}").register_forward_pre_hook(look(norm))
    masks = made.pruner.masks
    before = {name: one.detach().clone() for name, one in made.model.named_parameters()}
    made.advance(next(made.batches.epoch(0)))
    for kernel, norm in (("0", "1"), ("4", "5")):
        name = f"backbone.network.{kernel}.weight"
        kept = masks[name].flatten(1).any(dim=1)
        shown = seen[norm].detach().abs().amax(dim=(0, 2, 3))
        assert bool((shown[kept] > 0.1).all()) and bool((shown[~kept] < 1e-18).all())
        # the gradient passes over mask and ReLU: also what showed nothing has moved
        moved = (made.model.get_parameter(name) - before[name]).detach().flatten(1).norm(dim=1)
        assert bool((moved > 0.01 * moved.max()).all())


@pytest.mark.quick("sdclr", "branches:0.3+both", "branches:0.3+own-norms+filter")
@pytest.mark.parametrize("method", [one for one in METHODS if not one.startswith("simclr")])
def test_the_projection_is_never_masked(method: str) -> None:
    made = pretraining(method)
    made.run(Context())
    assert made.pruner is not None
    assert set(made.pruner.pruned) == {"backbone.network.0.weight", "backbone.network.4.weight"}
    if made.disturbance is not None:
        assert set(made.disturbance.branch.factors) == set(made.pruner.pruned)
        return
    dense, masked = made.export_encoder("dense"), made.export_encoder("masked")
    own = made.pruner.branch.own if made.pruner.branch is not None else {}
    for name, parameter in dense.projection.named_parameters():
        if f"projection.{name}" not in own:
            assert torch.equal(parameter, masked.projection.get_parameter(name))
            assert parameter.ndim == 1 or bool((parameter != 0).all())


def test_what_was_learnt_is_a_plain_copy() -> None:
    for method in ("simclr", "pruned:0.5", "branches:0.3"):
        made = pretraining(method)
        made.run(Context())
        dense, masked = made.export_encoder("dense"), made.export_encoder("masked")
        assert type(dense) is Encoder
        for name in ("backbone.network.0.weight", "backbone.network.4.weight"):
            whole, left, inside = (
                one.get_parameter(name).detach() for one in (dense, masked, made.model)
            )
            assert bool((whole != 0).all())
            kept = torch.ones_like(whole) if made.pruner is None else made.pruner.masks[name]
            assert torch.equal(left, whole * kept)
            assert torch.equal(inside, left if method == "pruned:0.5" else whole)
            whole.zero_()
        assert bool(made.model.get_parameter("backbone.network.0.weight").any())
        assert made.has_foreign_statistics == (method == "pruned:0.5")
    with pytest.raises(UsageError, match="weights='half': must be one of dense, masked"):
        made.export_encoder("half")


def test_own_norms_are_trained_without_decay_and_at_the_same_rate() -> None:
    made = pretraining("sdclr", weight_decay=0.5)
    assert made.pruner is not None and made.pruner.branch is not None
    own = made.pruner.branch.own
    assert len(own) == 8  # weight and bias of two in the backbone and two in the projection
    begun = {name: one.detach().clone() for name, one in own.items()}
    made.advance(next(made.batches.epoch(0)))
    *_, group = made.optimizer.param_groups
    assert {id(one) for one in group["params"]} == {id(one) for one in own.values()}
    assert group["weight_decay"] == 0.0
    assert len({one["lr"] for one in made.optimizer.param_groups}) == 1
    for name, one in own.items():
        assert not torch.equal(one, begun[name]), name
        assert not torch.equal(one, made.model.get_parameter(name)), name


def test_two_branches_without_norms_have_none_of_their_own() -> None:
    made = pretraining("sdclr", model=encoder(norms=False))
    assert made.pruner is not None and made.pruner.branch is not None
    seen = made.run(Context())
    assert not made.pruner.branch.own and len(seen.loss) == 3


def test_all_is_kept_there_is_nothing_to_mask() -> None:
    made = pretraining("pruned:1")
    assert made.pruner is None and not made.has_foreign_statistics


@pytest.mark.parametrize(
    ("method", "batches_an_update"), [("simclr", 1), ("pruned:1", 1), ("branches:1", 2)]
)
def test_branches_that_keep_all_normalise_each_view_by_itself(
    method: str, batches_an_update: int
) -> None:
    """The control of branches: what they owe to two batches of statistics, not to masks."""
    made = pretraining(method)
    assert made.pruner is None
    norms = [
        one for one in made.model.modules() if isinstance(one, nn.BatchNorm1d | nn.BatchNorm2d)
    ]
    assert len(norms) == 3  # two in the backbone, one in the projection
    for step, views in enumerate(made.batches.epoch(0), 1):
        made.advance(views)
        assert [int(one.num_batches_tracked) for one in norms] == [step * batches_an_update] * 3


@pytest.mark.parametrize("method", ["simclr", "simclr+schedule", "branches:0.3+schedule"])
def test_temperatures_reach_the_loss(method: str) -> None:
    made = pretraining(method, tau=0.3)
    inner, found = made._contrast, []

    def noting(first: Tensor, second: Tensor, tau: Tensor, objective: str) -> Contrast:
        found.append(float(tau))
        return inner(first, second, tau, objective)

    made._contrast = noting
    made.run(Context())
    wanted = [temperature(made.method, 0.3, step / STEPS, 3) for step in range(3 * STEPS)]
    assert found == pytest.approx(wanted, rel=1e-6)
    assert (len(set(wanted)) == 1) == (method == "simclr")


def test_a_lower_temperature_is_another_loss() -> None:
    losses = []
    for tau in (0.1, 1.0):
        made = pretraining(tau=tau)
        losses.append(made.loss_of(next(made.batches.epoch(0))).loss.item())
    assert abs(losses[0] - losses[1]) > 0.05


@pytest.mark.parametrize("tau", [0.0, -0.2, math.inf, math.nan])
def test_temperatures_that_cannot_be(tau: float) -> None:
    with pytest.raises(UsageError) as error:
        pretraining(tau=tau)
    assert str(error.value) == f"temperature={tau!r}: must be positive and finite"


@pytest.mark.parametrize("method", ["simclr", "pruned:0.5+neuron", "sdclr"])
def test_in_half_precision(method: str) -> None:
    made = pretraining(method, shown=batches(dtype=torch.bfloat16), precision="bf16")
    exact = pretraining(method)
    rough, fine = (one.loss_of(next(one.batches.epoch(0))).loss.item() for one in (made, exact))
    # products of bfloat16 are right to 2^-8, divided by a temperature of 0.2, three layers deep
    assert rough == pytest.approx(fine, abs=0.1) and rough != fine
    seen = made.run(Context())
    assert seen.nonfinite_step < 0 and made.model_dtype == torch.float32


class Attends(nn.Module):
    """Somebody's network: the weights of an attention are read without a call of their layers."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 4, 4, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2)
        found: Tensor = self.attention(tokens, tokens, tokens, need_weights=False)[0].mean(dim=1)
        return found


def test_filters_that_cannot_be_left_out_are_named() -> None:
    def somebodys() -> Encoder:
        torch.manual_seed(0)
        return Encoder(Features(Attends()), Projection(4, 5))

    with pytest.raises(UsageError) as error:
        pretraining("pruned:0.5+neuron", model=somebodys())
    assert str(error.value).startswith(
        "network: whole filters of backbone.network.attention.out_proj cannot be left out"
    )
    seen = pretraining("pruned:0.5", model=somebodys()).run(Context())  # single weights can
    assert all(math.isfinite(loss) for loss in seen.loss)
