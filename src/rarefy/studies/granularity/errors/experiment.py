"""What coarse and fine labels teach: errors on easy and on hard samples (004 Theorems 5.1, 5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, Whole
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.experiment import AS_CHOSEN, CHANGES, GranularityExperiment
from rarefy.studies.granularity.trial import LABELS, MEASURES, both_labels

FRESH = 0
"""The value of ``samples`` for fresh samples at every step."""


@dataclass(frozen=True, kw_only=True)
class ErrorsExperiment(GranularityExperiment):
    """Each cell trains two networks on the same samples, one with the labels of the two sides and
    one with those of the subclasses, and asks both for the side of fresh samples."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "subclasses", "samples")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "variation": (AS_CHOSEN, "noise x2"),
            "subclasses": (1, 3),
            "samples": (0, 2),
            "main": 3,
            "d": 16,
            "patches": 12,
            "neurons": 12,
            "threshold": 0.6,
            "batch": 12,
            "steps": 30,
            "reads": (0, 10, 30),
            "test_each": 8,
        },
        "quick": {
            "seeds": 8,
            "variation": (AS_CHOSEN, "c_b 1.3", "hard: no distraction"),
            "subclasses": (2, 4, 8),
            "samples": (0, 8),
            "main": 4,
            "d": 48,
            "patches": 16,
            "neurons": 32,
            "threshold": 0.8,
            "batch": 32,
            # 18,432 run-steps: from 20,000 on, half a minute would go into compiling
            "steps": 64,
            "reads": (0, 4, 8, 16, 32, 64),
            "test_each": 16,
        },
        "paper": {},
    }

    variation: tuple[str, ...] = tuple(CHANGES)
    """what is changed of the setting; only "as chosen" is run for every number of subclasses and
    samples, the others at ``main`` with fresh samples"""
    subclasses: tuple[Count, ...] = (1, 2, 4, 8, 16, 32)
    """subclasses of each side (k)"""
    samples: tuple[Whole, ...] = (FRESH, 1, 2, 4, 8, 32)
    """training samples of every subclass, drawn once; 0: fresh ones at every step"""
    main: int = 8
    """subclasses of each side in pictures of training and in the table of sensitivity"""
    reads: tuple[int, ...] = (0, 5, 10, 20, 50, 100, 200, 400)
    """numbers of updates after which the networks are tested"""
    strata: Count = 5
    """groups of hard test samples, by their margin in the network trained with coarse labels"""
    d: int = 256
    neurons: Count = 1024
    batch: Count = 128
    seeds: Count = 20

    def check(self) -> None:
        self.check_reads(self.reads)
        if self.main not in self.subclasses:
            raise bad_value("main", self.main, f"must be one of subclasses={self.subclasses}")
        for variation in self.variation:
            for subclasses in self.subclasses:
                self.varied(variation).check_model(subclasses)

    def outputs(self) -> tuple[Output, ...]:
        over_time = [Output(name, ("labels", "read"), said) for name, said in MEASURES.items()]
        by_margin = "hard error among samples of a fifth by margin in the coarse network"
        return (*over_time, Output("stratum_error", ("labels", "stratum"), by_margin))

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "labels": np.array(LABELS),
            "read": np.array(sorted(set(self.reads))),
            "stratum": np.arange(1, self.strata + 1),
        }

    def cost(self) -> Cost:
        most = max(self.subclasses)
        return self.cost_of_grid(2 * most, most, False, 2 * self.steps)

    def _wanted(self, variation: str, subclasses: int, samples: int) -> bool:
        return variation == AS_CHOSEN or (subclasses == self.main and samples == FRESH)

    def _run(
        self, variation: str, subclasses: int, samples: int, cells: Cells, context: Context
    ) -> dict[str, Tensor]:
        setting = self.varied(variation)
        trials = (
            setting.setup(cells, context, Labels(setting.model(subclasses), per_side), samples)
            for per_side in (1, subclasses)
        )
        coarse, fine = (
            trial.learn(context, self.steps, self.test_each, self.reads) for trial in trials
        )
        found = both_labels(coarse.outputs(MEASURES), fine.outputs(MEASURES))
        wrong = torch.stack([coarse.hard.margin, fine.hard.margin], dim=1) <= 0
        found["stratum_error"] = stratum_errors(coarse.hard.margin, wrong, self.strata)
        return found


def stratum_errors(margin: Tensor, wrong: Tensor, strata: int) -> Tensor:
    """Share of ``wrong`` answers, (run, network, n), in equal groups of samples by their margin,
    (run, n), smallest first: (run, network, stratum). A group without samples is NaN."""
    n = margin.shape[1]
    rank = margin.argsort(dim=1, stable=True).argsort(dim=1)
    group = rank * strata // n
    there = torch.nn.functional.one_hot(group, strata).to(margin.dtype)  # (run, n, stratum)
    return (wrong.to(margin.dtype) @ there) / there.sum(dim=1)[:, None]
