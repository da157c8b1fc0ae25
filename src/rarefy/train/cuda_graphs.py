"""Forward and backward pass as two recorded graphs: a small network on a GPU waits for Python to
start its operations one by one, and a recording is started at once."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from rarefy.train.evaluation import mixed_precision

_log = logging.getLogger("rarefy")


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
    # gradients are added up on the stream of the recording: known, and waited for
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    random = torch.cuda.get_rng_state(example.device)
    try:
        # casts of weights must be inside the recording, not remembered from before it
        with mixed_precision(example.device, precision, remember_casts=False):
            found: Callable[..., Any] = torch.cuda.make_graphed_callables(
                whole, (example.clone(),), allow_unused_input=True
            )
    except RuntimeError as error:
        _log.info("the network is not recorded as a CUDA graph: %s", error)
        torch.cuda.synchronize(example.device)
        found = forward
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    torch.cuda.set_rng_state(random, example.device)
    for parameter in model.parameters():
        parameter.grad = None
    return found
