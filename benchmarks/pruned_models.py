"""The models on which ``Pruner`` is timed on a CPU (on a GPU: ``rarefy.nets``' own ResNet-18), what
it is asked to do there, and the table of times."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional

from rarefy import Pruner
from rarefy.pruning.schedules import constant

KEEP = 0.5
LIMITS = {10: 1.05, 1: 1.25}
"""How many times as long as a dense step one may take, by the updates between two choices."""
PLAIN = "dense, without Pruner"


@dataclass(frozen=True)
class Way:
    """One way to prune: arguments of ``Pruner`` and how often masks are chosen."""

    name: str
    every: int
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        return f"{self.name}, every {self.every}"

    def attach(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Pruner:
        chosen = dict(self.arguments)
        if chosen.get("granularity") == "2:4":  # one or three colours are no fours
            chosen["layers"] = _of_fours
        return Pruner(model, optimizer, KEEP, schedule=constant(self.every), **chosen)


def _of_fours(name: str, module: nn.Module) -> bool:
    weight = getattr(module, "weight", None)
    usual = isinstance(module, (nn.Linear, nn.Conv2d))
    return usual and weight is not None and weight.shape[1] % 4 == 0


KINDS: dict[str, dict[str, str]] = {
    "filter, dense": {},
    "filter, masked": {"update": "masked"},
    "filter, project": {"update": "project"},
    "layer, dense": {"granularity": "layer"},
    "global, dense": {"granularity": "global"},
    "neuron, dense": {"granularity": "neuron"},
    "2:4, dense": {"granularity": "2:4"},
}
"""Granularity and update rule. The limits are asked of the first."""
WAYS = [Way(name, every, chosen) for name, chosen in KINDS.items() for every in LIMITS]


# ------------------------------------------------------------------------------------------ models


def convolutions() -> nn.Module:
    """421,642 weights and biases; images of 28 x 28. (LeNet is four times smaller.)"""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 7 * 7, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


class Transformer(nn.Module):
    """A ViT of 6 blocks, width 64 and 4 heads; images of 28 x 28 in 49 patches. As large as that of
    ``rarefy.nets``, but with PyTorch's own attention, which a pruner must find by its type."""

    def __init__(self, width: int = 64, blocks: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.place = nn.Parameter(0.02 * torch.randn(1, 49, width))
        self.blocks = nn.Sequential(*(_Block(width) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).transpose(1, 2) + self.place
        found: Tensor = self.head(self.norm(self.blocks(tokens)).mean(dim=1))
        return found


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        seen = self.before(tokens)
        tokens = tokens + self.attention(seen, seen, seen, need_weights=False)[0]
        found: Tensor = tokens + self.narrow(functional.gelu(self.wide(self.between(tokens))))
        return found


# ----------------------------------------------------------------------------------------- results


def ratios(seconds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, float]]:
    """Time over that of the plain loop in the same round: median, quartiles and extremes."""
    plain = seconds[PLAIN]
    found = {}
    for name, taken in seconds.items():
        each = sorted(mine / dense for mine, dense in zip(taken, plain, strict=True))
        low, _, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
        found[name] = {
            "median": statistics.median(each),
            "lower quartile": low,
            "upper quartile": high,
            "least": each[0],
            "most": each[-1],
        }
    return found


def summary(seconds: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What is kept of one model: all times, their medians, ratios and what is asked of them."""
    found = ratios(seconds)
    asked = {
        way.words: {
            "limit": LIMITS[way.every],
            "met": found[way.words]["median"] <= LIMITS[way.every],
        }
        for way in WAYS
        if way.name == next(iter(KINDS)) and way.words in found
    }
    return {
        "rounds": len(seconds[PLAIN]),
        "seconds_per_step": {name: list(taken) for name, taken in seconds.items()},
        "median_seconds": {name: statistics.median(taken) for name, taken in seconds.items()},
        "ratio_to_dense": found,
        "asked": asked,
    }


def show(models: Mapping[str, Mapping[str, Any]]) -> None:
    """A table: rows are ways to prune, columns are models."""
    table = Table(title=f"ms per step, and times as long as dense (median, quartiles); keep {KEEP}")
    table.add_column("granularity, update, masks anew")
    for name in models:
        table.add_column(f"{name}\nms", justify="right")
        table.add_column("x dense", justify="right")
    for way in [PLAIN, *(way.words for way in WAYS)]:
        cells = []
        for found in models.values():
            if way not in found["median_seconds"]:
                cells += ["", ""]
                continue
            ratio, asked = found["ratio_to_dense"][way], found["asked"].get(way)
            spread = f"{ratio['lower quartile']:.2f}-{ratio['upper quartile']:.2f}"
            words = f"{ratio['median']:.2f} ({spread})"
            if asked:
                words += f" {'<=' if asked['met'] else '> '} {asked['limit']}"
            cells += [f"{1e3 * found['median_seconds'][way]:.2f}", words]
        table.add_row(way, *cells)
    Console(width=max(100, 40 + 36 * len(models))).print(table)
