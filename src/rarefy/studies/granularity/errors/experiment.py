"""What coarse and fine labels teach: errors on easy and on hard samples (004 Theorems 5.1, 5.2)."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf, Positive
from rarefy.data.granularity_labels import Labels
from rarefy.measure.granularity import CHUNK
from rarefy.studies.granularity.experiment import AS_CHOSEN, GranularityExperiment, Run
from rarefy.studies.granularity.trial import LABELS, MEASURES, Trial, both_labels, by_measure
from rarefy.sweep.batches import Arrays
from rarefy.train.descent import State

IN_ALL, PER_OUTPUT = "equal neurons in all", "equal neurons per output"
FIXED = "patch counts fixed"
VARIATIONS = (AS_CHOSEN, IN_ALL, PER_OUTPUT, FIXED)
OTHER_HARD = {
    "no_strong_error": "hard error without the patch of strong noise",
    "weak_traces_error": "hard error with traces of the other side at most 1/log(d) in all",
}
"""Errors on other hard samples than the chosen ones."""


@dataclass(frozen=True, kw_only=True)
class ErrorsExperiment(GranularityExperiment):
    """Each cell trains two networks on the same samples, one with the labels of the two sides and
    one with those of the subclasses, and asks both for the side of fresh samples.

    Widths as in the paper: ``neurons`` m per output with fine labels and d m with coarse ones, so
    that a feature has about as many detectors in both (``wide``).
    """

    axes: ClassVar[tuple[str, ...]] = ("variation", "s_star")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "s_star": (1, 2),
            "subclasses": (2, 3),
            "d": 12,
            "neurons": 12,
            "threshold": 0.6,
            "sigma_0": 0.1,
            "lr": 2.0,
            "batch": 12,
            "steps": 12,
            "reads": (0, 4, 12),
            "test_each": 8,
        },
        "quick": {
            "seeds": 8,
            "variation": (AS_CHOSEN,),
            "s_star": (3, 6),
            "subclasses": (4, 8),
            "d": 32,
            "neurons": 48,
            "threshold": 0.5,
            "lr": 0.5,
            "batch": 32,
            "steps": 400,
            "reads": (0, 10, 25, 50, 100, 200, 400),
            "test_each": 8,
        },
        "paper": {},
    }

    variation: tuple[Annotated[str, OneOf(VARIATIONS)], ...] = (AS_CHOSEN, IN_ALL, FIXED)
    """what is changed of the setting; "as chosen" is run for every s*, fixed counts for the least,
    other widths for the largest"""
    s_star: tuple[Count, ...] = (3, 6, 12)
    """patches with the common feature, and as many with the subclass's, in the mean (s*)"""
    subclasses: tuple[Count, ...] = (8, 16, 32)
    """subclasses of each side (k), one number per s*: k must outgrow s* (App. B.3, 4)"""
    patches: int = 8
    """P over s*"""
    sigma_0: Positive = 0.01
    """std of initial weights times s* (App. B.3, 14)"""
    lr: Positive = 0.05
    """learning rate times s*, of the order of sigma_0: 5 of it (App. B.3, 14)"""
    sigma: NotNegative = 0.002
    counts: str = "drawn"
    reads: tuple[int, ...] = (
        *(0, 10, 20, 50, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1500, 2000),
    )
    """numbers of updates after which the networks are tested"""
    d: int = 144
    neurons: Count = 256
    threshold: Positive = 0.75
    batch: Count = 128
    steps: Count = 2000
    test_each: Count = 16
    seeds: Count = 20

    def check(self) -> None:
        self.check_reads(self.reads)
        if len(self.subclasses) != len(self.s_star):
            raise bad_value("subclasses", self.subclasses, f"one for each of s_star={self.s_star}")
        self.check_variation(self.variation)
        for s in self.s_star:
            self.at_size(s).check_model(self.subclasses_at(s))

    @property
    def setting(self) -> str:
        return f"d={self.d} m={self.neurons} c_b={self.threshold:.3g}"

    @property
    def main(self) -> int:
        """The largest s*: the paper's grows without bound."""
        return max(self.s_star)

    def subclasses_at(self, s: int) -> int:
        return self.subclasses[self.s_star.index(s)]

    def at_size(self, s: int, variation: str = AS_CHOSEN) -> ErrorsExperiment:
        """The setting at one s*."""
        return replace(
            self,
            s_star=(s,),
            subclasses=(self.subclasses_at(s),),
            feature_patches=s,
            patches=self.patches * s,
            sigma_0=self.sigma_0 / s,
            lr=self.lr / s,
            counts="fixed" if variation == FIXED else self.counts,
        )

    def coarse_neurons(self, s: int, variation: str) -> int:
        """Per output, with coarse labels."""
        times = {IN_ALL: self.subclasses_at(s), PER_OUTPUT: 1}
        return times.get(variation, self.d) * self.neurons

    def outputs(self) -> tuple[Output, ...]:
        measures = {**MEASURES, **OTHER_HARD}
        return tuple(Output(name, ("labels", "read"), said) for name, said in measures.items())

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"labels": np.array(LABELS), "read": np.array(sorted(set(self.reads)))}

    def cost(self) -> Cost:
        # cells that differ in shape are trained one after the other: see ``cost_of_grid``
        widest = 2 * max(self.d, *self.subclasses) * self.neurons
        tested = 2 * max(self.subclasses) * min(self.test_each, CHUNK)
        points = len(self.variation) * len(self.s_star)
        return Cost(math.ceil(8 * widest * (8 * self.d + tested) / points), 2 * self.steps)

    def simulate(self, cells: Cells, context: Context, run: Run | None = None) -> Arrays:
        # one network with fine labels serves all widths of the coarse one
        known: dict[Hashable, dict[str, Tensor]] = {}
        return super().simulate(cells, context, run or partial(self._run, known))

    def _wanted(self, variation: str, s: int) -> bool:
        return variation == AS_CHOSEN or s == (
            min(self.s_star) if variation == FIXED else self.main
        )

    def _run(
        self,
        known: dict[Hashable, dict[str, Tensor]],
        variation: str,
        s: int,
        cells: Cells,
        context: Context,
    ) -> dict[str, Tensor]:
        setting, k = self.at_size(s, variation), self.subclasses_at(s)
        coarse = setting.network(cells, context, 1, self.coarse_neurons(s, variation))
        place = (s, setting.counts, cells.keys.tobytes())
        if place in known:
            context.advance(len(cells) * self.steps)
        else:
            known[place] = setting.network(cells, context, k, setting.neurons)
        return both_labels(coarse, known[place])

    def network(
        self, cells: Cells, context: Context, per_side: int, neurons: int
    ) -> dict[str, Tensor]:
        """``MEASURES`` and ``OTHER_HARD`` of a network trained with so many labels per side."""
        labels = Labels(self.model(self.subclasses[0]), per_side)
        trial = self.wide(neurons).setup(cells, context, labels)
        trackers = {"tests": trial.tests(self.test_each), "other": self._other(trial)}
        found = trial.train(self.steps, context=context, trackers=trackers, record=self.reads)
        other = dict(zip(OTHER_HARD, found.records["other"].unbind(dim=2), strict=True))
        lost = {"nonfinite_step": found.nonfinite_step}
        return by_measure(found.records["tests"]) | other | lost

    def _other(self, trial: Trial) -> Any:
        """A tracker of ``OTHER_HARD``."""
        weak = 1 / (math.log(self.d) * max(self.distractors, 1))
        recipes = (
            replace(trial.data, strong=self.sigma),
            replace(trial.data, distraction=(min(weak, self.distraction),) * 2),
        )

        def look(state: State) -> Tensor:
            tests = (replace(trial, data=data) for data in recipes)
            errors = [one.test(state.parameters, self.test_each, True).error for one in tests]
            return torch.stack(errors, dim=1)

        return look
