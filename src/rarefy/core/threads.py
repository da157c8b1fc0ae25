"""How many threads a product is worth."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

SMALL = 1 << 22
"""Multiply-adds of one product below which a second thread saves a fifth at best, and costs many
times the work where other programs want the cores too: each product waits for its slowest
thread."""


@contextlib.contextmanager
def threads_for(products: int, device: torch.device) -> Iterator[None]:
    """One thread on a CPU while there is a row of small products to compute."""
    before = torch.get_num_threads()
    if device.type != "cpu" or products >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_parts(work: Callable[[slice], None], runs: int, most: int) -> None:
    """``work`` on all runs, shared out to torch's number of threads, ``most`` of them at most; for
    what lets go of Python's lock."""
    threads = min(torch.get_num_threads(), runs, most)
    if threads < 2:
        return work(slice(0, runs))
    ends = [runs * part // threads for part in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, map(slice, ends, ends[1:])))


def limited(threads: int, user_api: str | None = None) -> Any:
    """So many threads of BLAS and OpenMP; a context, or ``restore_original_limits`` ends it."""
    return _pools(len(sys.modules)).limit(limits=threads, user_api=user_api)


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:
    """Looked for again, among all libraries of the process, only when something was imported."""
    return ThreadpoolController()


@contextlib.contextmanager
def exactly(threads: int) -> Iterator[None]:
    """So many threads inside an operation, torch's and BLAS's: another number adds up sums in
    another order, and the last digits differ."""
    import scipy.linalg  # noqa: F401  (its BLAS must be there to be limited)

    before = torch.get_num_threads()
    with limited(threads):
        torch.set_num_threads(threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
