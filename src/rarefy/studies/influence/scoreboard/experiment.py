"""What the influence score finds and what it does not: wrong labels, rare modes, copies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.parameters import AtLeast
from rarefy.core.rng import Draws
from rarefy.measure.influence.neighbours import Neighbours, nearest
from rarefy.measure.ranking import auroc
from rarefy.measure.ranking_in_class import recall
from rarefy.sweep.one_by_one import one_by_one
from rarefy.tools.influence.drawn_parts import check_sets, identities, some_of, training_part
from rarefy.tools.influence.injections import Injection
from rarefy.tools.influence.signals import SIGNALS, signals_of
from rarefy.tools.samples.samples import Samples

CELL_BYTES = 1_500_000_000
KEPT = 16
"""Draws of samples that are remembered; with fewer than seeds none would be met again."""


@dataclass(frozen=True, kw_only=True)
class ScoreboardExperiment(Experiment):
    """Samples are put into real data that a curator would want to find; who finds them?"""

    axes: ClassVar[tuple[str, ...]] = ("data", "injection")
    one_at_a_time: ClassVar[bool] = True
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "data": ("digits",),
            "injection": ("flips-0.1", "rare-modes-0.1", "copies-0.05"),
            "seeds": 3,
            "samples": 500,
        },
        "quick": {"data": ("digits",)},
        "paper": {},
    }

    seeds: int = 10
    data: tuple[str, ...] = ("digits", "mnist", "cifar10")
    """image sets by name; their training parts are used"""
    injection: tuple[str, ...] = (
        "flips-0.02",
        "flips-0.1",
        "paired-flips-0.1",
        "rare-modes-0.02",
        "rare-modes-0.1",
        "copies-0.02",
        "near-copies-0.02",
    )
    """what is put in, and which share of the samples it is"""
    samples: Annotated[int, AtLeast(100)] = 10_000
    """images that a seed draws first; all of a smaller set"""

    def check(self) -> None:
        check_sets(self.data)
        for text in self.injection:
            Injection.parse(text)

    def inputs(self) -> dict[str, str]:
        return identities(self.data)

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("auroc", ("signal",), "chance that an injected sample ranks above another"),
            Output("recall", ("signal",), "share found when as many are looked at as are there"),
            Output("injected", (), "samples that were put in"),
            Output("asked", (), "samples in all that are ranked"),
            Output("share", (), "share of the set that was drawn"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"signal": np.array(SIGNALS)}

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=CELL_BYTES, steps_per_cell=1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return one_by_one(cells, lambda cell, key: self._cell(cell, key, context.device), context)

    def _cell(
        self, cell: Mapping[str, Any], key: int, device: torch.device
    ) -> dict[str, np.ndarray]:
        name, injection = str(cell["data"]), Injection.parse(str(cell["injection"]))
        where = name, key, self.samples, os.environ.get("RAREFY_DATA")
        samples, draws = _drawn(*where), Draws([key])
        injected = injection.into(samples.features, samples.labels, len(samples.classes), draws)
        unchanged = injected.features is samples.features
        near = _near(*where, device) if unchanged else nearest(injected.features, device=device)
        asked = injected.asked
        values = signals_of(injected, samples.scale, near, draws, device)[:, asked]
        positive = injected.positive[asked]
        found = {
            "auroc": auroc(torch.from_numpy(values), torch.from_numpy(positive)).numpy(),
            "recall": recall(values, positive),
            "injected": positive.sum(),
            "asked": asked.sum(),
            "share": len(samples) / len(training_part(name)),
        }
        return {output: np.asarray(value, dtype=np.float64) for output, value in found.items()}


@lru_cache(maxsize=KEPT)
def _drawn(name: str, key: int, count: int, folder: str | None) -> Samples:
    return some_of(training_part(name), Draws([key]), count, 1.0)


@lru_cache(maxsize=KEPT)
def _near(name: str, key: int, count: int, folder: str | None, device: torch.device) -> Neighbours:
    """Other labels do not change who is near: injections of the same draw share this."""
    return nearest(_drawn(name, key, count, folder).features, device=device)
