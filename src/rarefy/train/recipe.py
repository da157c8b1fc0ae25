"""How a network is trained: its optimiser and the course of its learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.train.rate_schedules import SCHEDULES

OPTIMIZERS = ("sgd", "adamw")


@dataclass(frozen=True)
class Recipe:
    """How a network is trained; ``weight_decay`` is for matrices and kernels alone."""

    epochs: int = 20
    optimizer: str = "sgd"
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "cosine"
    warm_up: float = 0.1
    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise bad_value("epochs", self.epochs, "must be at least 1")
        if self.optimizer not in OPTIMIZERS:
            raise unknown("optimizer", self.optimizer, OPTIMIZERS)
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        if not 0 < self.learning_rate < float("inf"):
            raise bad_value("learning_rate", self.learning_rate, "must be positive and finite")
        for name, limit in (("momentum", 1.0), ("warm_up", 1.0), ("label_smoothing", 1.0)):
            if not 0 <= getattr(self, name) < limit:
                raise bad_value(name, getattr(self, name), "must be at least 0 and below 1")
        if not 0 <= self.weight_decay < float("inf"):
            raise bad_value("weight_decay", self.weight_decay, "must be finite and at least 0")

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        weights = [one for one in model.parameters() if one.requires_grad]
        if not weights:
            raise UsageError("the network has no weights to train")
        groups: list[dict[str, Any]] = [
            {"params": [one for one in weights if one.ndim > 1]},
            {"params": [one for one in weights if one.ndim <= 1], "weight_decay": 0.0},
        ]
        groups = [group for group in groups if group["params"]]
        fused = weights[0].is_cuda
        if self.optimizer == "sgd":
            return torch.optim.SGD(
                groups,
                self.learning_rate,
                momentum=self.momentum,
                nesterov=self.momentum > 0,
                weight_decay=self.weight_decay,
                fused=fused,
            )
        return torch.optim.AdamW(
            groups, self.learning_rate, weight_decay=self.weight_decay, fused=fused
        )
