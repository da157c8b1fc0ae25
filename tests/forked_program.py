"""``python -m rarefy`` for tests of what stops it: forked from a process that has its imports."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
import warnings
from pathlib import Path


class ForkedProgram:
    """One that runs; what it says goes to ``folder/said``."""

    def __init__(self, words: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
        forked = multiprocessing.get_context("forkserver").Process
        self.process = forked(target=_run, args=(words, folder, environment))
        self._said = folder / "said"
        self.process.start()

    def signal(self, number: int) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def says(self, what: str) -> str:
        """Waits for a line that is like ``what``."""
        give_up = time.monotonic() + 60
        while not (found := re.search(what, self._so_far())):
            assert self.process.is_alive() and time.monotonic() < give_up, self._so_far()
            time.sleep(0.02)
        return found[0]

    def _so_far(self) -> str:
        return self._said.read_text("utf-8") if self._said.exists() else ""

    def end(self) -> tuple[int | None, str]:
        """Its exit code (None: it does not end), and what it said."""
        self.process.join(60)
        return self.process.exitcode, self._so_far()


def _run(words: tuple[str, ...], folder: Path, environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    os.chdir(folder)
    said = os.open("said", os.O_WRONLY | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    from rarefy.cli import main

    warnings.simplefilter("error")

    sys.exit(main(list(words)))
