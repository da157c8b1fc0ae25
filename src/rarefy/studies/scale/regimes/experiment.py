"""How the boundaries of 002 Theorems 4.2 and 4.3 and of 003 Theorem 1 approach the theorems' as the
dimension grows from a hundred to a billion."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.measure.bisection import check_search, find_boundary
from rarefy.studies.scale.regimes.paths import FeatureRoad, Road, Seen, SignalRoad
from rarefy.studies.scale.regimes.questions import Question, question_of
from rarefy.studies.scale.regimes.tail_path import TailRoad
from rarefy.sweep.batches import split_by_axis

PLACES = ("low", "boundary", "high")
"""Where a row is looked at: the ends of its road, and the boundary between them."""
ROADS: dict[str, type[Road]] = {"signal": SignalRoad, "feature": FeatureRoad, "noise": TailRoad}
"""The road through each world."""


@dataclass(frozen=True, kw_only=True)
class RegimesExperiment(Experiment):
    """A boundary a row, found by bisection, for three roads through the two papers' worlds."""

    axes: ClassVar[tuple[str, ...]] = ("question", "size", "classes", "d")
    random_axes: ClassVar[tuple[str, ...]] = ("size", "classes")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "question": ("signal 0.5", "feature 0.5", "tail 2", "side 2"),
            "size": (4, 8),
            "classes": (2,),
            "d": (30, 10**9),
            "filters": 4,
            "steps": 60,
            "epsilon": 0.1,
            "precision": 1.0,
            "test_samples": 60,
        },
        "quick": {
            "seeds": 4,
            "question": ("signal 0.5", "feature 0.5", "feature 0.1", "tail 2", "side 1", "side 2"),
            "size": (4, 16),
            "classes": (2, 4),
            "d": (10**2, 10**4, 10**6, 10**9),
            "filters": 12,
            "steps": 300,
            "epsilon": 0.02,
            "precision": 0.15,
            "test_samples": 500,
        },
        "paper": {},
    }

    question: tuple[str, ...] = (
        "signal 0.5",
        "feature 0.5",
        "feature 0.1",
        "feature 0.01",
        "tail 2",
        "side 1",
        "side 2",
        "side 3",
    )
    """the road, and what turns over along it: signal and feature with the share of chance that test
    loss or error falls to; tail (both sides) and side (the one its filters point to) with L, where
    the error falls to ``tail_level`` of chance"""
    size: tuple[int, ...] = (8, 16, 32, 64)
    """training samples a class (|S|, n/T)"""
    classes: tuple[int, ...] = (2, 4, 8)
    """number of classes (T, K)"""
    d: tuple[int, ...] = tuple(10**k for k in range(2, 10))
    """coordinates of a patch"""
    filters: int = 16
    """filters a class (m)"""
    sigma_0: float = 1e-9
    """initial filters: std, in units in which signal (002) or a sample's noise (003) is 1 long"""
    lr: float = 2.0
    """learning rate in units of the rate at which logits move"""
    steps: int = 600
    """most updates of a training"""
    epsilon: float = 0.01
    """training loss at which a run stops"""
    precision: float = 0.03
    """width of the last bracket, in decades"""
    audits: int = 1
    """places on either side of the boundary at which a single turn is checked"""
    faint: float = 1e-4
    """|S| |u|^4/|A_k^T A_j|_F^2 of the feature on the tail's road: as good as none"""
    tail_level: float = 0.05
    """share of chance that the error on long-tailed data falls to"""
    test_samples: int = 4000
    """fresh samples the outcome is judged on"""
    seeds: int = 10

    def check(self) -> None:
        super().check()
        for word in self.question:
            question_of(word)
        for name, least in (("size", 1), ("classes", 2)):
            for value in getattr(self, name):
                if value < least:
                    raise bad_value(name, value, f"must be at least {least}")
        for d in self.d:
            if d <= 2 * max(self.classes):
                room = f"must be above {2 * max(self.classes)}: two directions a class"
                raise bad_value("d", d, room)
        for name in ("filters", "steps", "test_samples"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        for name in ("sigma_0", "lr", "epsilon", "faint"):
            if not 0 < getattr(self, name) < math.inf:
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        if not 0 < self.tail_level < 1:
            raise bad_value("tail_level", self.tail_level, "must be between 0 and 1")
        for word in self.question:
            low, high = question_of(word).ends(min(self.size), min(self.classes))
            check_search(high - low, self.precision, self.audits)

    @property
    def setting(self) -> str:
        return f"m={self.filters} mean"

    def outputs(self) -> tuple[Output, ...]:
        at = ("place",)
        return (
            Output("boundary", (), "where the outcome turns, log10 along the road"),
            Output("outside", (), "1: beyond the upper end, -1: below the lower one, 0: found"),
            Output("agree", (), "share of audits that fit a single turn"),
            Output("runs", (), "trainings that finding it took"),
            Output("grid", (), "trainings that a full grid of this precision takes"),
            Output("train_loss", at, "training loss at the end"),
            Output("test_loss", at, "mean cross-entropy on fresh samples"),
            Output("test_error", at, "share of fresh samples not classified right"),
            Output("gamma", at, "own signal held, mean over filters that began on its side"),
            Output("rho", at, "own samples' noise held, mean over filters that began on its side"),
            Output("signal_learnt", at, "largest gamma of a class's filters, least over classes"),
            Output("noise_learnt", at, "largest rho of a class's filters, least over classes"),
            Output("gamma_all", at, "largest |gamma| of all filters and signals"),
            Output("rho_all", at, "largest |rho| of all filters and samples"),
            Output("noise_active", at, "share of a sample's filters that respond to its noise"),
            Output("stopped_at", at, "updates until the training loss was small; -1: never"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"place": np.array(PLACES)}

    def cost(self) -> Cost:
        samples = max(self.size) * max(self.classes)
        rows, patches = max(self.classes) * self.filters, samples + max(self.classes)
        axes = patches + rows + max(self.classes)
        numbers = rows * (6 * patches + 3 * axes) + 4 * patches * axes + 250 * (3 * axes + 4 * rows)
        runs = max(self.runs(question_of(word)) for word in self.question)
        return Cost(bytes_per_cell=4 * numbers, steps_per_cell=runs * self.steps)

    def runs(self, question: Question) -> int:
        """Trainings of a row, at most."""
        low, high = question.ends(max(self.size), max(self.classes))
        return math.ceil(math.log2((high - low) / self.precision)) + 3 + 2 * self.audits

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        # runs that have stopped are left out: kernels would be compiled for ever new shapes
        context = dataclasses.replace(context, compiled=False)

        worlds = [question_of(word).world for word in cells.values["question"]]
        cells = Cells({**cells.values, "world": np.array(worlds)}, cells.keys)

        def of_world(world: str, those: Cells) -> dict[str, np.ndarray]:
            def of_size(size: int, some: Cells) -> dict[str, np.ndarray]:
                return split_by_axis(
                    some,
                    "classes",
                    lambda classes, part: self._search(ROADS[world], size, classes, part, context),
                )

            return split_by_axis(those, "size", of_size)

        return split_by_axis(cells, "world", of_world)

    def _search(
        self, kind: type[Road], size: int, classes: int, cells: Cells, context: Context
    ) -> dict[str, np.ndarray]:
        """Rows of one world and shape, all questions together."""
        road = kind(self, size, classes, cells, context)
        questions = [question_of(word) for word in cells.values["question"]]
        level = torch.tensor(
            [self.level(question, classes) for question in questions],
            dtype=torch.float64,
            device=context.device,
        )
        seen: list[Seen] = []

        def decide(place: Tensor) -> Tensor:
            seen.append(road.at(place))
            return road.judged(seen[-1]) < level  # a run that was lost has learnt nothing

        low, high = questions[0].ends(size, classes)
        start = torch.full((len(cells),), low, dtype=torch.float64, device=context.device)
        found = find_boundary(
            decide, start, torch.full_like(start, high), self.precision, self.audits
        )
        known = found.outside == 0
        middle = road.at(torch.where(known, found.place, (low + high) / 2))
        context.advance(len(cells) * (self.cost().steps_per_cell - (len(seen) + 1) * self.steps))
        places = {"low": seen[0], "boundary": middle, "high": seen[1]}
        values: dict[str, Tensor] = {
            "boundary": found.place,
            "outside": found.outside,
            "agree": found.agree,
            "runs": torch.full_like(found.outside, found.runs),
            "grid": torch.full_like(found.outside, found.grid),
        }
        for field in fields(Seen):
            if field.name == "nonfinite_step":
                continue
            parts = [getattr(places[place], field.name).double() for place in PLACES]
            parts[1] = torch.where(known, parts[1], torch.nan)
            values[field.name] = torch.stack(parts, dim=1)
        lost = torch.stack([each.nonfinite_step for each in (*seen, middle)]).amax(dim=0)
        values["nonfinite_step"] = lost
        return {name: value.cpu().numpy() for name, value in values.items()}

    def level(self, question: Question, classes: int) -> float:
        """The loss or error below which the outcome has turned."""
        if question.road == "signal":
            return question.number * math.log(classes)
        share = self.tail_level if question.by_noise else question.number
        return share * (1 - 1 / classes)
