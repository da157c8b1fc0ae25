"""What is left out of a network while it trains, in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from rarefy.core.errors import bad_value
from rarefy.pruning.models.pruner import Pruner
from rarefy.pruning.schedules import constant, one_shot
from rarefy.pruning.selection import Granularity
from rarefy.pruning.update_rules import check_rule

USUAL = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
GRANULARITIES = ("filter", "layer", "global", "neuron")
FURTHER = ("inner", "epoch", "once")


@dataclass(frozen=True)
class PruningSpec:
    """``keep=1`` is the plain network, without a pruner.

    The defaults are TopK pruning of 002: of every filter the largest entries, the others set to
    zero, every ``every`` updates (0: once per epoch), training going on from there. ``inner``: not
    the first layer and not the last. ``once``: masks are chosen before training, and stay.
    """

    keep: float = 1.0
    update: str = "project"
    granularity: str = "filter"
    every: int = 1
    inner: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1:
            raise bad_value("keep", self.keep, "must be a share, above 0 and at most 1")
        if self.every < 0:
            raise bad_value("every", self.every, "must be at least 1, or 0 for once per epoch")
        check_rule(self.update)
        if Granularity.parse(self.granularity).kind == "n:m":
            raise bad_value("granularity", self.granularity, "N:M has its own share, use Pruner")
        if self.once and self.update == "project":
            raise bad_value("update", self.update, "masks chosen once need update masked or dense")

    @classmethod
    def parse(
        cls, words: str, keep: float, granularity: str = "filter", every: int = 1
    ) -> PruningSpec:
        """``project``, ``dense`` or ``masked``, and what differs from the rest, joined by ``+``: a
        granularity, ``inner``, ``epoch`` (masks once per epoch) or ``once``: ``project+global``."""
        update, *others = words.split("+")
        check_rule(update)
        found = cls(keep, update, granularity, every)
        for word in others:
            if word in GRANULARITIES:
                found = replace(found, granularity=word)
            elif word == "epoch":
                found = replace(found, every=0)
            elif word in ("inner", "once"):
                found = replace(found, **{word: True})  # type: ignore[arg-type]
            else:
                known = ", ".join((*GRANULARITIES, *FURTHER))
                raise bad_value("update", words, f"after a + there can be {known}")
        return found

    def attach(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, steps: int
    ) -> Pruner | None:
        """The pruner of a training with ``steps`` updates per epoch."""
        if self.keep == 1:
            return None
        return Pruner(
            model,
            optimizer,
            keep=float(self.keep),
            update=self.update,
            granularity=self.granularity,
            schedule=one_shot() if self.once else constant(self.every or steps),
            layers=self._layers(model),
        )

    def dense_between(self, steps: int) -> bool:
        """Whether the network is dense between two choices of masks."""
        return self.update == "project" and (self.every or steps) > 1

    def _layers(self, model: nn.Module) -> Callable[[str, nn.Module], bool] | None:
        """All, but for the last where whole neurons go: one that is left out there would be a class
        that is never answered."""
        usual = [module for module in model.modules() if isinstance(module, USUAL)]
        left_out = usual[-1:] if self.granularity == "neuron" or self.inner else []
        left_out += usual[:1] if self.inner else []
        if not left_out:
            return None
        alone = {id(module) for module in left_out}
        return lambda name, module: isinstance(module, USUAL) and id(module) not in alone
