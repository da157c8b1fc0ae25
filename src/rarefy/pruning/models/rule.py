"""The rule by which masks are chosen: score, granularity, shares, schedule and regrowth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.pruning.distributions import Keep, layer_keeps
from rarefy.pruning.filters import Filters
from rarefy.pruning.models.pruned_parameter import PrunedParameter
from rarefy.pruning.regrowth import Regrowth
from rarefy.pruning.schedules import Schedule
from rarefy.pruning.scores import (
    NORM,
    RANDOM,
    Score,
    check_scores,
    get_score,
    magnitude,
    random_scores,
    saliency,
)
from rarefy.pruning.selection import Granularity, count_to_keep

USERS_OWN = "a function"


@dataclass
class Rule:
    """Everything but the weights. ``keep``: of every layer; ``generator``: of random scores."""

    score: Score | str
    granularity: Granularity
    filters: dict[str, Filters]
    keep: dict[str, Keep]
    schedule: Schedule
    regrow: Regrowth | None
    generator: torch.Generator

    @classmethod
    def of(
        cls,
        filters: dict[str, Filters],
        keep: Keep,
        score: str | Score,
        granularity: str,
        schedule: Schedule,
        distribution: str | Mapping[str, Keep],
        regrow: Regrowth | None,
        seed: int,
    ) -> Rule:
        kind = Granularity.parse(granularity)
        if kind.kind in ("global", "n:m") and distribution != "uniform":
            words = "all layers compete" if kind.kind == "global" else "N:M is the same everywhere"
            raise bad_value("distribution", distribution, f"{words}: only 'uniform'")
        dimensions = {name: each.dimensions for name, each in filters.items()}
        of_layers = layer_keeps(dimensions, keep, distribution)
        kind.check(filters, of_layers)
        if regrow is not None and kind.kind in ("neuron", "n:m"):
            raise bad_value("regrow", regrow.kind, "needs granularity filter, layer or global")
        if regrow is not None and schedule.end == schedule.begin:
            raise bad_value("regrow", regrow.kind, "moves nothing: masks are chosen only once")
        if regrow is not None and schedule.cubic:
            raise bad_value("regrow", regrow.kind, "keeps a fixed number: no gradual schedule")
        generator = torch.Generator().manual_seed(seed)
        return cls(get_score(score), kind, filters, of_layers, schedule, regrow, generator)

    @property
    def neurons(self) -> bool:
        """Whether whole filters are chosen."""
        return self.granularity.kind == "neuron"

    @property
    def repeats(self) -> bool:
        """Whether every choice is the same computation, of the weights alone."""
        return self.score is magnitude and self.regrow is None and not self.schedule.cubic

    def needs_gradient(self, step: int) -> bool:
        """Whether the gradient of left out weights is needed for a choice after ``step``."""
        if self.regrow is not None:
            wanted = self.regrow.needs_gradient
        else:
            wanted = self.score is saliency or (callable(self.score) and not _known(self.score))
        return wanted and self.schedule.due(step)

    def masks(
        self, pruned: Mapping[str, PrunedParameter], step: int, first: bool
    ) -> dict[str, Tensor]:
        """Masks of the weights as they are; ``first``: none were chosen before."""
        dense = {name: each.dense() for name, each in pruned.items()}
        if self.regrow is not None and not first:
            return self._regrown(self.regrow, pruned, dense, step)
        if self.score is magnitude:  # the usual one: for all layers in one go
            scores = dict(zip(dense, torch._foreach_abs(list(dense.values())), strict=True))
        else:
            scores = {name: self._scored(name, pruned[name], each) for name, each in dense.items()}
        way = self.schedule.share(step)
        return self.granularity.masks(self.filters, scores, self.keep, way)

    def fresh_masks(self, pruned: Mapping[str, PrunedParameter], step: int) -> dict[str, Tensor]:
        """Masks that the weights as they are would get now. Those in force, where the next ones
        would not be chosen by the weights alone or will never be chosen."""
        alone = self.score not in (RANDOM, saliency) and self.regrow is None
        if not alone or self.schedule.over(step) or step < self.schedule.begin:
            return {name: each.mask for name, each in pruned.items()}
        return self.masks(pruned, step, first=True)

    def _scored(self, name: str, pruned: PrunedParameter, weight: Tensor) -> Tensor:
        if self.score == NORM:
            filters = self.filters[name]
            return filters.weights(filters.norms(weight)[:, None].expand(-1, filters.size))
        if not callable(self.score):
            return random_scores(weight, self.generator)
        return check_scores(name, weight, self.score(name, weight, pruned.gradient))

    def _regrown(
        self,
        regrow: Regrowth,
        pruned: Mapping[str, PrunedParameter],
        dense: dict[str, Tensor],
        step: int,
    ) -> dict[str, Tensor]:
        rows: dict[str, tuple[Tensor, ...]] = {}
        still = set()  # layers that do not learn keep what they have
        for name, weight in dense.items():
            gradient = pruned[name].gradient
            if not regrow.needs_gradient:
                growth = random_scores(weight, self.generator)
            elif gradient is not None:
                growth = gradient.abs()
            else:
                still.add(name)
                growth = torch.zeros_like(weight)
            parts = (pruned[name].kept, weight.abs(), growth)
            rows[name] = tuple(
                self.granularity.candidates(self.filters[name], part) for part in parts
            )
        if self.granularity.kind == "global":
            kept, size, growth = (
                torch.cat(part, dim=1) for part in zip(*rows.values(), strict=True)
            )
            total = count_to_keep(next(iter(self.keep.values())), kept.shape[1])
            moved = regrow.moved(kept != 0, size, growth, step, total)
            pieces = moved.split([part[0].shape[1] for part in rows.values()], dim=1)
            found = dict(zip(rows, pieces, strict=True))
        else:
            found = {
                name: regrow.moved(
                    kept != 0,
                    magnitude,
                    growth,
                    step,
                    count_to_keep(self.keep[name], kept.shape[1]),
                )
                for name, (kept, magnitude, growth) in rows.items()
            }
        return {
            name: pruned[name].mask
            if name in still
            else self.granularity.spread(self.filters[name], mask)
            for name, mask in found.items()
        }


def _known(score: Score | str) -> bool:
    """One of ours; of a user's function nobody knows whether it looks at gradients."""
    return getattr(score, "__module__", "").startswith("rarefy.pruning")
