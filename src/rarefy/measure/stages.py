"""Stage times read off recorded norms, by the definitions of 000.

All take squared norms recorded after every number of updates 0, 1, 2, ...: shape (run, step, m);
all return the first such step, -1 where it is not reached.
"""

from __future__ import annotations

import torch
from torch import Tensor


def first_step(reached: Tensor) -> Tensor:
    """First true entry of (run, step) booleans; -1 for none."""
    step = reached.to(torch.int64).argmax(dim=1)
    return torch.where(reached.any(dim=1), step, -1)


def t1_of_000(inside: Tensor, total: Tensor) -> Tensor:
    """(34): half of every neuron's squared norm lies in the feature space."""
    return first_step((inside >= 0.5 * total).all(dim=2))


def t2_of_000(total: Tensor, t1: Tensor, d: int) -> Tensor:
    """(61): some neuron's squared norm is d times its value at T1; -1 where T1 is -1."""
    at_t1 = at_step(total, t1.clamp(min=0))
    later = torch.arange(total.shape[1], device=total.device)[None, :] >= t1[:, None]
    grown = (total >= d * at_t1[:, None]) & (at_t1 > 0)[:, None]  # 0 has not grown to d times 0
    reached = grown.any(dim=2) & later & (t1 >= 0)[:, None]
    return first_step(reached)


def at_step(recorded: Tensor, step: Tensor) -> Tensor:
    """recorded[run, step[run]] for (run, step, ...) and (run,)."""
    return recorded[torch.arange(len(recorded), device=recorded.device), step]
