"""Descent against torch.optim on the same gradients, and rates that differ from run to run."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from rarefy.train.optimisers import Sgd, per_run

RELATIVE = 1e-12
STEPS = 12
SHAPE = (3, 4, 5)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


START, GRADIENTS = normals(*SHAPE), normals(STEPS, *SHAPE, seed=1)
LR, DECAY = (
    torch.tensor(values, dtype=torch.float64) for values in ([0.1, 0.01, 1.0], [0.0, 0.1, 0.3])
)


def walk(rule: Sgd, start: Tensor = START, gradients: Tensor = GRADIENTS) -> Tensor:
    """All values along the way, (step, run, ...)."""
    value, seen = start, []
    for gradient in gradients:
        value = rule.update("w", value, gradient)
        seen.append(value)
    return torch.stack(seen)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_sgd_is_torchs(decay: float) -> None:
    parameter = START.clone().requires_grad_()
    optimizer = torch.optim.SGD([parameter], lr=0.1, weight_decay=decay)
    seen = []
    for gradient in GRADIENTS:
        parameter.grad = gradient.clone()
        optimizer.step()
        seen.append(parameter.detach().clone())
    found = walk(Sgd(0.1, decay))
    torch.testing.assert_close(found, torch.stack(seen), rtol=RELATIVE, atol=RELATIVE)


def test_rates_of_each_run_are_those_of_single_runs() -> None:
    together = walk(Sgd(LR, DECAY))
    for run in range(3):
        own = Sgd(float(LR[run]), float(DECAY[run]))
        alone = walk(own, START[run : run + 1], GRADIENTS[:, run : run + 1])
        torch.testing.assert_close(together[:, run], alone[:, 0], rtol=RELATIVE, atol=RELATIVE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_of_the_parameter_is_kept(dtype: torch.dtype) -> None:
    start, gradient = START.to(dtype), GRADIENTS[0].to(dtype)
    for rule in (Sgd(LR, DECAY), Sgd(0.1, 0.1)):
        assert rule.update("w", start, gradient).dtype == dtype


def test_a_rate_per_run_is_shaped_to_multiply_along_the_run_axis() -> None:
    shaped = per_run(torch.tensor([1.0, 2.0, 3.0]), START)
    assert isinstance(shaped, Tensor) and shaped.shape == (3, 1, 1) and shaped.dtype == START.dtype
    assert per_run(0.5, START) == 0.5


@pytest.mark.parametrize("decay", [0.3, DECAY], ids=["one", "each"])
def test_parameters_named_undecayed_have_no_decay_and_others_keep_theirs(decay: Any) -> None:
    rule = Sgd(0.1, weight_decay=decay, undecayed=("query", "key"))
    values = dict.fromkeys(("query", "key", "w"), START)
    for gradient in GRADIENTS:
        values = {name: rule.update(name, v, gradient) for name, v in values.items()}
    decayed, plain = walk(Sgd(0.1, decay))[-1], walk(Sgd(0.1))[-1]
    torch.testing.assert_close(values["w"], decayed, rtol=RELATIVE, atol=RELATIVE)
    for name in ("query", "key"):
        torch.testing.assert_close(values[name], plain, rtol=RELATIVE, atol=RELATIVE)
    assert torch.equal(rule.update("query", START, torch.zeros_like(START)), START)
