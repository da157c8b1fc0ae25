"""``torch.compile`` for functions on the run axis, in one place."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType, MethodType
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled ``function`` whose tensor arguments all have a leading ``run`` axis.

    Only that axis may vary from call to call without compiling again: with all sizes symbolic the
    index arithmetic alone costs a third of the time, with all fixed every odd batch recompiles.
    """
    from torch._dynamo.exc import BackendCompilerFailed  # late: a second of imports

    # on a CPU the C++ wrapper lets go of Python's lock, so that two workers really work at once
    kernels = {
        "cpu": torch.compile(function, options={"cpp_wrapper": True}),
        "cuda": torch.compile(function),
    }

    failed = False

    def call(*arguments: Any) -> Any:
        nonlocal failed
        if failed:
            return function(*arguments)
        tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.dim() > 0]
        for tensor in tensors:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
        try:
            return kernels[tensors[0].device.type](*arguments)
        except BackendCompilerFailed as error:
            # a compiler without Python's headers, say: slower is better than not at all
            failed = True
            reason = str(error).strip().splitlines()[0]
            print(f"note: going on without compiled kernels ({reason})", file=sys.stderr)
            return function(*arguments)

    return call


def own_code(function: Function) -> Function:
    """A copy of a function or bound method with a code object of its own. The compiler keeps its
    versions by code object: it refuses the ninth, and takes one that was made for another network
    although this one has hooks, at which it does not look."""
    given: Any = function
    inner = getattr(given, "__func__", given)
    copied = FunctionType(
        inner.__code__.replace(),
        inner.__globals__,
        inner.__name__,
        inner.__defaults__,
        inner.__closure__,
    )
    found: Any = copied if inner is given else MethodType(copied, given.__self__)
    return found


def forget_compiled() -> None:
    """After hooks came or went: compiled code does not look at them, and would go on as before.
    What is compiled is compiled again when it is next called (usually from files, in seconds)."""
    if "torch._dynamo" in sys.modules:  # else nothing has been compiled
        torch._dynamo.reset()
