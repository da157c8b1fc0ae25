"""Whether a saved state is one of this pruner, looked at in whole before anything is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rarefy.core.errors import UsageError
from rarefy.pruning.models.trajectory import COLUMNS

if TYPE_CHECKING:
    from rarefy.pruning.models.pruned_parameter import PrunedParameter

FORMAT = 1
"""Of a pruner's state."""


def check_state(
    state: Mapping[str, Any],
    pruned: Mapping[str, PrunedParameter],
    settings: Mapping[str, Any],
    weights: int,
    branch: Mapping[str, Tensor] | None,
) -> None:
    """A saved state must be of this model and of these settings. ``pruned``: by name, so many of
    them ``weights`` and no biases; ``branch``: its own statistics and parameters."""
    if not isinstance(state, Mapping) or not {"layers", "settings", "step"} <= set(state):
        raise UsageError("pruner state: not a state of a Pruner")
    if state.get("format") != FORMAT:
        raise UsageError(f"pruner state: format {state.get('format')!r}, known is {FORMAT}")
    _count(state, "step")
    layers = _of_kind(state, "layers", Mapping)
    for name in [*pruned, *layers]:
        _check_there(name, "model", pruned, layers)
        mask = _of_kind(layers, name, Mapping).get("mask")
        _check_tensor(f"{name} is", mask, pruned[name].kept, mask=True)
    given = _of_kind(state, "settings", Mapping)
    for key, value in settings.items():
        if given.get(key) != value:
            raise UsageError(f"pruner state: made with {key}={given.get(key)!r}, not {value!r}")
    for name, each in pruned.items():
        waiting = layers[name].get("waiting")
        if each.saved or waiting is not None:
            _check_tensor(f"dense weights of {name} are", waiting, each.kept)
    _check_generator(_of_kind(state, "generator", Tensor))
    _check_trajectory(_of_kind(state, "trajectory", Mapping), weights)
    if branch is not None:
        found = _of_kind(state, "branch", Mapping)
        for name in [*branch, *found]:
            _check_there(name, "branch", branch, found)
            _check_tensor(f"{name} of the branch is", found[name], branch[name])


def _check_there(name: str, kind: str, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    if (name in mine) != (name in theirs):
        where = f"the {kind}" if name in mine else "the state"
        raise UsageError(f"pruner state: of another {kind}: only {where} has {name}")


def _check_tensor(words: str, found: object, like: Tensor, mask: bool = False) -> None:
    if not isinstance(found, Tensor):
        raise UsageError(f"pruner state: {words} no tensor: {type(found).__name__}")
    if found.shape != like.shape:
        shape, wanted = tuple(found.shape), tuple(like.shape)
        raise UsageError(f"pruner state: of another model: {words} {shape}, not {wanted}")
    if mask and found.dtype != torch.bool:
        raise UsageError(f"pruner state: mask of {words} {found.dtype}, not bool")


def _of_kind(state: Mapping[str, Any], key: str, kind: type) -> Any:
    found = state.get(key)
    if not isinstance(found, kind):
        words = f"{key} is a {type(found).__name__}" if key in state else f"{key} is missing"
        raise UsageError(f"pruner state: {words}, it must be a {kind.__name__}")
    return found


def _count(state: Mapping[str, Any], key: str) -> int:
    found = state.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UsageError(f"pruner state: {key} is {found!r}, it must be a whole number")
    return found


def _check_generator(found: Tensor) -> None:
    try:
        torch.Generator().set_state(found.cpu())
    except (RuntimeError, TypeError) as error:
        raise UsageError("pruner state: generator is no state of a random generator") from error


def _check_trajectory(found: Mapping[str, Any], layers: int) -> None:
    _count(found, "every"), _count(found, "choices")
    steps = _of_kind(found, "steps", list)
    if not all(isinstance(each, int) for each in steps) or bool(steps) < bool(found["choices"]):
        raise UsageError("pruner state: steps of the trajectory must be whole numbers")
    table = torch.empty(layers, len(COLUMNS), device="meta")
    _check_tensor("the trajectory is", found.get("counts"), table.expand(len(steps), -1, -1))
    if steps:
        _check_tensor("the last choice of masks is", found.get("last"), table)
