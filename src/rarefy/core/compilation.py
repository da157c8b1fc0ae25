"""Compiled code in one place: ``torch.compile`` for functions on the run axis, and C++ files."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])
WORTH_BUILDING = 500
"""Runs times steps that save the second in which C++ files are built."""


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled ``function`` whose tensor arguments all have a leading ``run`` axis.

    Only that axis may vary from call to call without compiling again: with all sizes symbolic the
    index arithmetic alone costs a third of the time, with all fixed every odd batch recompiles.
    """
    # on a CPU the C++ wrapper lets go of Python's lock, so that two workers really work at once
    kernels = {
        "cpu": torch.compile(function, options={"cpp_wrapper": True}),
        "cuda": torch.compile(function),
    }

    def kernel(*arguments: Any) -> Any:
        tensors = [a for a in arguments if isinstance(a, torch.Tensor) and a.dim() > 0]
        for tensor in tensors:
            torch._dynamo.maybe_mark_dynamic(tensor, 0)
        return kernels[tensors[0].device.type](*arguments)

    return or_plain(kernel, function)


@cache
def built(source: Path) -> ctypes.CDLL | None:
    """The functions of a C++ file, built for this very processor; None, and a note, where no
    compiler works. Takes half a second once per process, and leaves no file behind."""
    # as written: no product and sum in one rounding; but no errno, no traps
    flags = "-O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -shared -fPIC"
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "library.so"
        command = [os.environ.get("CXX", "g++"), *flags.split(), str(source), "-o", str(library)]
        try:
            subprocess.run(command, check=True, capture_output=True)
            return ctypes.CDLL(str(library))
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"note: going on without {source.name} ({error})", file=sys.stderr)
            return None


def or_plain(
    kernel: Callable[..., Any], function: Callable[..., Any], doing: str = "going on"
) -> Callable[..., Any]:
    """``kernel``, the compiled ``function``; from the first time that no compiler works, the
    function itself, and a note: slower is better than not at all."""
    failed = False

    def call(*arguments: Any) -> Any:
        from torch._dynamo.exc import BackendCompilerFailed  # late: a second of imports

        nonlocal failed
        if not failed:
            try:
                return kernel(*arguments)
            except (BackendCompilerFailed, OSError) as error:
                # a compiler without Python's headers, say, or nowhere to keep what it makes
                failed = True
                cause = getattr(error, "inner_exception", error)
                reason = (str(cause).strip() or type(cause).__name__).splitlines()[0]
                print(f"note: {doing} without compiled kernels ({reason})", file=sys.stderr)
        return function(*arguments)

    return call


def own_code(function: Function) -> Function:
    """A copy with a code object of its own: the compiler counts its versions by code object, and
    refuses the ninth."""
    given: Any = function
    found: Any = FunctionType(
        given.__code__.replace(),
        given.__globals__,
        given.__name__,
        given.__defaults__,
        given.__closure__,
    )
    found.__kwdefaults__ = given.__kwdefaults__
    return found


def let_compiled_code_see_hooks() -> None:
    """Compiled code does not look at the hooks of modules unless told to: what was made for one
    network is taken for another of its class that has some, and masks that are hooks never act.
    From now on it looks; what was made before, if anything, is made anew when it is next called."""
    import torch._dynamo  # late: a second of imports

    config: Any = torch._dynamo.config
    if getattr(config, "skip_nnmodule_hook_guards", False):
        config.skip_nnmodule_hook_guards = False
        torch._dynamo.reset()
