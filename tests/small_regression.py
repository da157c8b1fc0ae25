"""A small least-squares problem, one a run, for tests of descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rarefy.train.descent import State, Trajectory

EXACT = 1e-12
RUNS, SAMPLES, WIDTH = 5, 20, 3
LOST = 2
"""The run that stops being finite, where one does."""


@dataclass(frozen=True)
class Regression:
    """Half the mean squared error of a linear map, one a run."""

    def loss(self, parameters: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
        guess = (batch["x"] @ parameters["w"][:, :, None])[..., 0] + parameters["b"][:, None]
        return (guess - batch["y"]).square().mean(dim=1) / 2


@dataclass(frozen=True)
class ByHand(Regression):
    def gradients(
        self, parameters: dict[str, Tensor], batch: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        x, y = batch["x"], batch["y"]
        miss = (x @ parameters["w"][:, :, None])[..., 0] + parameters["b"][:, None] - y
        slope = (x * miss[..., None]).mean(dim=1)
        return miss.square().mean(dim=1) / 2, {"w": slope, "b": miss.mean(dim=1)}


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


X, Y = normals(RUNS, SAMPLES, WIDTH), normals(RUNS, SAMPLES, seed=1)
DATA = {"x": X, "y": Y}
START = {"w": normals(RUNS, WIDTH, seed=2), "b": normals(RUNS, seed=3)}


def everything(step: int) -> dict[str, Tensor]:
    return DATA


def seen_weights(state: State) -> Tensor:
    return state.parameters["w"]


def rows(values: dict[str, Tensor], runs: Any) -> dict[str, Tensor]:
    return {name: value[runs] for name, value in values.items()}


def assert_same(found: Trajectory, expected: Trajectory, at: Any = slice(None)) -> None:
    for name, value in expected.parameters.items():
        torch.testing.assert_close(found.parameters[name][at], value, rtol=EXACT, atol=EXACT)
    for name, value in expected.records.items():
        torch.testing.assert_close(found.records[name][at], value, rtol=EXACT, atol=EXACT)
