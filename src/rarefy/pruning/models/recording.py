"""Work that is the same at every update, recorded as a CUDA graph and started at once: to choose
masks and put them in force takes a GPU little time, and Python much to start its hundreds of small
operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

TRIALS = 2
"""Times it is done before it is recorded: what is compiled at first use must be over."""
MOST = 1 << 27
"""Numbers in all tensors together. A recording keeps the memory of what it computes on the way,
about as much again; beyond, Python's part is small anyway."""


_ended: list[torch.cuda.CUDAGraph] = []
"""Graphs that wait for their end."""


class Recorded:
    """``recorded(tensors, work)`` does ``work``, which reads and writes ``tensors`` where they lie
    and may give a tensor (the same one every time). Should they lie elsewhere, or on a CPU, or
    somebody be recording the whole step, or recording fail, it is simply done."""

    def __init__(self) -> None:
        self._places: tuple[int, ...] = ()
        self._done = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._found: Tensor | None = None
        self._failed = False

    def __call__(
        self, tensors: Sequence[Tensor], work: Callable[[], Tensor | None]
    ) -> Tensor | None:
        if self._failed or not _recordable(tensors):
            return work()
        places = tuple(each.data_ptr() for each in tensors)
        if places != self._places:
            self._places, self._done, self._graph = places, 0, None
        if self._graph is None:
            self._done += 1
            if self._done <= TRIALS or not self._record(tensors[0].device, work):
                return work()
        assert self._graph is not None
        self._graph.replay()
        return self._found

    def _record(self, device: torch.device, work: Callable[[], Tensor | None]) -> bool:
        _ended.clear()
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream(device)
        try:
            # only this thread's calls can spoil it: others may be loading images
            with (
                torch.cuda.device(device),
                torch.cuda.graph(graph, capture_error_mode="thread_local"),
            ):
                self._found = work()
        except RuntimeError:
            torch.cuda.set_stream(stream)  # a recording that breaks off leaves its own in place
            self._failed = True
            return False
        self._graph = graph
        return True

    def __deepcopy__(self, memo: object) -> Recorded:
        return Recorded()

    def __del__(self) -> None:
        # a graph that ends while another is being recorded would spoil that one
        if self._graph is not None and torch.cuda.is_current_stream_capturing():
            _ended.append(self._graph)


def _recordable(tensors: Sequence[Tensor]) -> bool:
    return (
        len(tensors) > 0
        and all(each.is_cuda and each.device == tensors[0].device for each in tensors)
        and sum(each.numel() for each in tensors) <= MOST
        and not torch.cuda.is_current_stream_capturing()
    )
