"""Pieces of work on a Dask cluster that somebody else has started."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rarefy.core.errors import OutOfTime, RunError, SchedulerLost
from rarefy.core.version import __version__

IN_FLIGHT = 2
"""Pieces per thread of a cluster that are under way at one time."""
LOOK_SECONDS = 1.0
"""Between two looks at the clock."""


@dataclass(frozen=True)
class Workers:
    """Those of a ``distributed.Client``; after ``deadline`` nobody waits for them any more."""

    client: Any
    deadline: float | None = None

    def hold(self, value: object) -> Any:
        """A copy of it on every worker, for tasks to be given."""
        with _told():
            return self.client.scatter(value, broadcast=True)

    def results(
        self, function: Callable[..., Any], tasks: Iterable[tuple[int, tuple[Any, ...]]]
    ) -> Iterator[tuple[int, Any]]:
        """Each task's place and result, in order; few are under way at one time, so that neither
        the workers' memory nor ours fills with what waits."""
        import dask

        with _told():
            most = IN_FLIGHT * max(1, sum(self.client.nthreads().values()))
        # what a task is given may be parts of Dask arrays: these are computed on the worker
        call = dask.delayed(_called, pure=False)
        waiting: deque[tuple[int, Any]] = deque()
        for place, given in tasks:
            with _told():
                sent = self.client.compute(call(__version__, function, *given), retries=2)
            waiting.append((place, sent))
            if len(waiting) >= most:
                yield self._received(waiting)
        while waiting:
            yield self._received(waiting)

    def _received(self, waiting: deque[tuple[int, Any]]) -> tuple[int, Any]:
        place, future = waiting.popleft()
        try:
            while True:
                if self.deadline is not None and time.monotonic() > self.deadline:
                    raise OutOfTime("stopped while scoring: the same call goes on")
                with contextlib.suppress(TimeoutError), _told():
                    return place, future.result(timeout=LOOK_SECONDS)
        finally:
            with contextlib.suppress(Exception):  # (nobody may be there any more)
                future.release()


def _called(version: str, function: Callable[..., Any], *given: Any) -> Any:
    if version != __version__:
        raise RunError(f"a worker has rarefy {__version__}, here is {version}; install the same")
    return function(*given)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What a lost cluster raises, in our words."""
    from distributed import CancelledError, KilledWorker

    try:
        yield
    except TimeoutError:
        raise
    except KilledWorker:
        raise RunError("a piece was lost with its workers, one after the other") from None
    except (OSError, CancelledError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise SchedulerLost(f"the scheduler was lost ({said}); the same call goes on") from None
