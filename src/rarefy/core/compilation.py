"""``torch.compile`` for functions on the run axis, in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled ``function`` whose tensor arguments all have a leading ``run`` axis.

    Only that axis may vary from call to call without compiling again: with all sizes symbolic the
    index arithmetic alone costs a third of the time, with all fixed every odd batch recompiles.
    """
    kernel = torch.compile(function)

    def call(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, torch.Tensor) and argument.dim() > 0:
                torch._dynamo.maybe_mark_dynamic(argument, 0)
        return kernel(*arguments)

    return call
