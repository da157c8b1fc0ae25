"""What happens to the weights that a mask leaves out: three update rules, one name each.

    dense    the forward pass is masked, every weight is updated (000 Algorithm 1)
    masked   the forward pass is masked, what is left out stays as it is, not even decayed
    project  what is left out is set to zero, then all weights are updated as if nothing were masked

A rule acts before a step's forward pass (``before_step``) and after its update (``after_step``).
It is one name for all runs, or a tensor of positions in ``UPDATE_RULES``, one per run.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rarefy.core.errors import bad_value

UPDATE_RULES = ("dense", "masked", "project")


def rule_codes(rules: Sequence[str], device: torch.device | str = "cpu") -> Tensor:
    """Positions in ``UPDATE_RULES`` of the runs' rules: (run,)."""
    for rule in rules:
        check_rule(rule)
    return torch.tensor([UPDATE_RULES.index(rule) for rule in rules], device=device)


def check_rule(rule: str) -> None:
    if rule not in UPDATE_RULES:
        raise bad_value("update", rule, f"must be one of {', '.join(UPDATE_RULES)}")


def _chosen(rule: Tensor, name: str, kept: Tensor) -> Tensor:
    """Left out, in a run that follows the rule ``name``: as ``kept``."""
    follows = rule == UPDATE_RULES.index(name)
    return ~kept & follows.reshape(-1, *(1,) * (kept.dim() - 1))


def _wide(chosen: Tensor, weights: Tensor) -> Tensor:
    return chosen.reshape(*chosen.shape, *(1,) * (weights.dim() - chosen.dim()))


def before_step(weights: Tensor, kept: Tensor, rule: Tensor) -> Tensor:
    """The weights with which the step begins; ``kept`` covers their leading dimensions."""
    zeroed = _wide(_chosen(rule, "project", kept), weights)
    return torch.where(zeroed, torch.zeros((), dtype=weights.dtype, device=weights.device), weights)


def after_step(before: Tensor, moved: Tensor, kept: Tensor, rule: Tensor) -> Tensor:
    """The weights after the optimiser has moved them from ``before`` to ``moved``."""
    frozen = _wide(_chosen(rule, "masked", kept), moved)
    return torch.where(frozen, before, moved)
