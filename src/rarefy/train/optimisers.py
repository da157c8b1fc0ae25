"""Gradient descent on the run axis: every hyper-parameter is a number or one value per run."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

Rate = float | Tensor


def per_run(value: Rate, like: Tensor) -> Rate:
    """Shape a (run,) tensor so that it multiplies (run, ...) tensors."""
    if isinstance(value, Tensor) and value.dim() == 1:
        return value.to(like).reshape(-1, *(1,) * (like.dim() - 1))
    return value


@dataclass
class Sgd:
    """Plain gradient descent: w <- w - lr (g + weight_decay w).

    Full batch or mini-batch is the caller's choice of batches. Weight decay is the gradient of
    (lambda/2)|w|^2 (Liao et al., Eq. (3)).

    Arguments:
        lr, weight_decay: a number, or one per run, (run,).
        undecayed: names of parameters without weight decay.

    Example:
        >>> step = rarefy.lab.Sgd(lr=0.5)
        >>> step.update("weights", torch.ones(3, 2), torch.ones(3, 2))[0]
        tensor([0.5000, 0.5000])
    """

    lr: Rate
    weight_decay: Rate = 0.0
    undecayed: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a step is w <- w - lr g and nothing else."""
        return not isinstance(self.weight_decay, Tensor) and self.weight_decay == 0

    def update(self, name: str, parameter: Tensor, gradient: Tensor) -> Tensor:
        """The parameter after this step."""
        lr, decay = per_run(self.lr, parameter), per_run(self.weight_decay, parameter)
        if name not in self.undecayed and (isinstance(decay, Tensor) or decay != 0):
            parameter = parameter * (1 - lr * decay)
        if not isinstance(lr, Tensor):
            return torch.add(parameter, gradient, alpha=-lr)
        return torch.addcmul(parameter, gradient, -lr)  # one pass over memory
