"""What the studies of pruning in 002 share: the setting, and how a batch of it is trained and
tested."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.compilation import WORTH_BUILDING
from rarefy.core.contracts import Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, OneOf, Positive
from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import LABELS, SignalNoise
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.nets.patch_cnn import COMBINATIONS, initial_filters, output_scale
from rarefy.sweep.batches import Arrays, split_by_axis
from rarefy.train.descent import Tracker, Trajectory, descend
from rarefy.train.forms import train_unpruned
from rarefy.train.optimisers import Rate, Sgd
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import TopKPruning

TINY = {"d": 40, "samples": 40, "classes": 4, "filters": 6, "steps": 60, "test_samples": 200}
"""The smallest setting worth running."""
FEW = 100
"""Cells of a seed, from which on a GPU has enough to do with them alone."""


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train: ``samples`` and ``initial`` filters, (run, classes, m, d)."""

    data: SignalNoise
    samples: PatchSamples
    initial: Tensor
    draws: Draws
    scale: float
    """factor in front of the sum over filters"""

    def test(
        self, filters: Tensor, samples: int, context: Context, stream: str = "test"
    ) -> Generalisation:
        """Measures on fresh samples, the same for all runs that share draws."""

        def draw(count: int, chunk: int) -> PatchSamples:
            return self.data.sample(self.draws, count, stream, chunk)

        return generalisation(filters, draw, samples, self.scale, context.compiled)


def own_signal(filters: Tensor) -> Tensor:
    """A filter's coordinate of its own class's signal: (run, classes, m)."""
    classes = filters.shape[1]
    return torch.diagonal(filters[..., :classes], dim1=1, dim2=3).transpose(1, 2)


@dataclass(frozen=True, kw_only=True)
class SignalNoiseExperiment(Experiment):
    """The setting of 002 App. A.1; ``combine`` is "sum" because its figure needs it (with the mean
    over filters of the paper's formulas the training loss stays far above the reported 0.01)."""

    compile_from: ClassVar[int] = WORTH_BUILDING

    classes: Annotated[int, AtLeast(2)] = 10
    """number of classes (T of 002)"""
    samples: Count = 200
    """training samples (n)"""
    d: Count = 200
    """coordinates of a patch"""
    filters: Count = 20
    """filters per class (m)"""
    mu: Positive = 1.0
    """strength of the signal"""
    sigma_0: Positive = 0.01
    """std of the initial filters"""
    lr: Positive = 0.05
    """learning rate"""
    steps: Count = 5000
    """updates"""
    combine: Annotated[str, OneOf(COMBINATIONS)] = "sum"
    """how filters are put together: sum, or mean as in the paper's formulas"""
    labels: Annotated[str, OneOf(LABELS)] = "drawn"
    """training labels drawn uniformly, or balanced"""
    test_samples: Count = 10_000
    """fresh samples the test loss is measured on"""

    @property
    def setting(self) -> str:
        return f"n={self.samples} T={self.classes} d={self.d} m={self.filters} {self.combine}"

    def check(self) -> None:
        if self.classes >= self.d:
            complaint = f"must be below d={self.d}: each class has a coordinate"
            raise bad_value("classes", self.classes, complaint)

    @property
    def scale(self) -> float:
        """The factor in front of the sum over filters."""
        return output_scale(self.combine, self.filters)

    def cost(self) -> Cost:
        rows, patches = self.classes * self.filters, self.samples + self.classes
        # filters, their gradient and successor, responses and coefficients; a chunk of test noise
        memory = 4 * rows * (4 * self.d + 3 * patches + 2 * 250) * 2
        memory += 4 * self.d * (patches + 2 * 250)  # samples of its own, where seeds go together
        return Cost(bytes_per_cell=memory, steps_per_cell=self.steps)

    def setup(self, cells: Cells, context: Context) -> Trial:
        """Draw samples and initial filters. Cells with one key share both."""
        sigma = cells.column("sigma", context)
        shared = bool((cells.keys == cells.keys[0]).all())
        draws = (cells.take(np.array([0])) if shared else cells).draws(context)
        mu = torch.full_like(sigma, self.mu)
        data = SignalNoise(self.classes, self.d, mu, sigma, self.labels)
        start = initial_filters(draws, self.classes, self.filters, self.d) * self.sigma_0
        initial = start.expand(len(cells), -1, -1, -1)
        return Trial(data, data.sample(draws, self.samples), initial, draws, self.scale)

    def by_seed(
        self, cells: Cells, context: Context, simulate: Callable[[Cells], Arrays]
    ) -> Arrays:
        """Cells of one seed share noise, labels and initial filters: one product serves them all.
        Few of them are too little work for a GPU, where all seeds then go together."""
        together = context.device.type == "cuda" and len(cells) < FEW * len(set(cells.keys))
        if together:
            return simulate(cells)
        return split_by_axis(cells, "seed", lambda _, part: simulate(part))

    def train(
        self,
        trial: Trial,
        context: Context,
        trackers: Mapping[str, Tracker],
        record: Sequence[int],
        pruning: TopKPruning,
        weight_decay: Rate = 0.0,
        open_at_zero: bool = True,
        lr: Rate | None = None,
    ) -> Trajectory:
        """Full-batch descent; ``open_at_zero``: ReLU'(0) = 1; ``lr``: instead of the experiment's.
        On a CPU what is neither pruned nor decayed trains in its cheapest form."""
        lr = self.lr if lr is None else lr
        decayed = isinstance(weight_decay, Tensor) or weight_decay != 0
        plain = pruning.idle and open_at_zero and not decayed
        if plain and trial.initial.device.type == "cpu":
            return train_unpruned(
                trial.samples,
                trial.initial,
                trial.scale,
                lr,
                self.steps,
                context,
                trackers=trackers,
                record=record,
            )
        return descend(
            PatchClassifier.of(trial.samples, trial.scale, context.compiled, open_at_zero),
            {"filters": trial.initial},
            lambda step: None,
            Sgd(lr, weight_decay=weight_decay),
            self.steps,
            trackers=trackers,
            record=record,
            pruning=pruning,
            context=context,
            guard="loss",
        )
