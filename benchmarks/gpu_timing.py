"""Device time of an action on a GPU, for all benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch


def milliseconds(action: Callable[[], object], repeats: int = 10, warm_up: int = 3) -> float:
    """Median device time of ``action`` after some calls that do not count."""
    for _ in range(warm_up):
        action()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return statistics.median(times)
