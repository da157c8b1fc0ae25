"""``Pruner``: prune any PyTorch model while it trains.

    pruner = Pruner(model, optimizer, keep=0.3)
    ...                     # train as before: masks follow optimizer.step()
    sparse = pruner.export()

No speed and no memory is gained while training: what is left out is simulated by zeros.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from rarefy.core.compilation import let_compiled_code_see_hooks
from rarefy.core.errors import UsageError
from rarefy.pruning.distributions import Keep
from rarefy.pruning.models.argument_checks import check_choices, check_parameters, check_share
from rarefy.pruning.models.branches import (
    MaskedBranch,
    activation_masks,
    check_activations,
    without_activation_masks,
)
from rarefy.pruning.models.copies import plain_copy, with_weights
from rarefy.pruning.models.optimizer_hooks import WORKS, OptimizerHooks
from rarefy.pruning.models.prunable import Layers, Prunable, find_prunable
from rarefy.pruning.models.pruned_parameter import PrunedParameter, biases
from rarefy.pruning.models.recording import Recorded
from rarefy.pruning.models.rule import USERS_OWN, Rule
from rarefy.pruning.models.state_checks import FORMAT, check_state
from rarefy.pruning.models.trajectory import Trajectory
from rarefy.pruning.models.wrappers import innermost, unwrapped
from rarefy.pruning.regrowth import Regrowth
from rarefy.pruning.schedules import Schedule, constant
from rarefy.pruning.scores import Score
from rarefy.pruning.update_rules import check_rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rarefy.core.tables import Table

_pruners: weakref.WeakSet[Pruner] = weakref.WeakSet()


class Pruner(OptimizerHooks):
    """Masks of a model's weights, chosen again and again while an optimiser trains them.

    Arguments:
        model, optimizer: any PyTorch model, and the optimiser that trains its weights.
        keep: share in (0, 1] (a float; 0.5 if nothing is said) or count (an int) that stays, of
            every filter, layer, ...
        score: "magnitude", "saliency" (|w g|), "random", or a function (name, weight, gradient).
        granularity: "filter", "layer", "global", "neuron", or N:M such as "2:4" (then without
            keep).
        update: what becomes of weights that are left out: "dense" (updated too), "masked" (wait as
            they are), "project" (set to zero, trained on).
        schedule: of ``rarefy.pruning``; masks anew after every update by default.
        layers: names (patterns), types or a function (name, module); by default linear layers,
            convolutions and attention.
        distribution: "uniform", "erk" or {pattern: keep}, for granularities that choose by layer.
        regrow: ``SET(until)`` or ``RigL(until)`` of ``rarefy.pruning``, with update="masked".
        freeze_at: update from which on masks stay.
        moments: the optimiser's memory of weights whose mask changes: "keep" or "reset".
        activations: {layer: module}, with granularity "neuron": mask the module's output instead
            of the layer's incoming weights and bias. (The masks are hooks. The first such pruner
            tells torch.compile to look at hooks, and all that is compiled so far is compiled once
            more.)
        branches: the model itself stays dense, ``pruner.masked_branch(x)`` is the same weights
            masked.
        masked_gradients: in that branch, weights that are left out get no gradient.
        seed: of random scores and regrowth; the same in all processes of a distributed training.

    Attributes:
        masks: True where a weight acts, by the parameter's name; copies.
        keep: share of the prunable weights that the masks in force keep.
        masked_branch: with ``branches=True``: the masked model as a function of its inputs.
        step: updates of the optimiser so far.

    Example:
        >>> model = torch.nn.Linear(8, 4)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
        >>> model(torch.randn(16, 8)).square().mean().backward()
        >>> optimizer.step()  # masks follow
        >>> pruner.keep, pruner.step
        (0.5, 1)
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        keep: Keep | None = None,
        *,
        score: str | Score = "magnitude",
        granularity: str = "filter",
        update: str = "dense",
        schedule: Schedule | None = None,
        layers: Layers | None = None,
        distribution: str | Mapping[str, Keep] = "uniform",
        regrow: Regrowth | None = None,
        freeze_at: int | None = None,
        moments: str = "keep",
        activations: Mapping[str, str] | None = None,
        branches: bool = False,
        masked_gradients: bool = False,
        seed: int = 0,
    ) -> None:
        check_rule(update)
        model, optimizer = unwrapped(model), innermost(optimizer)
        keep = check_share(keep, granularity)
        schedule = schedule or constant()
        if freeze_at is not None:
            schedule = schedule.frozen_at(freeze_at)
        check_choices(update, granularity, moments, regrow, activations, branches, masked_gradients)
        found = find_prunable(model, layers)
        check_parameters(found, optimizer, _taken(found))
        filters = {each.name: each.filters for each in found}
        if activations is not None:
            check_activations(model, filters, activations)
        self.rule = Rule.of(filters, keep, score, granularity, schedule, distribution, regrow, seed)
        self.model, self.optimizer, self.update, self.moments = model, optimizer, update, moments
        self.settings = {
            **{"keep": keep, "score": score if isinstance(score, str) else USERS_OWN},
            **{"granularity": granularity, "update": update, "schedule": str(schedule)},
            "distribution": distribution if isinstance(distribution, str) else dict(distribution),
            "regrow": None if regrow is None else str(regrow),
            "activations": None if activations is None else dict(activations),
            **{"moments": moments, "branches": branches, "masked_gradients": masked_gradients},
        }
        zeroes = not branches and activations is None
        self.pruned = {
            each.name: PrunedParameter(each.parameter, each.filters, update, zeroes)
            for each in found
        }
        bias_too = self.rule.neurons and (activations is None or update == "masked")
        self.biases = biases(found, update, zeroes) if bias_too else {}
        self.trajectory = Trajectory(
            {name: each.count * each.size for name, each in filters.items()}
        )
        self.step = 0
        """Updates of the optimiser so far."""
        self._ended, self.evaluating, self._running = "", False, False
        self._updating, self._loading, self.wrapped = 0, {}, None
        self._recorded, self._links = {work: Recorded() for work in WORKS}, []
        self.neuron_masks = (
            activation_masks(model, self.pruned, activations, update) if activations else []
        )
        if self.neuron_masks:
            let_compiled_code_see_hooks()
        pruned = [each for _, each in self.all_parameters()]
        self.branch = MaskedBranch(model, pruned, masked_gradients) if branches else None
        self._hooks = self._register()
        _pruners.add(self)
        try:
            self._choose_if_due()
        except BaseException:  # a person's score function failed: nothing stays behind
            self.detach()
            raise
        self._apply_masks()

    # ---------------------------------------------------------------------------------- looking

    @property
    def masks(self) -> dict[str, Tensor]:
        """True where a weight acts, by the parameter's name; copies."""
        self.adopt_user_writes()
        return {name: each.mask for name, each in self.pruned.items()}

    @property
    def keep(self) -> float:
        """Share of the prunable weights that the masks in force keep. (With ``project`` those left
        out are trained on until masks are next chosen, in two branches the model stays dense.)"""
        self.adopt_user_writes()
        return self._share()

    def _share(self) -> float:
        kept = sum(int(each.mask.sum()) for each in self.pruned.values())
        return kept / sum(each.kept.numel() for each in self.pruned.values())

    def table(self) -> Table:
        """How much of each layer is kept.

        Returns:
            A table that a terminal shows, a row per layer.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> len(pruner.table().rows)  # the layer, and the total
            2
        """
        from rarefy.pruning.models.summary import table

        return table(self)

    def plot(self, path: str | None = None) -> Figure:
        """Keep ratio, churn and revived weights of every layer over time.

        Arguments:
            path: a file to write the figure to, if given.

        Returns:
            A ``matplotlib.figure.Figure``.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> len(pruner.plot().axes)
            3
        """
        from rarefy.pruning.models.summary import plot

        return plot(self, path)

    def __repr__(self) -> str:
        total = sum(each.kept.numel() for each in self.pruned.values())
        known = {name: value for name, value in self.settings.items() if value is not None}
        words = ", ".join(f"{name}={value}" for name, value in known.items())
        return (
            f"Pruner of {len(self.pruned)} weights with {total:,} entries, "
            f"{100 * self._share():.1f} % kept after {self.step} updates ({words})"
        )

    # --------------------------------------------------------------------- evaluation and export

    def dense(self) -> contextlib.AbstractContextManager[nn.Module]:
        """The model with all its weights, for an evaluation.

        Returns:
            A context manager that gives the model.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> with pruner.dense() as whole:
            ...     whole.weight.count_nonzero().item()
            32
        """
        return with_weights(self, "dense")

    def masked(self) -> contextlib.AbstractContextManager[nn.Module]:
        """The model with what is left out at zero, whatever the update rule: with ``project`` the
        weights are dense between two choices of masks, in two branches always.

        Returns:
            A context manager that gives the model.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> with pruner.masked() as thinned:
            ...     thinned.weight.count_nonzero().item()
            16
        """
        return with_weights(self, "masked")

    def copy_of(self, weights: str = "masked") -> nn.Module:
        """A plain copy of the model; the pruning goes on.

        Arguments:
            weights: "dense", "masked" (with the masks in force), or "projected" (with masks that
                the weights as they are would get now).

        Returns:
            A module of plain PyTorch.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> pruner.copy_of("dense").weight.count_nonzero().item()
            32
        """
        self._check_usable("copied")
        self.adopt_user_writes()
        return plain_copy(self, weights)

    def export(self, weights: str = "masked") -> nn.Module:
        """The finished model as plain PyTorch. It ends the pruning: a further
        ``optimizer.step()`` is an error, lest it trains what nobody looks at.

        Arguments:
            weights: as of ``copy_of``.

        Returns:
            A module of plain PyTorch.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> pruner.export().weight.count_nonzero().item()
            16
        """
        plain = self.copy_of(weights)
        self._ended = f"exported after {self.step} updates"
        return plain

    def detach(self) -> None:
        """Stop pruning: the model has all its weights again and trains on as a plain one.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> pruner.detach()
            >>> model.weight.count_nonzero().item()
            32
        """
        if self not in _pruners:
            return
        self._restore()
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        for _, each in self.all_parameters():
            each.release()
        if self.neuron_masks:
            without_activation_masks(self.model, self.neuron_masks)
        self._ended = f"detached after {self.step} updates"
        _pruners.discard(self)

    @property
    def masked_branch(self) -> MaskedBranch:
        """The same weights with the masks in force, as a function of the model's inputs."""
        if self.branch is None:
            raise UsageError("pruner: masked_branch needs Pruner(..., branches=True)")
        return self.branch

    # -------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """All that a resumed training needs beside the states of model and optimiser.

        Returns:
            A dictionary that ``torch.save`` writes and ``torch.load`` reads with ``weights_only``.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> torch.save(pruner.state_dict(), "pruner.pt")
        """
        self._check_usable("saved")
        self.adopt_user_writes()
        return {
            "format": FORMAT,
            "step": self.step,
            "settings": dict(self.settings),
            "layers": {name: each.state() for name, each in self.all_parameters()},
            "generator": self.rule.generator.get_state(),
            "trajectory": self.trajectory.state(),
            "branch": None if self.branch is None else self.branch.state(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a ``state_dict()``; before or after the model's, the order does not matter.
        Nothing is changed if it does not fit.

        Arguments:
            state: what ``state_dict`` of a pruner with the same settings gave.

        Example:
            >>> model = torch.nn.Linear(8, 4)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> pruner = rarefy.Pruner(model, optimizer, keep=0.5)
            >>> pruner.load_state_dict(pruner.state_dict())
        """
        self._check_usable("loaded")
        branch = None if self.branch is None else self.branch.state()
        check_state(state, dict(self.all_parameters()), self.settings, len(self.pruned), branch)
        for name, each in self.all_parameters():
            each.load(state["layers"][name])
        self.step, self._running, self._updating = state["step"], True, 0
        self.rule.generator.set_state(state["generator"].cpu())
        self.trajectory.load(state["trajectory"])
        for name in self.pruned if self.rule.neurons else ():
            self._set_neuron_masks(name)
        if self.branch is not None:
            self.branch.load(state["branch"])
        self._want_gradients()

    def _check_usable(self, word: str) -> None:
        if self.evaluating:
            raise UsageError(f"pruner: cannot be {word} inside dense() or masked()")
        if self not in _pruners:
            raise UsageError(f"pruner: cannot be {word}, it was {self._ended}")

    def __reduce__(self) -> str:
        raise UsageError("pruner: cannot be pickled; save pruner.state_dict() beside the model's")

    def __deepcopy__(self, memo: dict[int, Any]) -> Pruner:
        """With its model and optimiser: ``copy.deepcopy((model, optimizer, pruner))``."""
        made = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in vars(self).items():
            if name not in ("_hooks", "_guard", "rule"):
                setattr(made, name, copy.deepcopy(value, memo))
        generator = torch.Generator()
        generator.set_state(self.rule.generator.get_state())
        made.rule = dataclasses.replace(self.rule, generator=generator)
        made.wrapped = None  # (the copy stands in no other module)
        made._hooks = made._register()
        for _, each in made.all_parameters():
            each.hook()
        _pruners.add(made)
        return made


def _taken(found: list[Prunable]) -> set[int]:
    """Ids of the parameters that have a pruner, be it one that has exported."""
    mine = {id(each.parameter) for each in found}
    for look in (0, 1):
        taken = {id(each.parameter) for pruner in _pruners for each in pruner.pruned.values()}
        if not look and taken & mine:
            gc.collect()  # of pruners that nobody has any more
    return taken
