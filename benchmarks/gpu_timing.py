"""Device time of an action on a GPU, for all benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial

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


def bf16_limit(device: torch.device) -> float:
    """Operations a second of the best of several large bf16 products."""
    best = 0.0
    for size in (4096, 8192):
        a, b = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
        took = milliseconds(partial(torch.matmul, a, b), repeats=20, warm_up=10)
        best = max(best, 2 * size**3 / (took / 1e3))
    return best
