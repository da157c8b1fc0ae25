"""Models whose filters cannot be removed at all are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from zero_filters import own, zero

from rarefy.core.errors import RunError, UsageError
from rarefy.pruning.finishing.removal import remove_zero_filters


def test_control_flow_by_value_is_one_line() -> None:
    model = own(lambda self, x: self.a(x) if x.sum() > 0 else x, a=nn.Linear(4, 4))
    with pytest.raises(UsageError) as error:
        remove_zero_filters(model, torch.ones(2, 4))
    assert str(error.value).startswith(
        "model='Written': must be traceable by torch.fx, without control flow by value ("
    )
    assert "\n" not in str(error.value)


def test_an_example_that_does_not_fit_is_one_line() -> None:
    with pytest.raises(UsageError, match=r"^example=\[\(2, 5\)\]: must be what the model takes \("):
        remove_zero_filters(nn.Linear(4, 4), torch.ones(2, 5))


def test_lazy_and_uncopyable_models_are_refused() -> None:
    with pytest.raises(
        UsageError, match="^model='LazyLinear': must have run once: it has lazy lay"
    ):
        remove_zero_filters(nn.LazyLinear(4), torch.ones(2, 5))
    model = nn.Linear(4, 4)
    model.memory = model.weight * 2  # not a leaf: no deep copy
    with pytest.raises(UsageError, match="^model='Linear': must be a model that can be copied"):
        remove_zero_filters(model, torch.ones(2, 4))


def test_a_forward_that_deceives_the_trace_is_found_out() -> None:
    def forward(self: Any, x: Tensor) -> Any:
        h = self.a(x)
        return self.b(h + 1 if isinstance(h, Tensor) else h)  # a proxy is no tensor

    model = own(forward, a=nn.Linear(4, 5), b=nn.Linear(5, 2))
    zero(model.a, 3)
    with pytest.raises(RunError, match="gives other outputs on the example"):
        remove_zero_filters(model, torch.randn(2, 4))
