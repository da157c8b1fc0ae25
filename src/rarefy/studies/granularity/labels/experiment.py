"""Fine labels that are noisy, misaligned or starved of samples (004 Sec. 6.2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, OneOf, Share
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.experiment import AS_CHOSEN, Run
from rarefy.studies.granularity.stored_sets import QUICK, TINY, StoredSetExperiment
from rarefy.studies.granularity.trial import LABELS, both_labels
from rarefy.sweep.batches import Arrays

KNOBS = ("noisy", "misaligned", "starved")


@dataclass(frozen=True, kw_only=True)
class LabelsExperiment(StoredSetExperiment):
    """Fine labels from clean to spoilt in three ways, each beside coarse labels that are clean, on
    the same stored samples; then both are fine-tuned on the coarse question. ``turn`` 0 is clean,
    the last is spoilt altogether."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "patch_noise", "knob", "turn")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **TINY,
            "patch_noise": (0.3,),
            "turn": (0, 1),
            "wrong": (0.0, 1.0),
            "crossed": (0.0, 1.0),
            "samples": (4, 1),
        },
        "quick": {
            **QUICK,
            "seeds": 6,
            "patch_noise": (0.3,),
            "turn": (0, 1, 2, 3),
            "wrong": (0.0, 0.25, 0.5, 1.0),
            "crossed": (0.0, 0.25, 0.5, 1.0),
            "samples": (8, 4, 2, 1),
            "batch": 64,
            "steps": 80,
            "reads": (20, 80),
            "tune_steps": 30,
            "test_each": 16,
        },
        "paper": {},
    }

    knob: tuple[Annotated[str, OneOf(KNOBS)], ...] = KNOBS
    """what is wrong with the fine labels: noisy, misaligned, starved"""
    turn: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    """how far a knob is turned: places in the three lists below"""
    wrong: tuple[Share, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
    """noisy: share of samples whose label is drawn from all"""
    crossed: tuple[Share, ...] = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
    """misaligned: share of subclasses whose label is tossed between the two sides"""
    samples: tuple[Count, ...] = (16, 8, 4, 3, 2, 1)
    """starved: stored samples of every subclass; the first is that of the other knobs too"""
    batch: Count = 256
    steps: Count = 120

    def check(self) -> None:
        super().check()
        turns = len(self.turn)
        for name in ("wrong", "crossed", "samples"):
            if self.turn != tuple(range(turns)) or len(getattr(self, name)) != turns:
                rule = "turn must be 0, 1, 2, ... and name a place in wrong, crossed and samples"
                raise bad_value(name, getattr(self, name), f"{rule}; turn={self.turn}")

    def labels(self, knob: str, turn: int) -> Labels:
        """The fine labels with a knob at a turn."""
        noise = self.wrong[turn] if knob == "noisy" else 0.0
        misaligned = self.crossed[turn] if knob == "misaligned" else 0.0
        return Labels(self.model(self.subclasses), self.subclasses, noise, misaligned)

    def turns(self, knob: str) -> list[float]:
        """What a knob's turns stand for."""
        values = {"noisy": self.wrong, "misaligned": self.crossed, "starved": self.samples}[knob]
        return [float(value) for value in values]

    def outputs(self) -> tuple[Output, ...]:
        return self.measured("labels")

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"labels": np.array(LABELS), **super().coordinates()}

    def cost(self) -> Cost:
        steps = 2 * (self.steps + self.tune_steps)  # of both networks
        return self.cost_of_grid(2 * self.subclasses, self.subclasses, True, steps)

    def simulate(self, cells: Cells, context: Context, run: Run | None = None) -> Arrays:
        # one network serves many cells: the baseline does not know how labels are spoilt, and all
        # knobs begin with clean ones
        known: dict[Hashable, dict[str, Tensor]] = {}
        return super().simulate(cells, context, run or partial(self._run, known))

    def _wanted(self, variation: str, noise: float, knob: str, turn: int) -> bool:
        ends = (self.turn[0], self.turn[-1])
        return variation == AS_CHOSEN or (noise == self.main_noise and turn in ends)

    def _run(
        self,
        known: dict[Hashable, dict[str, Tensor]],
        variation: str,
        noise: float,
        knob: str,
        turn: int,
        cells: Cells,
        context: Context,
    ) -> dict[str, Tensor]:
        setting = self.at_noise(noise, variation)
        spoilt, samples = setting.labels(knob, turn), self.samples[turn * (knob == "starved")]

        def network(labels: Labels) -> dict[str, Tensor]:
            place = (variation, noise, labels, samples, cells.keys.tobytes())
            if place in known:
                context.advance(len(cells) * (self.steps + self.tune_steps))
            else:
                known[place] = setting.learn_and_tune(cells, context, labels, samples)
            return known[place]

        return both_labels(network(Labels(spoilt.data, 1)), network(spoilt))
