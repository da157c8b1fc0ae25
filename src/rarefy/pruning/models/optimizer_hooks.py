"""What a pruner does around every update of the optimiser: dense weights back, masks anew if they
are due, masks in force."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.core.errors import UsageError
from rarefy.pruning.models import foreach_ops
from rarefy.pruning.models.argument_checks import Link, check_still_there
from rarefy.pruning.models.branches import ActivationMask
from rarefy.pruning.models.pruned_parameter import PrunedParameter
from rarefy.pruning.models.recording import Recorded
from rarefy.pruning.models.rule import Rule
from rarefy.pruning.models.step_guard import StepGuard
from rarefy.pruning.models.trajectory import Trajectory, tally
from rarefy.pruning.models.wrappers import watch_for_wrapping

WORKS = ("choose", "choose and count", "restore", "collect", "apply")
"""What is recorded: new masks, without and with what they change; dense weights back, what became
of them, masks in force."""


class LoadHook:
    """Tells a pruner that its model is going to be loaded, or was. A copy of the model, or a
    pickle, tells nobody."""

    def __init__(self, pruner: OptimizerHooks | None, done: bool) -> None:
        self._pruner = None if pruner is None else weakref.ref(pruner)
        self._done = done

    def __call__(self, module: nn.Module, *about: object) -> None:
        pruner = None if self._pruner is None else self._pruner()
        if pruner is not None and module is pruner.model:
            (pruner.loaded if self._done else pruner.loading)()

    def __deepcopy__(self, memo: object) -> LoadHook:
        return LoadHook(None, self._done)

    def __reduce__(self) -> tuple[type[LoadHook], tuple[None, bool]]:
        return LoadHook, (None, self._done)


class OptimizerHooks:
    """The part of ``Pruner`` that the optimiser calls."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    rule: Rule
    pruned: dict[str, PrunedParameter]
    """By the parameter's name."""
    biases: dict[str, PrunedParameter]
    """Of whole neurons, by the name of their weight."""
    neuron_masks: list[ActivationMask]
    trajectory: Trajectory
    moments: str
    update: str
    step: int
    """Updates of the optimiser so far."""
    evaluating: bool
    """Whether other weights are in the model for a while."""
    wrapped: weakref.ref[nn.Module] | None
    """The DistributedDataParallel into which the model was put afterwards."""
    _ended: str
    _running: bool
    _updating: int
    """Updates that have begun and not ended: two, where a step calls that of its parent class."""
    _loading: dict[str, Tensor]
    """Weights before ``model.load_state_dict``."""
    _recorded: dict[str, Recorded]
    """By what is done (``WORKS``)."""
    _links: list[Link]
    _guard: StepGuard
    _hooks: list[Any]
    """None any more when it is detached."""

    def _register(self) -> list[Any]:
        # the optimiser keeps its pruner alive: nobody has to hold it for masks to be in force
        # (not compiled with a compiled optimizer.step(): that would be done again at every update)
        @torch.compiler.disable
        def before(optimizer: Any, args: Any, kwargs: Any) -> Any:
            return self._before(args, kwargs)

        @torch.compiler.disable
        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            self._after()

        watch_for_wrapping(self)
        self._guard = StepGuard(self.optimizer, self._restore)
        return [
            self._guard,
            self.optimizer.register_step_pre_hook(before),
            self.optimizer.register_step_post_hook(after),
            self.model.register_load_state_dict_pre_hook(LoadHook(self, done=False)),
            self.model.register_load_state_dict_post_hook(LoadHook(self, done=True)),
        ]

    def loading(self) -> None:
        """Only who knows what was there can tell whether something else was loaded."""
        self.adopt_user_writes()
        self._loading = {
            name: each.parameter.detach().clone() for name, each in self.all_parameters()
        }

    @torch.no_grad()
    def loaded(self) -> None:
        """Other weights came by ``model.load_state_dict``: masks are chosen for them and act at
        once. (A state of this pruner that is loaded too brings its own, in either order.)"""
        before, self._loading = self._loading, {}
        if self.evaluating:  # (refused when the evaluation ends)
            return
        changed = [
            each.loaded(before[name]) for name, each in self.all_parameters() if name in before
        ]
        if not any(changed):
            return
        try:
            if self.trajectory.choices:
                masks = self.rule.masks(self.pruned, self.step, first=True)
                foreach_ops.set_mask([self.pruned[name] for name in masks], list(masks.values()))
                for name in masks if self.rule.neurons else ():
                    self._set_neuron_masks(name)
        finally:  # a person's score function may fail: masks stay in force
            self._apply_masks()

    def all_parameters(self) -> list[tuple[str, PrunedParameter]]:
        """Weights and, of whole neurons, biases, by name."""
        biases = [(f"bias of {name}", each) for name, each in self.biases.items()]
        return [*self.pruned.items(), *biases]

    @torch.no_grad()
    def adopt_user_writes(self) -> None:
        """Before anybody looks: what somebody else has written into the weights counts as dense
        weights, and the masks are in force on it."""
        if not self._hooks or self.evaluating or self._guard.active:
            return
        self._restore()
        written = {name: each for name, each in self.all_parameters() if each.adopt_user_write()}
        for each in written.values():
            each.restore()
        self._warn(list(written), stacklevel=5)

    def _warn(self, written: list[str], stacklevel: int) -> None:
        if written:
            warnings.warn(
                f"{', '.join(written)} written by somebody else since the last update (by hand? "
                "another optimizer?): these are the dense weights now, under the masks in force "
                "until they are next chosen; train with the pruner's optimizer, or detach()",
                stacklevel=stacklevel,
            )

    @torch.no_grad()
    def _restore(self) -> None:
        """An update has failed: what it left in the parameters are the dense weights, and the masks
        are in force on them. It does not count."""
        if self._updating:
            for _, each in self.all_parameters():
                each.restore()
            self._updating = 0
            torch.clear_autocast_cache()

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._ended:
            raise UsageError(f"pruner: {self._ended}; detach() it to train on")
        if self.evaluating:
            raise UsageError("pruner: optimizer.step() inside dense() or masked() would be lost")
        if self.wrapped is not None and self.wrapped() is not None:
            raise UsageError(
                "pruner: made before DistributedDataParallel, which gives a process the weights "
                "that act in another; wrap the model first, then make the Pruner"
            )
        check_still_there(self.model, self.pruned, self._links)
        if self._updating and self._guard.active:
            self._updating += 1
            return None
        self._restore()
        self._updating = 1
        names, every = zip(*self.all_parameters(), strict=True)
        written = foreach_ops.restore_dense(every, self._recorded["restore"])
        by_hand = zip(names, written, strict=True)
        self._warn([name for name, mine in by_hand if mine], stacklevel=8)
        if not self._running:
            self._start()
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            return None
        # it runs in the middle of the update, where the weights are dense
        masked = self._with_masks(closure)
        if len(args) > 1:
            return (args[0], masked, *args[2:]), kwargs
        return args, {**kwargs, "closure": masked}

    def _with_masks(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def masked() -> Any:
            every = [each for _, each in self.all_parameters()]
            foreach_ops.collect(every, self._recorded["collect"])
            self._apply_masks()
            with torch.enable_grad():
                found = closure()  # (should it fail, the weights stay masked)
            foreach_ops.restore_dense(every, self._recorded["restore"])
            return found

        return masked

    def _after(self) -> None:
        if self._updating > 1:
            self._updating -= 1
            return
        every = [each for _, each in self.all_parameters()]
        foreach_ops.collect(every, self._recorded["collect"])
        # a fused optimiser is called by a GradScaler also if gradients overflowed, and does nothing
        overflow = getattr(self.optimizer, "found_inf", None)
        if overflow is None or not bool(overflow):
            self.step += 1
            self._choose_if_due()
        self._apply_masks()
        self._updating = 0

    def _apply_masks(self) -> None:
        if (
            self.update == "project"
            and self.trajectory.choices
            and self.rule.schedule.over(self.step)
        ):
            for _, each in self.all_parameters():
                each.project()  # a support that stays must stay zero elsewhere
        every = [each for _, each in self.all_parameters()]
        foreach_ops.apply_mask(every, self._recorded["apply"])
        torch.clear_autocast_cache()  # of an update inside autocast

    @torch.no_grad()
    def _choose_if_due(self) -> None:
        if self.rule.schedule.due(self.step):
            first = not self.trajectory.choices
            wanted = self.trajectory.wanted(self.step)
            remembering = self.moments == "reset" or self.rule.regrow is not None
            if first or remembering or self.rule.neurons or not self.rule.repeats:
                counts = self._choose(wanted, first, remembering)
            else:
                counts = self._recorded["choose and count" if wanted else "choose"](
                    foreach_ops.chosen_tensors(list(self.pruned.values())),
                    lambda: self._choose(wanted),
                )
            self.trajectory.add(self.step, None if counts is None else counts.clone())
        else:  # (with project: they have been trained on)
            for _, each in self.all_parameters():
                each.projected = False
        self._want_gradients()

    def _choose(
        self, wanted: bool, first: bool = False, remembering: bool = False
    ) -> Tensor | None:
        """New masks; what they change, if that is wanted."""
        masks = self.rule.masks(self.pruned, self.step, first)
        counts = None
        if wanted:
            counts = tally([self.pruned[name].compare(mask) for name, mask in masks.items()])
        before = {name: self.pruned[name].mask for name in masks} if remembering else {}
        foreach_ops.set_mask([self.pruned[name] for name in masks], list(masks.values()))
        for name, old in before.items():
            self._moved(self.pruned[name], old != masks[name], first)
        for name in masks if self.rule.neurons else ():
            self._set_neuron_masks(name)
        return counts

    def _want_gradients(self) -> None:
        wanted = self.rule.needs_gradient(self.step + 1)
        for each in self.pruned.values():
            each.whole_gradient = wanted

    def _moved(self, pruned: PrunedParameter, moved: Tensor, first: bool) -> None:
        """Of weights whose mask has changed: what has grown begins at zero."""
        if self.rule.regrow is not None and pruned.waiting is not None and not first:
            pruned.waiting.masked_fill_(moved & pruned.mask, 0)
        if self._running:
            self._forget(pruned, moved)

    def _forget(self, pruned: PrunedParameter, moved: Tensor) -> None:
        for value in self.optimizer.state.get(pruned.parameter, {}).values():
            if isinstance(value, Tensor) and value.shape == moved.shape:
                value.masked_fill_(moved, 0)

    def _start(self) -> None:
        """What the first masks do to the optimiser's memory waits for the first update: a state
        that is loaded before has masks of its own."""
        self._running = True
        if self.moments == "reset" or self.rule.regrow is not None:
            for each in self.pruned.values():
                self._forget(each, ~each.mask)

    def _set_neuron_masks(self, name: str) -> None:
        neurons = self.pruned[name].neurons()
        if name in self.biases:
            moved = self.biases[name].mask != neurons
            self.biases[name].set_mask(neurons)
            if self.moments == "reset" and self._running:
                self._forget(self.biases[name], moved)
        for each in self.neuron_masks:
            if each.layer == name.rpartition(".")[0]:
                each.mask.copy_(neurons)
