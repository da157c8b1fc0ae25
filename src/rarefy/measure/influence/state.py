"""An interrupted pass on disk: one folder, refused when it was made from something else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarefy.core.errors import OutOfTime, RunError, UsageError
from rarefy.core.reading import read_json
from rarefy.core.writing import write_whole
from rarefy.measure.influence.class_statistics import read_arrays, write_arrays

EVERY_SECONDS = 60.0
Arrays = dict[str, NDArray[Any]]


class State:
    """``about.json`` says what is computed, ``state.npz`` how far it is. Without a folder nothing
    is kept."""

    def __init__(
        self,
        folder: Path | None,
        about: dict[str, Any],
        deadline: Callable[[], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self._deadline, self._clock = folder, deadline, clock
        self._about, self._written = about, clock()

    def load(self) -> Arrays | None:
        """How far an earlier call came, or None; refused if that was about something else."""
        if self.folder is None or not (self.folder / "state.npz").exists():
            return None
        path = self.folder / "about.json"
        try:
            before = read_json(path)
            differing = [name for name in self._about if before.get(name) != self._about[name]]
        except (OSError, ValueError, AttributeError) as error:
            raise self.damaged(f"about.json: {error}") from None
        if differing:
            name = differing[0]
            raise UsageError(
                f"state={str(path.parent)!r}: was begun with {name} {before.get(name)!r}, "
                f"now it is {self._about[name]!r}; give another folder or remove this one"
            )
        try:
            return read_arrays(self.folder / "state.npz")
        except RunError as error:
            raise self.damaged(str(error)) from None

    def damaged(self, why: str) -> UsageError:
        return UsageError(f"state={str(self.folder)!r}: is damaged ({why}); remove this folder")

    def keep(self, arrays: Arrays) -> None:
        """Write how far it is, and first of all what it is about: a folder that an error left
        behind before anything was done stands in nobody's way."""
        if self.folder is None:
            return
        write_whole(self.folder / "about.json", json.dumps(self._about, indent=1) + "\n")
        write_arrays(self.folder / "state.npz", arrays)
        self._written = self._clock()

    def unit_done(self, arrays: Callable[[], Arrays]) -> None:
        """Call after each piece of work. Writes when the last writing is long ago; when the time is
        over, writes and raises ``OutOfTime``."""
        over = self._deadline is not None and self._deadline()
        if self.folder is not None and (over or self._clock() - self._written >= EVERY_SECONDS):
            self.keep(arrays())
        if over:
            kept = "nothing is kept without a state folder"
            if self.folder is not None:
                kept = f"the same call goes on from {self.folder}"
            raise OutOfTime(f"stopped while scoring: {kept}")
