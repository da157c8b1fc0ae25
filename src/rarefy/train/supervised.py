"""Supervised training of one network on images, dense or pruned while it trains, resumable at any
step with the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.core.settings import can_compile
from rarefy.train.cuda_graphs import recorded
from rarefy.train.evaluation import mixed_precision
from rarefy.train.image_batches import ImageBatches
from rarefy.train.rate_schedules import SCHEDULES, rate_factor
from rarefy.train.resumable import Resumable
from rarefy.train.thinning import Thinning

OPTIMIZERS = ("sgd", "adamw")
PRECISIONS = ("auto", "bf16", "float32")


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


@dataclass
class History:
    """What was seen on the way: while an epoch ran (images as changed, weights as they moved)."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    watched: dict[str, list[float]] = field(default_factory=dict)
    """Whatever the watcher wrote down, by name, one value a watched epoch."""
    nonfinite_step: int = -1


class Training(Resumable):
    """One network on its way. ``graphs``: on a GPU, record the network as CUDA graphs where it can
    be."""

    batches: ImageBatches
    history: History

    def __init__(
        self,
        model: nn.Module,
        batches: ImageBatches,
        recipe: Recipe,
        thinning: Thinning,
        precision: str = "float32",
        compiled: bool = False,
        graphs: bool = True,
    ) -> None:
        super().__init__(batches)
        self.model, self.recipe, self.thinning = model, recipe, thinning
        self.precision, self.epochs = precision, recipe.epochs
        self.optimizer = recipe.make_optimizer(model)
        self.pruner = thinning.attach(model, self.optimizer, batches.steps)
        self.forward: Callable[[Tensor], Tensor] = (
            torch.compile(model) if compiled and can_compile(batches.device) else model
        )
        self._recorded = batches.device.type != "cuda" or not graphs
        self.history = History()
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        self._right = torch.zeros((), dtype=torch.int64, device=batches.device)

    def update(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        factor = rate_factor(self.recipe.schedule, self.step, self.steps, self.recipe.warm_up)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * factor
        if not self._recorded:
            self.forward = recorded(self.model, self.forward, x, self.precision)
            self._recorded = True
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        with mixed_precision(x.device, self.precision, remember_casts=False):
            answers = self.forward(x)
        answers = answers.to(torch.promote_types(answers.dtype, torch.float32))
        loss = functional.cross_entropy(answers, y, label_smoothing=self.recipe.label_smoothing)
        loss.backward()
        self.optimizer.step()
        self._right += (answers.detach().argmax(dim=1) == y).sum()
        return loss

    def end_of_epoch(self, losses: Tensor) -> None:
        self.history.loss.append(float(losses.mean()))
        shown = self.batches.steps * self.batches.batch
        self.history.accuracy.append(float(self._right) / shown)
        self._right.zero_()

    # ------------------------------------------------------------------------------ what it answers

    def answering(self) -> nn.Module:
        """The network as a user would take it home: with its masks, also where ``project`` lets it
        be dense between two choices (a copy then)."""
        if self.pruner is None or not self.thinning.dense_between(self.batches.steps):
            return self.model
        return self.pruner.copy_of("projected")

    # ---------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "right": self._right}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._right.copy_(state["right"])


def resolve_precision(precision: str, device: torch.device, dtype: torch.dtype) -> str:
    """``auto``: bfloat16 products on a GPU, plain arithmetic on a CPU and in float64."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if dtype == torch.float64:
        return "float32"  # no autocast: everything is double then
    if precision == "auto":
        return "bf16" if device.type == "cuda" else "float32"
    return precision
