"""How the boundaries of 002 Theorems 4.2 and 4.3 and of 003 Theorem 1 approach the theorems' as the
dimension grows from a hundred to a billion."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, Positive, Rule, Whole
from rarefy.measure.bisection import check_search, find_boundary
from rarefy.studies.scale import paths
from rarefy.studies.scale.questions import Question, question_of
from rarefy.studies.scale.tail_path import TailPath
from rarefy.sweep.batches import split_by_axes

PLACES = ("low", "boundary", "high")
"""Where a row is looked at: the ends of its path, and the boundary between them."""
WORLDS: dict[str, type[paths.SweepPath]] = {
    "signal": paths.SignalPath,
    "feature": paths.FeaturePath,
    "noise": TailPath,
}
"""The path through each."""
BELOW_ONE = Rule("must be above 0 and below 1", lambda value: 0 < value < 1)
FOUND = {
    "boundary": "where the outcome turns, log10 along the path",
    "outside": "1: beyond the upper end, -1: below the lower one, 0: found",
    "agree": "share of audits that fit a single turn",
    "runs": "trainings that finding it took",
    "grid": "trainings that a full grid of this precision takes",
}
"""Outputs of a search."""
AT_PLACES = {
    "train_loss": "training loss at the end",
    "test_loss": "mean cross-entropy on fresh samples",
    "test_error": "share of fresh samples not classified right",
    "gamma": "own signal held, mean over filters that began on its side",
    "rho": "own samples' noise held, mean over filters that began on its side",
    "signal_learnt": "largest gamma of a class's filters, least over classes",
    "noise_learnt": "largest rho of a class's filters, least over classes",
    "gamma_all": "largest |gamma| of all filters and signals",
    "rho_all": "largest |rho| of all filters and samples",
    "noise_active": "share of a sample's filters that respond to its noise",
    "stopped_at": "updates until the training loss was small; -1: never",
}
"""Outputs at each of ``PLACES``: fields of ``Measurement``."""


@dataclass(frozen=True, kw_only=True)
class RegimesExperiment(Experiment):
    """A boundary per row, found by bisection, for three paths through the two papers' worlds."""

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
            "steps": 30,
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
    """the path, and what turns over along it: signal and feature with the share of chance that test
    loss or error falls to; tail (both sides) and side (the one its filters point to) with L, where
    the error falls to ``tail_level`` of chance"""
    size: tuple[Count, ...] = (8, 16, 32, 64)
    """training samples per class (|S|, n/T)"""
    classes: tuple[Annotated[int, AtLeast(2)], ...] = (2, 4, 8)
    """number of classes (T, K)"""
    d: tuple[int, ...] = tuple(10**k for k in range(2, 10))
    """coordinates of a patch"""
    filters: Count = 16
    """filters per class (m)"""
    sigma_0: Positive = 1e-9
    """initial filters: std, in units in which signal (002) or a sample's noise (003) is 1 long"""
    lr: Positive = 2.0
    """learning rate in units of the rate at which logits move"""
    steps: Count = 600
    """most updates of a training"""
    epsilon: Positive = 0.01
    """training loss at which a run stops"""
    precision: Positive = 0.03
    """width of the last bracket, in decades"""
    audits: Whole = 1
    """places on either side of the boundary at which a single turn is checked"""
    faint: Positive = 1e-4
    """|S| |u|^4/|A_k^T A_j|_F^2 of the feature on the tail's path: as good as none"""
    tail_level: Annotated[float, BELOW_ONE] = 0.05
    """share of chance that the error on long-tailed data falls to"""
    test_samples: Count = 4000
    """fresh samples the outcome is judged on"""
    seeds: Count = 10

    def check(self) -> None:
        most = 2 * max(self.classes)
        for d in self.d:
            if d <= most:
                raise bad_value("d", d, f"must be above {most}: two directions a class")
        for word in self.question:
            low, high = question_of(word).ends(min(self.size), min(self.classes))
            check_search(high - low, self.precision, self.audits)

    @property
    def setting(self) -> str:
        return f"m={self.filters} mean"

    def outputs(self) -> tuple[Output, ...]:
        return (
            *(Output(name, (), meaning) for name, meaning in FOUND.items()),
            *(Output(name, ("place",), meaning) for name, meaning in AT_PLACES.items()),
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
        context = replace(context, compiled=False)
        worlds = [question_of(word).world for word in cells.values["question"]]
        cells = Cells({**cells.values, "world": np.array(worlds)}, cells.keys)
        return split_by_axes(cells, ("world", "size", "classes"), partial(self._search, context))

    def path(
        self, world: str, size: int, classes: int, cells: Cells, context: Context
    ) -> paths.SweepPath:
        """Of rows of one world and shape."""
        how = {one.name: getattr(self, one.name) for one in fields(paths.Training)}
        return WORLDS[world](paths.Training(**how), size, classes, cells, context)

    def _search(
        self, context: Context, world: str, size: int, classes: int, cells: Cells
    ) -> dict[str, Tensor]:
        """All questions of a world together."""
        path = self.path(world, size, classes, cells, context)
        questions = [question_of(word) for word in cells.values["question"]]
        levels = [self.level(question, classes) for question in questions]
        level = torch.tensor(levels, dtype=torch.float64, device=context.device)
        seen: list[paths.Measurement] = []

        def decide(place: Tensor) -> Tensor:
            seen.append(path.at(place))
            return path.judged(seen[-1]) < level  # a run that was lost has learnt nothing

        low, high = questions[0].ends(size, classes)
        start, stop = (torch.full_like(level, end) for end in (low, high))
        found = find_boundary(decide, start, stop, self.precision, self.audits)
        known = found.outside == 0
        middle = path.at(torch.where(known, found.place, (low + high) / 2))
        context.advance(len(cells) * (self.cost().steps_per_cell - (len(seen) + 1) * self.steps))
        counts = (torch.full_like(found.outside, count) for count in (found.runs, found.grid))
        values = dict(zip(FOUND, (found.place, found.outside, found.agree, *counts), strict=True))
        for name in AT_PLACES:
            first, at, last = (getattr(each, name).double() for each in (seen[0], middle, seen[1]))
            values[name] = torch.stack([first, torch.where(known, at, torch.nan), last], dim=1)
        lost = torch.stack([each.nonfinite_step for each in (*seen, middle)]).amax(dim=0)
        return values | {"nonfinite_step": lost}

    def level(self, question: Question, classes: int) -> float:
        """The loss or error below which the outcome has turned."""
        if question.path == "signal":
            return question.number * math.log(classes)
        share = self.tail_level if question.by_noise else question.number
        return share * (1 - 1 / classes)
