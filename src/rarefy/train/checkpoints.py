"""A training on disk: written whole or not at all, read without running anything from the file."""

from __future__ import annotations

import contextlib
import copy
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from rarefy.core.reading import read_tensors
from rarefy.core.text import one_line
from rarefy.core.writing import write_whole

EVERY_SECONDS = 60.0
WORTH_SECONDS = 1.0
"""Of training: kept when it is through, since what comes after it can be stopped too."""
ROUNDED_FROM = "bf16 of"
_log = logging.getLogger("rarefy")


class Checkpoint:
    """The file of one training. ``due`` says when it is time to write it again. Not ``written``:
    it is another process that does."""

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.monotonic, written: bool = True
    ) -> None:
        self.path, self.written, self._clock, self._last = path, written, clock, clock()

    def due(self, seconds: float | None = None) -> bool:
        every = EVERY_SECONDS if seconds is None else seconds
        return self.written and self._clock() - self._last >= every

    def save(self, state: dict[str, Any]) -> None:
        if not self.written:
            return
        write_whole(self.path, lambda path: torch.save(state, path))
        self._last = self._clock()

    def load(self, device: torch.device) -> dict[str, Any] | None:
        """The stored state, or None where there is none. A damaged file costs the time since the
        training began, not the run."""
        if not self.path.exists():
            return None
        try:
            state: dict[str, Any] = read_tensors(self.path, device)
            if not isinstance(state, dict):
                raise TypeError(f"it holds a {type(state).__name__}")
            return state
        except Exception as error:  # wrong bytes fail in whatever meets them first
            reason = one_line((str(error).splitlines() or [type(error).__name__])[0])[:200]
            _log.warning("checkpoint %s is damaged, starting over: %s", self.path, reason)
            return None

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


def made_light(state: Any) -> Any:
    """A training's state with half the bytes: matrices and kernels of its weights and their
    momentum in bf16, also of a network kept on the way. All else stays as it is: counters, draws,
    masks, history, statistics of normalisation layers."""
    if not (isinstance(state, dict) and "model" in state):
        return state
    found = {**state, "kept": made_light(state["kept"])} if "kept" in state else dict(state)
    for name in ("model", "optimizer"):
        if name in found:
            found[name] = _each_tensor(found[name], _rounded)
    if "pruner" in found:  # (dense weights that wait while masked ones are in the model)
        layers = _each_tensor(found["pruner"]["layers"], _rounded)
        found["pruner"] = {**found["pruner"], "layers": layers}
    return found


def made_whole(state: Any) -> Any:
    """``made_light`` undone, but for the rounding: every tensor has its dtype again."""
    if isinstance(state, dict) and ROUNDED_FROM in state:
        return state["values"].to(getattr(torch, state[ROUNDED_FROM]))
    return _each_part(state, made_whole)


def _rounded(tensor: Tensor) -> Any:
    if tensor.ndim < 2 or tensor.dtype not in (torch.float32, torch.float64):
        return tensor
    name = str(tensor.dtype).removeprefix("torch.")
    return {ROUNDED_FROM: name, "values": tensor.to(torch.bfloat16)}


def _each_tensor(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    return _each_part(value, lambda part: _each_tensor(part, change))


def _each_part(value: Any, change: Callable[[Any], Any]) -> Any:
    """Of a dictionary or a list; anything else is as it was."""
    if isinstance(value, dict):
        found = copy.copy(value)  # (a module's state knows more than its tensors)
        for name, part in value.items():
            found[name] = change(part)
        return found
    return type(value)(map(change, value)) if type(value) in (list, tuple) else value
