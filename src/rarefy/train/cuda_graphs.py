"""Passes of a network as recorded graphs: a small network on a GPU waits for Python to start its
operations one by one, and a recording is started at once.

``record_forward``: forward and backward pass as two graphs, for a loss that stays outside;
``record_gradients``: a whole function that ends in ``backward()``, as one.
"""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np
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


def record_forward(
    model: nn.Module, forward: Callable[[Tensor], Tensor], example: Tensor, precision: str
) -> Callable[[Tensor], Tensor]:
    """``forward`` (of ``model``, in training mode) as graphs for inputs shaped like ``example``, or
    ``forward`` itself where the network cannot be recorded (it looks at values, say).

    Weights are read from where they lie: whoever changes them in place, as optimisers and pruners
    do, is seen. The trial runs leave no trace in BatchNorm's statistics.
    """
    whole = _Whole(forward, model)
    whole.train()
    weights = list(model.parameters())

    def trial(batch: Tensor) -> None:
        with mixed_precision(example.device, precision, remember_casts=False):
            answers = forward(batch)
        answers.sum().backward()

    found = forward
    with _trials(weights, model.buffers(), example.device):
        _try_out(trial, example, weights)
        # casts of weights must be inside the recording, not remembered from before it
        with mixed_precision(example.device, precision, remember_casts=False):
            graphed: Any = torch.cuda.make_graphed_callables(
                whole, (example.clone(),), allow_unused_input=True
            )
        found = graphed
    return found


class RecordedGradients(Generic[Found]):
    """Called with a batch it gives what the recorded function gave, in the same tensors every time,
    and weights have the gradients of this batch, in the same tensors too."""

    def __init__(
        self,
        replay: Callable[[], None],
        batch: Tensor,
        found: Found,
        weights: Sequence[nn.Parameter],
    ) -> None:
        self._replay, self._batch, self._found = replay, batch, found
        self._weights = list(weights)
        self._gradients = [weight.grad for weight in weights]

    def __call__(self, batch: Tensor) -> Found:
        if batch.shape != self._batch.shape:
            raise ValueError(f"recorded for {tuple(self._batch.shape)}, not {tuple(batch.shape)}")
        self._batch.copy_(batch)
        self._replay()
        for weight, gradient in zip(self._weights, self._gradients, strict=True):
            weight.grad = gradient  # (somebody may have set it to None)
        return self._found


def record_gradients(
    work: Callable[[Tensor], Found],
    example: Tensor,
    weights: Sequence[nn.Parameter],
    buffers: Iterable[Tensor],
) -> RecordedGradients[Found] | None:
    """``work``, a function of a batch that ends in ``backward()``, as one graph for batches shaped
    like ``example``; None where it cannot be recorded: it looks at values, or draws random numbers
    on the host. (Other decisions on the host, such as a Python number that changes from epoch to
    epoch, are as they were when it was recorded.)

    ``weights`` are all that get gradients, ``buffers`` whatever else is changed on the way: the
    trial runs leave no trace in them. Weights and masks are read from where they lie: whoever
    changes them in place, as optimisers and pruners do, is seen.
    """
    device = example.device
    made: RecordedGradients[Found] | None = None
    with _trials(weights, buffers, device), torch.cuda.device(device):
        batch = example.clone()
        aside = torch.cuda.Stream(device)
        aside.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(aside):
            _try_out(work, batch, weights)
        torch.cuda.current_stream(device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=aside):
            found = work(batch)
        made = RecordedGradients(graph.replay, batch, found, weights)
    return made


class _CannotRecord(RuntimeError):
    pass


@contextmanager
def _trials(
    weights: Iterable[nn.Parameter], buffers: Iterable[Tensor], device: torch.device
) -> Iterator[None]:
    """Runs that change neither statistics nor random numbers nor gradients, and whose failure is
    written down and passed over: then nothing is recorded, and training goes on without."""
    weights, buffers = list(weights), list(buffers)
    # gradients are added up on the stream of the recording: known, and waited for
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    before = [buffer.clone() for buffer in buffers]
    drawn, on_host = torch.cuda.get_rng_state(device), _host_randomness()
    stream = torch.cuda.current_stream(device)
    try:
        yield
    except RuntimeError as error:
        _log.info("the network is not recorded as a CUDA graph: %s", error.__context__ or error)
        torch.cuda.set_stream(stream)  # a capture that breaks off leaves its own in place
        torch.cuda.synchronize(device)
    finally:
        with torch.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        torch.cuda.set_rng_state(drawn, device)
        _set_host_randomness(on_host)
        _forget(weights)


def _try_out(
    work: Callable[[Tensor], object], batch: Tensor, weights: Iterable[nn.Parameter]
) -> None:
    """Run until all is compiled and allocated; then once under eyes, because a recording that
    breaks off leaves the device in disorder, and one of a decision on the host repeats it for
    ever."""
    weights = list(weights)
    for _ in range(TRIALS - 1):
        _forget(weights)
        work(batch)
    _forget(weights)
    on_host, mode = _host_randomness(), torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        work(batch)
    finally:
        torch.cuda.set_sync_debug_mode(mode)
    _forget(weights)  # so that the next ones are allocated inside the recording
    if _host_randomness() != on_host:
        raise _CannotRecord("it draws random numbers on the host")


def _host_randomness() -> tuple[Any, ...]:
    """Of Python, NumPy and torch, in a form that can be compared."""
    name, keys, *rest = np.random.get_state()  # noqa: NPY002 (what a network may draw from)
    own = torch.get_rng_state().numpy().tobytes()
    return random.getstate(), (name, np.asarray(keys).tobytes(), *rest), own


def _set_host_randomness(state: tuple[Any, ...]) -> None:
    python, (name, keys, *rest), own = state
    random.setstate(python)
    np.random.set_state((name, np.frombuffer(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    torch.set_rng_state(torch.frombuffer(bytearray(own), dtype=torch.uint8))


def _forget(weights: Iterable[nn.Parameter]) -> None:
    for weight in weights:
        weight.grad = None
