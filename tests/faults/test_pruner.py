"""A pruned model is what its Pruner says.

Under every update rule, in two branches and with masks of activations the weights are compared with
``plain_pruner``, which knows nothing of rarefy.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from typing import Any

import pytest
import torch
import torch.distributed as dist
from plain_pruner import RATE, WAYS, Plain, batch, network
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from rarefy import Pruner
from rarefy.core.errors import UsageError
from rarefy.pruning.schedules import constant

every_way = pytest.mark.parametrize("way", WAYS)


class Breaking(torch.optim.SGD):
    """Plain SGD; told to, it is interrupted when it has moved the first parameter. (It calls its
    parent's step, whose hooks torch runs too once there is a plain SGD: still it is one update.)"""

    by = 0.0

    def step(self, closure: Any = None) -> Any:
        if not self.by:
            return super().step(closure)
        with torch.no_grad():
            self.param_groups[0]["params"][0].add_(self.by)
        raise KeyboardInterrupt


class Both:
    """A pruned network, and the plain one beside it: a few updates old."""

    def __init__(self, way: str, updates: int = 4) -> None:
        self.model, self.at = network(1), 0
        torch.optim.SGD(self.model.parameters(), RATE)  # (see ``Breaking``)
        self.optimizer = Breaking(self.model.parameters(), RATE)
        kind, schedule = WAYS[way], constant(WAYS[way].every)
        self.plain = Plain(kind, weights(self.model))
        self.pruner = Pruner(self.model, self.optimizer, 0.5, schedule=schedule, **kind.choices)
        self.train(updates)

    def backward(self) -> None:
        x, y = batch(self.at)
        loss = (self.model(x) - y).square().mean()
        if self.pruner.branch is not None:
            loss = loss + (self.pruner.masked_branch(x) - y).square().mean()
        self.model.zero_grad()
        loss.backward()
        self.at += 1

    def train(self, updates: int) -> None:
        for _ in range(updates):
            self.plain.update(self.at)
            self.backward()
            self.optimizer.step()
            self.check()

    def check(self) -> None:
        """The weights first, before anybody looks through the pruner."""
        for name, weight in self.plain.acting().items():
            found = self.model.get_parameter(name)
            torch.testing.assert_close(found.detach(), weight, rtol=0, atol=1e-12, msg=name)
        masks = self.pruner.masks
        assert list(masks) == list(self.plain.masks)
        assert all(torch.equal(masks[name], self.plain.masks[name] == 1) for name in masks)
        assert self.pruner.keep == 0.5
        for name, weight in weights(self.pruner.copy_of("masked")).items():
            expected = self.plain.dense[name] * self.plain.masks.get(name, 1.0)
            if not self.pruner.neuron_masks:
                torch.testing.assert_close(weight, expected, rtol=0, atol=1e-12, msg=name)


def weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: each.detach().clone() for name, each in model.named_parameters()}


# ---------------------------------------------------------------------------------------- loading


@pytest.mark.fault(
    when="`model.load_state_dict` while a `Pruner` trains the model",
    then="masks are chosen for the loaded weights and in force at once, under every rule",
    lost="nothing",
)
@every_way
def test_d2_loaded_weights_get_masks_of_their_own(way: str) -> None:
    both = Both(way)
    other = network(7)
    both.plain.load(weights(other))
    both.model.load_state_dict(other.state_dict())
    both.check()
    both.train(4)


@pytest.mark.fault(
    when="the weights that are loaded are those that are there, as in a resumed training",
    then="masks and waiting weights stay; only weights that a partial state has are new",
    lost="nothing",
)
@every_way
def test_d2_loading_what_is_there_changes_nothing(way: str) -> None:
    both = Both(way)
    both.model.load_state_dict(copy.deepcopy(both.model.state_dict()))
    both.check()
    bias = {"2.bias": torch.ones_like(both.plain.dense["2.bias"])}
    both.plain.dense |= bias
    both.model.load_state_dict(bias, strict=False)
    both.train(4)


# ------------------------------------------------------------------------------ updates that fail


@pytest.mark.fault(
    when="`optimizer.step()` raises or is interrupted half-way (Ctrl-C, out of memory)",
    then="masks are in force before the error is passed on; what was moved so far are the dense "
    "weights, the update does not count",
    lost="that update",
)
@pytest.mark.parametrize("place", ["arithmetic", "hook before", "hook after", "closure", "score"])
@every_way
def test_d5_an_update_that_fails_leaves_the_masks_in_force(way: str, place: str) -> None:
    both = Both(way)
    model, optimizer, plain = both.model, both.optimizer, both.plain
    hooks = []

    def fail(*about: Any) -> None:
        raise KeyboardInterrupt

    moved = {}
    if place == "arithmetic":
        optimizer.by = 0.3
        moved = {"0.weight": torch.full_like(plain.dense["0.weight"], 0.3)}
    elif place == "hook before":
        hooks.append(optimizer.register_step_pre_hook(fail))
    elif place in ("hook after", "score"):
        moved = {name: -RATE * each for name, each in plain.gradients(both.at).items()}
        if place == "hook after":  # before the pruner's own
            hooks.append(optimizer.register_step_post_hook(fail))
            optimizer._optimizer_step_post_hooks.move_to_end(hooks[0].id, last=False)
    both.backward()
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        if place == "score":
            patch.setattr(both.pruner.rule.schedule.__class__, "due", fail)
        optimizer.step(fail if place == "closure" else None)
    plain.broken_off(moved)
    optimizer.by, both.pruner.step = 0.0, plain.updates
    for hook in hooks:
        hook.remove()
    both.check()
    both.train(4)
    assert not model[0].weight.grad.isnan().any()


@pytest.mark.fault(
    when="a learning rate scheduler or a second pruner stands around `optimizer.step`, before the "
    "`Pruner` was made or after; the pruner is detached",
    then="failing updates still leave the masks in force; `detach()` leaves the others working",
    lost="that update",
)
@pytest.mark.parametrize("first", [False, True], ids=["scheduler last", "scheduler first"])
def test_d5_schedulers_and_pruners_around_one_optimiser(first: bool) -> None:
    model = network(1)
    optimizer = Breaking(model.parameters(), RATE)
    plain_step = optimizer.step
    schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 1)] if first else []
    one = Pruner(model, optimizer, 0.5, layers="0")
    two = Pruner(model, optimizer, 0.5, layers="2", update="masked")
    if not first:
        schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 1)]
    for pruners in ([one, two], [two]):
        model(batch(0)[0]).sum().backward()
        optimizer.by = 0.0
        optimizer.step()
        schedulers[0].step()  # (a warning, which is an error here, if its wrapper were gone)
        optimizer.by = 0.3
        with pytest.raises(KeyboardInterrupt):
            optimizer.step()
        for pruner in pruners:
            for name, mask in pruner.masks.items():
                assert torch.equal(model.get_parameter(name) != 0, mask)
        one.detach()
    two.detach()
    assert (model[0].weight != 0).all() and (model[2].weight != 0).all()
    assert copy.deepcopy(optimizer).step.__func__ is plain_step.__func__
    alone = Pruner(model, Breaking(model.parameters(), RATE))
    alone.detach()
    assert "step" not in vars(alone.optimizer)


@pytest.mark.fault(
    when="somebody fetched `optimizer.step` before the `Pruner` was made, and that fails",
    then="the next look at the pruner, or the next update, puts the masks in force",
    lost="that update",
)
@pytest.mark.parametrize("rule", ["dense", "masked", "project"])
def test_d5_a_step_that_was_fetched_before(rule: str) -> None:
    both = Both(rule, updates=0)
    with pytest.raises(KeyboardInterrupt):
        both.optimizer.by = 0.3
        type(both.optimizer).step(both.optimizer)
    both.optimizer.by = 0.0
    moved = {"0.weight": torch.full_like(both.plain.dense["0.weight"], 0.3)}
    both.plain.broken_off(moved)
    assert both.pruner.keep == 0.5
    both.check()
    both.train(2)


# ---------------------------------------------------------------------------------- other writers


@pytest.mark.fault(
    when="another optimiser trains weights that a `Pruner` masks",
    then="`keep`, `masks`, `copy_of`, `export`, `state_dict` and the next update say so; what it "
    "wrote are the dense weights, and masks are in force again",
    lost="nothing",
)
@pytest.mark.parametrize("look", ["keep", "masks", "copy_of", "export", "state_dict", "dense"])
@every_way
def test_d8_another_optimiser_is_noticed(way: str, look: str) -> None:
    both = Both(way)
    other = torch.optim.SGD(both.model.parameters(), RATE)
    both.plain.another_optimiser(both.at)
    both.backward()
    other.step()
    kind = WAYS[way]
    # where masks act elsewhere, or weights are trained on by the rule, nothing is amiss
    elsewhere = kind.branch or kind.neurons or not both.plain.fresh
    amiss = kind.rule == "masked" or not elsewhere
    said = pytest.warns(UserWarning, match="^0.weight.* written by somebody else since")
    with said if amiss else contextlib.nullcontext():
        found = getattr(both.pruner, look)
        if look == "dense":
            with found():
                pass
        elif look not in ("keep", "masks"):
            found()
    both.check()  # (without a further warning)
    if look != "export":
        both.train(4)


@pytest.mark.fault(
    when="a second optimiser takes turns with that of the `Pruner`",
    then="its steps count as writing by hand; said once, not at every update",
    lost="nothing",
)
@pytest.mark.parametrize("rule", ["dense", "masked", "project"])
def test_d8_two_optimisers_in_turn_are_said_once(rule: str) -> None:
    both = Both(rule)
    other = torch.optim.SGD(both.model.parameters(), RATE)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        for _ in range(5):
            for optimizer in (other, both.optimizer):
                both.backward()
                optimizer.step()
            for name, mask in both.pruner.masks.items():
                assert torch.equal(both.model.get_parameter(name) != 0, mask)
    assert [each.filename for each in said] == [__file__]


@pytest.mark.fault(
    when="a `Pruner` was made before the model was wrapped in `DistributedDataParallel`",
    then="the first update is refused in every process, and the right order is named",
    lost="nothing",
)
@every_way
def test_d8_a_pruner_made_before_ddp_is_refused(way: str) -> None:
    """(What ranks do together: tests/pruning/models/test_distributed.py.)"""
    both = Both(way, updates=1)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        both.train(1)  # a process that trains its own model is nobody's business
        ddp = DistributedDataParallel(nn.Sequential(nn.Identity(), both.model))
        ddp(batch(0)[0]).sum().backward()
        with pytest.raises(UsageError) as error:
            both.optimizer.step()
        assert str(error.value) == (
            "pruner: made before DistributedDataParallel, which gives a process the weights that "
            "act in another; wrap the model first, then make the Pruner"
        )
        both.check()
        both.pruner.detach()
        pruner = Pruner(ddp, both.optimizer, 0.5, layers="1.0", update="masked")
        both.optimizer.step()
        assert pruner.step == 1 and pruner.keep == 0.5
    finally:
        dist.destroy_process_group()
