"""Whether two trainings are the same, bit for bit."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rarefy.train.resumable import Resumable

Everything = dict[str, Any]


def in_common(made: Resumable) -> Everything:
    """What any two trainings must have in common to be the same, by name."""
    found: Everything = {f"model {name}": one for name, one in made.model.state_dict().items()}
    for number, state in enumerate(made.optimizer.state_dict()["state"].values()):
        found |= {f"optimizer {number} {name}": value for name, value in state.items()}
    if made.pruner is not None:
        found |= {f"mask {name}": mask for name, mask in made.pruner.masks.items()}
        for name, held in made.pruner.pruned.items():
            found[f"dense {name}"] = held.dense()
        found |= {"pruner step": made.pruner.step, "choices": made.pruner.trajectory.choices}
    return found | vars(made.history) | {"step": made.step}


def unlike(one: Everything, other: Everything) -> list[str]:
    """Names of what is not bit for bit the same."""
    assert one.keys() == other.keys()
    return [
        name
        for name, value in one.items()
        if not (
            torch.equal(value, other[name]) if isinstance(value, Tensor) else value == other[name]
        )
    ]
