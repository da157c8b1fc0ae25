"""Descent of many runs at once: one loop over steps, none over runs.

A *problem* gives the loss of a batch, one value per run. Its gradient is autograd's of the loss
summed over runs (summed, never averaged: an average would divide every learning rate by the number
of runs) unless the problem has a ``gradients`` method of its own. A run whose loss or weights stop
being finite keeps its last finite weights (but see ``guard``), its step is noted, what is recorded
of it later is NaN, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.train.optimisers import Rate, Sgd


class Problem(Protocol):
    """What is descended on: the loss of a batch, (run,), as a function of the parameters."""

    def loss(self, parameters: dict[str, Tensor], batch: Any) -> Tensor: ...


@runtime_checkable
class HasGradients(Protocol):
    """A problem that brings its own gradient: loss (run,) and one gradient per parameter."""

    def gradients(
        self, parameters: dict[str, Tensor], batch: Any
    ) -> tuple[Tensor, dict[str, Tensor]]: ...


@runtime_checkable
class HasSteps(HasGradients, Protocol):
    """A problem that takes the step of plain descent itself, where the parameters lie: after the
    products it is passes over memory that take the time."""

    def step(self, parameters: dict[str, Tensor], lr: Rate, batch: Any) -> Tensor:
        """Move the parameters; the loss before that, (run,)."""
        ...


class Pruning(Protocol):
    """What is left out of each step. The problem reads the mask from its own reference to it."""

    def before(self, step: int, parameters: dict[str, Tensor]) -> dict[str, Tensor]:
        """Choose the mask of this step; the parameters it begins with."""
        ...

    def after(self, before: dict[str, Tensor], moved: dict[str, Tensor]) -> dict[str, Tensor]:
        """The parameters after the optimiser has moved them."""
        ...


@dataclass(frozen=True)
class State:
    """What a tracker sees: the weights after ``step`` updates, and the last batch's loss (run,),
    which was taken before the last update (NaN at step 0)."""

    step: int
    parameters: dict[str, Tensor]
    loss: Tensor


GUARDS = ("weights", "loss")

Tracker = Callable[[State], Tensor]
"""Looks at a state, returns a tensor (run, ...)."""


@dataclass
class Trajectory:
    """Final parameters; ``records[name]``: (run, recorded step, ...); ``nonfinite_step``: (run,),
    -1 for runs that stayed finite."""

    parameters: dict[str, Tensor]
    records: dict[str, Tensor] = field(default_factory=dict)
    steps: Sequence[int] = ()
    nonfinite_step: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))


def automatic_gradients(
    problem: Problem, parameters: dict[str, Tensor], batch: Any
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and gradients by autograd of the loss summed over runs."""
    leaves = {name: value.detach().requires_grad_(True) for name, value in parameters.items()}
    with torch.enable_grad():
        loss = problem.loss(leaves, batch)
        found = torch.autograd.grad(loss.sum(), list(leaves.values()))
    return loss.detach(), dict(zip(leaves, found, strict=True))


def descend(
    problem: Problem,
    parameters: dict[str, Tensor],
    batches: Callable[[int], Any],
    optimiser: Sgd,
    steps: int,
    *,
    trackers: Mapping[str, Tracker] | None = None,
    record: Sequence[int] | None = None,
    after_update: Callable[[State], None] | None = None,
    pruning: Pruning | None = None,
    context: Context | None = None,
    automatic: bool = False,
    guard: str = "weights",
) -> Trajectory:
    """Train many runs at once by gradient descent.

    Arguments:
        problem: has ``loss(parameters, batch)``, (run,), and perhaps ``gradients``.
        parameters: tensors (run, ...) by name.
        batches: ``batches(step)`` gives the batch (the same one always: full batch).
        optimiser: such as ``Sgd``.
        steps: updates.
        trackers: functions of the state, by name; each gives a tensor (run, ...).
        record: numbers of updates after which trackers are read (0: before the first); the end
            alone if not given.
        after_update: may move what gradients do not, such as a bias.
        pruning: leaves parts out of each step: ``NeuronPruning``, ``TopKPruning``.
        context: device, deadline and progress, inside a study.
        automatic: autograd even where the problem has gradients written by hand.
        guard: how runs that stop being finite are found: by looking at all "weights" of every step,
            which are then given back as they last were; or by the "loss" alone, which shows them
            one step later and spares four passes over large weights.

    Returns:
        ``parameters`` at the end, ``records`` of the trackers, (run, recorded step, ...), and
        ``nonfinite_step``, (run,), -1 for runs that stayed finite.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> atoms = rarefy.lab.dictionary(draws, d1=100, d=9)
        >>> eps = rarefy.lab.frequencies(5, 4, draws.per_run(0.3))
        >>> data = rarefy.lab.SparseCoding(atoms, eps, sigma=draws.per_run(0.03))
        >>> weights = rarefy.lab.initial_weights(draws, 24, 100, draws.per_run(1e-3))
        >>> bias = rarefy.lab.BiasSchedule(atoms, weights, draws.per_run(0.5), draws.per_run(1.0))
        >>> learner = rarefy.lab.Contrastive(draws.per_run(1.0), draws.per_run(1.0), bias)
        >>> trained = rarefy.lab.descend(
        ...     learner, {"weights": weights}, lambda step: data.sample(draws, 64, step),
        ...     rarefy.lab.Sgd(lr=0.5), steps=60, after_update=bias)
        >>> best = rarefy.lab.squared_cosines(trained.parameters["weights"], atoms).amax(dim=1)
        >>> bool(best[:, :5].min() > best[:, 5:].max())  # frequent features are learnt first
        True
    """
    if guard not in GUARDS:
        raise bad_value("guard", guard, f"must be one of {', '.join(GUARDS)}")
    context = context or Context()
    trackers = trackers or {}
    wanted = sorted(set(record if record is not None else [steps]))
    if wanted and (wanted[0] < 0 or wanted[-1] > steps):
        raise bad_value("record", wanted, f"must lie in 0..steps={steps}")
    kept: dict[str, list[Tensor]] = {name: [] for name in trackers}
    by_hand = isinstance(problem, HasGradients) and not automatic
    in_place = by_hand and isinstance(problem, HasSteps) and guard == "loss" and optimiser.plain
    if in_place:
        parameters = {name: own_rows(value) for name, value in parameters.items()}
    first = next(iter(parameters.values()))
    runs, device = len(first), first.device
    nonfinite = torch.full((runs,), -1, dtype=torch.int64, device=device)
    state = State(0, dict(parameters), torch.full((runs,), torch.nan, device=device))

    def look() -> None:
        lost = nonfinite >= 0
        for name, tracker in trackers.items():
            seen = tracker(state)
            if seen.is_floating_point():
                seen = torch.where(lost.reshape(-1, *(1,) * (seen.dim() - 1)), torch.nan, seen)
            kept[name].append(seen.clone() if in_place else seen)

    with torch.no_grad():
        if 0 in wanted:
            look()
        for step in range(steps):
            context.check_time()
            batch = batches(step)
            here = state.parameters
            if pruning is not None:
                here = pruning.before(step, here)
            if in_place:
                loss, moved = problem.step(here, optimiser.lr, batch), here  # type: ignore[attr-defined]
            else:
                find = problem.gradients if by_hand else partial(automatic_gradients, problem)  # type: ignore[attr-defined]
                loss, gradients = find(here, batch)
                moved = {
                    name: optimiser.update(name, value, gradients[name])
                    for name, value in here.items()
                }
            if pruning is not None:
                moved = pruning.after(here, moved)
            finite = torch.isfinite(loss)
            if guard == "weights":
                for value in moved.values():  # a sum is finite only if every entry is
                    finite &= torch.isfinite(value.reshape(runs, -1).sum(dim=1))
            nonfinite = torch.where((nonfinite < 0) & ~finite, step, nonfinite)
            if guard == "weights":
                _give_back(moved, state.parameters, nonfinite < 0)
            state = State(step + 1, moved, loss)
            if after_update is not None:
                after_update(state)
            if step + 1 in wanted:
                look()
            context.advance(runs)
    records = {name: torch.stack(seen, dim=1) for name, seen in kept.items() if seen}
    return Trajectory(state.parameters, records, wanted, nonfinite)


def own_rows(value: Tensor) -> Tensor:
    """A copy whose rows (of the last axis) begin where whole vectors of eight do: a product that
    is added to others takes a fifth longer on a CPU."""
    width = value.shape[-1]
    room = value.new_empty(*value.shape[:-1], width + (-width % 8 if width > 8 else 0))
    return room[..., :width].copy_(value)


def _give_back(moved: dict[str, Tensor], last: dict[str, Tensor], alive: Tensor) -> None:
    """Runs that are not alive get their last weights back."""
    if alive.device.type == "cpu" and bool(
        alive.all()
    ):  # (a GPU is not asked: it would be waited for)
        return
    for name, value in moved.items():
        keep = alive.reshape(-1, *(1,) * (value.dim() - 1))
        moved[name] = torch.where(keep, value, last[name])
