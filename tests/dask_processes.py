"""A Dask scheduler and workers as one starts them by hand, for tests; each can be killed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import rarefy

TESTS = Path(__file__).parent
QUIET = {"DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "critical"}


class DaskProcesses:
    """``file`` is what ``--cluster`` takes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        package = str(Path(rarefy.__file__).parents[1])
        path = os.pathsep.join([package, str(TESTS)])
        self.environment = {**os.environ, **QUIET, "PYTHONPATH": path, "RAREFY_COMPILE": "0"}
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0")

    def add_worker(self, *options: str, path: str | None = None) -> subprocess.Popen[bytes]:
        given = ("--nthreads", "1", "--local-directory", str(self.folder), "--no-dashboard")
        self.workers.append(self._start("worker", *given, *(options or ("--no-nanny",)), path=path))
        return self.workers[-1]

    def _start(self, *words: str, path: str | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(self.file)]
        environment = {**self.environment, "PYTHONPATH": path or self.environment["PYTHONPATH"]}
        with (self.folder / "log.txt").open("ab") as log:
            return subprocess.Popen(
                command, env=environment, cwd=self.folder, stdout=log, stderr=log
            )

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextlib.contextmanager
def dask_processes(folder: Path, workers: int = 2) -> Iterator[DaskProcesses]:
    """A scheduler and workers of one thread each, without nannies: who is killed stays dead."""
    started = DaskProcesses(folder)
    try:
        for _ in range(workers):
            started.add_worker()
        until(started.file.exists)
        yield started
    finally:
        started.stop()


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait for something; not for ever."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.02)
