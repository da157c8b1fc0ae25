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

from rarefy.core.compilation import let_compiled_code_see_hooks, or_plain
from rarefy.core.settings import can_compile
from rarefy.nets.backbones import Headed
from rarefy.train.cuda_graphs import record_forward
from rarefy.train.image_batches import ImageBatches
from rarefy.train.precision import mixed_precision
from rarefy.train.pruning_spec import PruningSpec
from rarefy.train.rate_schedules import rate_factor
from rarefy.train.recipe import Recipe
from rarefy.train.resumable import Resumable


@dataclass
class History:
    """What was seen on the way: while an epoch ran (images as changed, weights as they moved)."""

    loss: list[float] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    watched: dict[str, list[float]] = field(default_factory=dict)
    """Whatever the watcher wrote down, by name, one value per watched epoch."""
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
        spec: PruningSpec,
        precision: str = "float32",
        compiled: bool = False,
        graphs: bool = True,
    ) -> None:
        super().__init__(batches)
        self.model, self.recipe, self.pruning_spec = model, recipe, spec
        self.precision, self.epochs = precision, recipe.epochs
        self.optimizer = recipe.make_optimizer(model)
        self.pruner = spec.attach(model, self.optimizer, batches.steps)
        self.forward: Callable[[Tensor], Tensor] = model
        if compiled and can_compile(batches.device):
            let_compiled_code_see_hooks()
            self.forward = _compiled(model)
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
            self.forward = record_forward(self.model, self.forward, x, self.precision)
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

    def evaluation_model(self) -> nn.Module:
        """The network as a user would take it home: with its masks, also where ``project`` lets it
        be dense between two choices (a copy then)."""
        if self.pruner is None or not self.pruning_spec.dense_between(self.batches.steps):
            return self.model
        return self.pruner.copy_of("projected")

    # ---------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "right": self._right}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._right.copy_(state["right"])


def _compiled(model: nn.Module) -> Callable[[Tensor], Tensor]:
    """A last layer that is made anew for other labels is left out: the compiler would make a
    version of the whole network per number of labels, and refuse the ninth."""
    if not isinstance(model, Headed):
        return or_plain(torch.compile(model), model)
    backbone = or_plain(torch.compile(model.backbone), model.backbone)

    def forward(images: Tensor) -> Tensor:
        found: Tensor = model.head(backbone(images))
        return found

    return forward
