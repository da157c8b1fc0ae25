"""2:4: what counts as such a pattern, and why a layer is left alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import rarefy
from rarefy.core.errors import UsageError
from rarefy.pruning.finishing.semi_structured import is_two_four, to_two_four, why_not_two_four


def test_two_of_four_neighbours_in_a_row() -> None:
    assert is_two_four(torch.tensor([[1.0, 0, 0, 2, 0, 3, 4, 0]]))
    assert is_two_four(torch.zeros(2, 4))
    assert not is_two_four(torch.tensor([[1.0, 1, 0, 2, 0, 0, 0, 0]])), "three of the first four"
    assert not is_two_four(torch.tensor([[1.0, 0], [0, 1], [0, 0], [0, 0]])), "rows of two"
    kernel = torch.zeros(1, 4, 2, 2)
    kernel[0, :2] = 1  # two of four inputs at each of four places
    assert is_two_four(kernel)
    kernel[0, 2, 1, 1] = 1
    assert not is_two_four(kernel), "three inputs at the last place"
    assert not is_two_four(torch.zeros(4)), "no matrix"


def test_the_pruner_makes_the_pattern() -> None:
    model = nn.Linear(64, 32)
    pruner = rarefy.Pruner(model, torch.optim.SGD(model.parameters(), 0.1), granularity="2:4")
    exported = pruner.export()
    assert isinstance(exported, nn.Linear)
    assert is_two_four(exported.weight)
    assert why_not_two_four(exported.weight.half()) == ""


def test_reasons_are_named() -> None:
    good = torch.zeros(32, 64)
    good[:, ::2] = 1
    assert "must be float16" in why_not_two_four(good)
    assert why_not_two_four(good.bfloat16()) == ""
    assert "(32, 60) is not a multiple of (32, 64)" in why_not_two_four(good[:, :60].half())
    assert "more than two" in why_not_two_four(torch.ones(32, 64).half())


def test_needs_a_gpu() -> None:
    with pytest.raises(UsageError, match="2:4 kernels need a model on a CUDA GPU"):
        to_two_four(nn.Linear(64, 32))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_same_outputs_on_a_gpu() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 64)).cuda().half()
    pruner = rarefy.Pruner(model, torch.optim.SGD(model.parameters(), 0.1), granularity="2:4")
    exported = pruner.export()
    sparse, left = to_two_four(exported)
    assert not left
    x = torch.randn(64, 128, device="cuda", dtype=torch.float16)
    torch.testing.assert_close(sparse(x), exported(x), atol=2e-3, rtol=2e-3)
