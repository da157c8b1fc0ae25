"""Gradient rules on the run axis: every hyper-parameter is a number or one value per run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

Rate = float | Tensor


def per_run(value: Rate, like: Tensor) -> Rate:
    """Shape a (run,) tensor so that it multiplies (run, ...) tensors."""
    if isinstance(value, Tensor) and value.dim() == 1:
        return value.to(like).reshape(-1, *(1,) * (like.dim() - 1))
    return value


class Optimiser(Protocol):
    """A rule that turns a gradient into the next value of a parameter."""

    def update(self, name: str, parameter: Tensor, gradient: Tensor, step: int) -> Tensor:
        """The parameter after this step; ``step`` counts from 0."""
        ...


@dataclass
class Sgd:
    """w <- w - lr v, v <- momentum v + (g + weight_decay w); full batch or mini-batch is the
    caller's choice of batches. Weight decay is the gradient of (lambda/2)|w|^2 (000 eq. 3); the
    parameters named in ``undecayed`` have none."""

    lr: Rate
    momentum: Rate = 0.0
    weight_decay: Rate = 0.0
    nesterov: bool = False
    undecayed: tuple[str, ...] = ()
    _velocity: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def update(self, name: str, parameter: Tensor, gradient: Tensor, step: int) -> Tensor:
        lr, decay = per_run(self.lr, parameter), per_run(self.weight_decay, parameter)
        if name in self.undecayed:
            decay = 0.0
        if not isinstance(self.momentum, Tensor) and self.momentum == 0:
            if isinstance(decay, Tensor) or decay != 0:
                parameter = parameter * (1 - lr * decay)
            if not isinstance(lr, Tensor):
                return torch.add(parameter, gradient, alpha=-lr)
            return torch.addcmul(parameter, gradient, -lr)  # one pass over memory
        direction = gradient + decay * parameter
        momentum = per_run(self.momentum, parameter)
        velocity = momentum * self._velocity[name] + direction if step else direction
        self._velocity[name] = velocity
        if self.nesterov:
            velocity = direction + momentum * velocity
        return parameter - lr * velocity


@dataclass
class Adam:
    """Adam (Kingma and Ba 2015); weight decay decoupled (AdamW) unless ``coupled``."""

    lr: Rate
    beta_1: Rate = 0.9
    beta_2: Rate = 0.999
    epsilon: float = 1e-8
    weight_decay: Rate = 0.0
    coupled: bool = False
    _moments: dict[str, tuple[Tensor, Tensor]] = field(default_factory=dict, repr=False)

    def update(self, name: str, parameter: Tensor, gradient: Tensor, step: int) -> Tensor:
        lr, decay = per_run(self.lr, parameter), per_run(self.weight_decay, parameter)
        b1, b2 = per_run(self.beta_1, parameter), per_run(self.beta_2, parameter)
        if self.coupled:
            gradient = gradient + decay * parameter
        zero = torch.zeros_like(parameter)
        first, second = self._moments[name] if step else (zero, zero)
        first = b1 * first + (1 - b1) * gradient
        second = b2 * second + (1 - b2) * gradient.square()
        self._moments[name] = (first, second)
        move = (first / (1 - b1 ** (step + 1))) / (
            (second / (1 - b2 ** (step + 1))).sqrt() + self.epsilon
        )
        if not self.coupled:
            parameter = parameter * (1 - lr * decay)
        return parameter - lr * move
