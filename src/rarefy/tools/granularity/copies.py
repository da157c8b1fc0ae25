"""Pre-trained networks on their way to fine-tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.train.checkpoints import Checkpoint
from rarefy.train.supervised import History, Training


class Copies:
    """On disk, so that a stopped run need not
    pre-train again, or in memory where there is no folder."""

    def __init__(self, context: Context, name: str) -> None:
        self._folder, self._name, self._device = context.scratch, name, context.device
        self._memory: dict[int, dict[str, Any]] = {}

    def save(self, now: Training) -> None:
        state = {
            "model": {name: one.detach().clone() for name, one in now.model.state_dict().items()},
            "history": vars(now.history),
        }
        if self._folder is None:
            self._memory[now.epoch] = state
        else:
            Checkpoint(self._path(now.epoch)).save(state)

    def history(self, epochs: tuple[int, ...]) -> History | None:
        """Of a pre-training that is through, with all its copies."""
        states = [self._read(epoch) for epoch in epochs]
        return None if None in states else History(**(states[-1] or {})["history"])

    def load(self, epoch: int) -> dict[str, Tensor]:
        state = self._read(epoch)
        assert state is not None, "saved before the pre-training went on"
        model: dict[str, Tensor] = state["model"]
        return model

    def remove(self, epochs: tuple[int, ...]) -> None:
        for epoch in epochs if self._folder is not None else ():
            Checkpoint(self._path(epoch)).remove()

    def _read(self, epoch: int) -> dict[str, Any] | None:
        if self._folder is None:
            return self._memory.get(epoch)
        return Checkpoint(self._path(epoch)).load(self._device)

    def _path(self, epoch: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{self._name}-{epoch}.pt"
