"""Every rule against torch.optim on the same gradients, and rates that differ from run to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from rarefy.train.optimisers import Adam, Optimiser, Sgd, per_run

RELATIVE = 1e-12
STEPS = 12
SHAPE = (3, 4, 5)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


START, GRADIENTS = normals(*SHAPE), normals(STEPS, *SHAPE, seed=1)


def walk(rule: Optimiser, start: Tensor = START, gradients: Tensor = GRADIENTS) -> Tensor:
    """All values along the way, (step, run, ...)."""
    value, seen = start, []
    for step, gradient in enumerate(gradients):
        value = rule.update("w", value, gradient, step)
        seen.append(value)
    return torch.stack(seen)


def torchs(make: Callable[[list[Tensor]], torch.optim.Optimizer]) -> Tensor:
    parameter = START.clone().requires_grad_()
    optimizer = make([parameter])
    seen = []
    for gradient in GRADIENTS:
        parameter.grad = gradient.clone()
        optimizer.step()
        seen.append(parameter.detach().clone())
    return torch.stack(seen)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight_decay": 0.1},
        {"momentum": 0.9},
        {"momentum": 0.9, "weight_decay": 0.1},
        {"momentum": 0.9, "nesterov": True},
        {"momentum": 0.5, "weight_decay": 0.1, "nesterov": True},
    ],
    ids=str,
)
def test_sgd_is_torchs(options: dict[str, Any]) -> None:
    expected = torchs(lambda parameters: torch.optim.SGD(parameters, lr=0.1, **options))
    torch.testing.assert_close(walk(Sgd(0.1, **options)), expected, rtol=RELATIVE, atol=RELATIVE)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)], ids=str)
def test_adam_is_torchs(coupled: bool, decay: float, betas: tuple[float, float]) -> None:
    kind = torch.optim.Adam if coupled else torch.optim.AdamW
    expected = torchs(lambda p: kind(p, lr=0.1, betas=betas, eps=1e-6, weight_decay=decay))
    rule = Adam(0.1, *betas, epsilon=1e-6, weight_decay=decay, coupled=coupled)
    torch.testing.assert_close(walk(rule), expected, rtol=RELATIVE, atol=RELATIVE)


RULES: dict[str, Callable[..., Optimiser]] = {
    "sgd": lambda lr, a, b: Sgd(lr, weight_decay=b),
    "momentum": lambda lr, a, b: Sgd(lr, momentum=a, weight_decay=b),
    "nesterov": lambda lr, a, b: Sgd(lr, momentum=a, weight_decay=b, nesterov=True),
    "adam": lambda lr, a, b: Adam(lr, beta_1=a, weight_decay=b, coupled=True),
    "adamw": lambda lr, a, b: Adam(lr, beta_1=a, weight_decay=b),
    "second moment": lambda lr, a, b: Adam(lr, beta_2=a),
}
RATES = tuple(
    torch.tensor(values, dtype=torch.float64)
    for values in ([0.1, 0.01, 1.0], [0.0, 0.5, 0.9], [0.0, 0.1, 0.3])
)


@pytest.mark.parametrize("name", RULES)
def test_rates_of_each_run_are_those_of_single_runs(name: str) -> None:
    together = walk(RULES[name](*RATES))
    for run in range(3):
        alone = walk(
            RULES[name](*(float(rate[run]) for rate in RATES)),
            START[run : run + 1],
            GRADIENTS[:, run : run + 1],
        )
        torch.testing.assert_close(
            together[:, run], alone[:, 0], rtol=RELATIVE, atol=RELATIVE, msg=name
        )


@pytest.mark.parametrize("name", RULES)
def test_a_rule_starts_afresh_at_step_0(name: str) -> None:
    rule = RULES[name](0.1, 0.9, 0.1)
    assert torch.equal(walk(rule), walk(rule))


def test_parameters_have_their_own_memory() -> None:
    rule, other = Sgd(0.1, momentum=0.9), Sgd(0.1, momentum=0.9)
    value, bystander = START, START
    for step, gradient in enumerate(GRADIENTS):
        value = rule.update("w", value, gradient, step)
        bystander = rule.update("b", bystander, -gradient, step)
    assert torch.equal(value, walk(other)[-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_of_the_parameter_is_kept(dtype: torch.dtype) -> None:
    start, gradient = START.to(dtype), GRADIENTS[0].to(dtype)
    for rates in (RATES, (0.1, 0.9, 0.1)):
        for rule in RULES.values():
            assert rule(*rates).update("w", start, gradient, 0).dtype == dtype


def test_a_rate_a_run_is_shaped_to_multiply_along_the_run_axis() -> None:
    shaped = per_run(torch.tensor([1.0, 2.0, 3.0]), START)
    assert isinstance(shaped, Tensor) and shaped.shape == (3, 1, 1) and shaped.dtype == START.dtype
    assert per_run(0.5, START) == 0.5


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("decay", [0.3, RATES[2]], ids=["one", "each"])
def test_parameters_named_undecayed_have_no_decay_and_others_keep_theirs(
    momentum: float, decay: Any
) -> None:
    rule = Sgd(0.1, momentum=momentum, weight_decay=decay, undecayed=("query", "key"))
    decayed = Sgd(0.1, momentum=momentum, weight_decay=decay)
    plain = Sgd(0.1, momentum=momentum)
    values = dict.fromkeys(("query", "key", "w"), START)
    for step, gradient in enumerate(GRADIENTS):
        values = {name: rule.update(name, v, gradient, step) for name, v in values.items()}
    torch.testing.assert_close(values["w"], walk(decayed)[-1], rtol=RELATIVE, atol=RELATIVE)
    for name in ("query", "key"):
        torch.testing.assert_close(values[name], walk(plain)[-1], rtol=RELATIVE, atol=RELATIVE)
    still = rule.update("query", START, torch.zeros_like(START), 0)
    assert torch.equal(still, START)
