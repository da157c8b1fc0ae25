"""A training on disk: written whole or not at all, read without running anything from the file."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rarefy.core.reading import read_tensors
from rarefy.core.text import one_line
from rarefy.core.writing import write_whole

EVERY_SECONDS = 60.0
WORTH_SECONDS = 1.0
"""Of training: kept when it is through, since what comes after it can be stopped too."""
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
