"""Pieces of work on a Dask cluster that somebody else has started."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

IN_FLIGHT = 2
"""Pieces per thread of a cluster that are under way at one time."""


def on_cluster(
    client: Any, function: Callable[..., Any], tasks: Iterable[tuple[int, tuple[Any, ...]]]
) -> Iterator[tuple[int, Any]]:
    """Each task's place and result, in order; few are under way at one time, so that neither the
    workers' memory nor ours fills with what waits."""
    import dask

    most = IN_FLIGHT * max(1, sum(client.nthreads().values()))
    # what a task is given may be parts of Dask arrays: these are computed on the worker
    call = dask.delayed(function, pure=False)
    waiting: deque[tuple[int, Any]] = deque()
    for place, given in tasks:
        waiting.append((place, client.compute(call(*given), retries=2)))
        if len(waiting) >= most:
            yield _received(waiting)
    while waiting:
        yield _received(waiting)


def _received(waiting: deque[tuple[int, Any]]) -> tuple[int, Any]:
    place, future = waiting.popleft()
    try:
        return place, future.result()
    finally:
        future.release()
