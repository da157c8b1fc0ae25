"""An update that fails must not leave the dense weights in the model.

Torch's hooks before and after ``optimizer.step()`` do not hear of a step that raises, or that a
person interrupts: somebody has to stand around it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch


class StepGuard:
    """Calls ``failed`` before an error of ``optimizer.step()`` is passed on.

    It is a method of this one optimiser, as learning rate schedulers expect: they stand around it,
    or it around them. Copies and pickles of an optimiser leave such a method behind. Who fetched
    ``optimizer.step`` before (Accelerate, with float16) goes past it: ``active`` tells.
    """

    def __init__(self, optimizer: torch.optim.Optimizer, failed: Callable[[], None]) -> None:
        self.active = False
        """Whether a step is under way in here."""
        inner = optimizer.step
        self._optimizer, self._before = optimizer, vars(optimizer).get("step")

        @torch.compiler.disable(recursive=False)  # (the step itself may be compiled)
        @functools.wraps(getattr(inner, "__func__", inner))
        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self.active = True
            try:
                return inner(*args, **kwargs)
            except BaseException:
                failed()
                raise
            finally:
                self.active = False

        self._step = types.MethodType(step, optimizer)
        optimizer.step = self._step  # type: ignore[method-assign]

    def remove(self) -> None:
        """Unless somebody stands around it: it does nothing then."""
        if vars(self._optimizer).get("step") is not self._step:
            return
        if self._before is None:
            del self._optimizer.step
        else:
            self._optimizer.step = self._before  # type: ignore[method-assign]
