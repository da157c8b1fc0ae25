"""Passes of a network as recorded graphs: a small network on a GPU waits for Python to start its
operations one by one, and a recording is started at once.

``recorded``: forward and backward pass as two graphs, for a loss that stays outside;
``record_gradients``: a whole function that ends in ``backward()``, as one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from rarefy.train.precision import mixed_precision

_log = logging.getLogger("rarefy")

Found = TypeVar("Found")
TRIALS = 3
"""Runs before a recording: what is compiled, measured or allocated at first use must be over."""


class _Whole(nn.Module):
    """Around the network: recording replaces the ``forward`` of what it is given, and copies of the
    network itself (for evaluation, for export) must keep their own."""

    def __init__(self, forward: Callable[[Tensor], Tensor], model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._call = forward

    def forward(self, x: Tensor) -> Tensor:
        return self._call(x)


def recorded(
    model: nn.Module, forward: Callable[[Tensor], Tensor], example: Tensor, precision: str
) -> Callable[[Tensor], Tensor]:
    """``forward`` (of ``model``, in training mode) as graphs for inputs shaped like ``example``, or
    ``forward`` itself where the network cannot be recorded (it looks at values, say).

    Weights are read from where they lie: whoever changes them in place, as optimisers and pruners
    do, is seen. The trial runs leave no trace in BatchNorm's statistics.
    """
    whole = _Whole(forward, model)
    whole.train()
    with _without_trace(model.parameters(), model.buffers(), example.device):
        try:
            # casts of weights must be inside the recording, not remembered from before it
            with mixed_precision(example.device, precision, remember_casts=False):
                found: Callable[..., Any] = torch.cuda.make_graphed_callables(
                    whole, (example.clone(),), allow_unused_input=True
                )
        except RuntimeError as error:
            _refused(error, example.device)
            found = forward
    return found


class RecordedGradients(Generic[Found]):
    """Called with a batch it gives what the recorded function gave, in the same tensors every time,
    and weights have the gradients of this batch. Whoever sets ``grad`` to None loses them."""

    def __init__(self, graph: torch.cuda.CUDAGraph, batch: Tensor, found: Found) -> None:
        self._graph, self._batch, self._found = graph, batch, found

    def __call__(self, batch: Tensor) -> Found:
        self._batch.copy_(batch)
        self._graph.replay()
        return self._found


def record_gradients(
    work: Callable[[Tensor], Found],
    example: Tensor,
    weights: Sequence[nn.Parameter],
    buffers: Iterable[Tensor],
) -> RecordedGradients[Found] | None:
    """``work``, a function of a batch that ends in ``backward()``, as one graph for batches shaped
    like ``example``; None where it cannot be recorded (it looks at values, say).

    ``weights`` are all that get gradients, ``buffers`` whatever else is changed on the way: the
    trial runs leave no trace in them. Weights and masks are read from where they lie: whoever
    changes them in place, as optimisers and pruners do, is seen.
    """
    device = example.device
    batch = example.clone()
    graph = torch.cuda.CUDAGraph()
    gradients: list[Tensor | None] = []
    made: RecordedGradients[Found] | None = None
    with _without_trace(weights, buffers, device):
        try:
            aside = torch.cuda.Stream(device)
            aside.wait_stream(torch.cuda.current_stream(device))
            with torch.cuda.stream(aside):
                for _ in range(TRIALS):
                    _forget(weights)
                    work(batch)
            torch.cuda.current_stream(device).wait_stream(aside)
            _forget(weights)  # so that they are allocated inside the recording
            with torch.cuda.graph(graph):
                found = work(batch)
            gradients = [weight.grad for weight in weights]
            made = RecordedGradients(graph, batch, found)
        except RuntimeError as error:
            _refused(error, device)
    if made is not None:
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
    return made


@contextmanager
def _without_trace(
    weights: Iterable[nn.Parameter], buffers: Iterable[Tensor], device: torch.device
) -> Iterator[None]:
    """Trial runs change neither statistics nor the state of the random numbers."""
    weights, buffers = list(weights), list(buffers)
    # gradients are added up on the stream of the recording: known, and waited for
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    before = [buffer.clone() for buffer in buffers]
    random = torch.cuda.get_rng_state(device)
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        torch.cuda.set_rng_state(random, device)
        _forget(weights)


def _forget(weights: Iterable[nn.Parameter]) -> None:
    for weight in weights:
        weight.grad = None


def _refused(error: RuntimeError, device: torch.device) -> None:
    _log.info("the network is not recorded as a CUDA graph: %s", error)
    torch.cuda.synchronize(device)
