"""Pieces of work on all cores: each core takes whole pieces, with one thread for their arithmetic.

Nothing then waits at a barrier inside an operation, which costs little on a quiet machine and very
much on a busy one; and what is not a product (reading rows, taking differences) is shared as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

import torch

from rarefy.core.threads import limited

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores(device: torch.device) -> int:
    """How many pieces at once: those that torch may use, and one on a GPU."""
    return torch.get_num_threads() if device.type == "cpu" else 1


class CorePool:
    """``with CorePool(device) as pool: pool.map(function, items)``: results in the order of the
    items, whichever was first."""

    def __init__(self, device: torch.device, most: int | None = None) -> None:
        """``most``: pieces that there will be at one time; cores left over go into products."""
        all_cores = cores(device)
        self.size = max(1, min(all_cores, all_cores if most is None else most))
        self._threads = max(1, all_cores // self.size)
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.size > 1:
            self._limits = limited(self._threads, user_api="blas")
            self._before = torch.get_num_threads()
            torch.set_num_threads(self._threads)  # here as in the others: the same arithmetic
            self._pool = ThreadPoolExecutor(
                self.size, initializer=torch.set_num_threads, initargs=(self._threads,)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._limits.restore_original_limits()
            torch.set_num_threads(self._before)  # a worker's number is also that of new threads

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        items = list(items)
        if self._pool is None or len(items) == 1:  # to hand it over takes longer than a small one
            return [function(item) for item in items]
        return list(self._pool.map(function, items))
