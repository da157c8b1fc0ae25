"""What the studies of 002 share: the setting, and how a batch of it is trained and tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import LABELS, SignalNoise
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.nets.patch_cnn import COMBINATIONS, initial_filters, output_scale
from rarefy.train.descent import Pruning, Tracker, Trajectory, descend
from rarefy.train.forms import train_unpruned
from rarefy.train.optimisers import Rate, Sgd
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import TopKPruning


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train: ``samples`` and ``initial`` filters, (run, classes, m, d)."""

    data: SignalNoise
    samples: PatchSamples
    initial: Tensor
    draws: Draws
    scale: float
    test_samples: int

    def train(
        self,
        context: Context,
        lr: float,
        steps: int,
        trackers: Mapping[str, Tracker],
        record: Sequence[int],
        pruning: Pruning | None = None,
        weight_decay: Rate = 0.0,
        coefficients: bool = False,
        open_at_zero: bool = True,
    ) -> Trajectory:
        """Full-batch descent. With ``coefficients`` gamma and rho are accumulated along;
        ``open_at_zero``: ReLU'(0) = 1. On a CPU what is not pruned trains in its cheapest form."""
        idle = pruning is None or (isinstance(pruning, TopKPruning) and pruning.idle)
        plain = idle and open_at_zero and not isinstance(weight_decay, Tensor) and weight_decay == 0
        if plain and self.initial.device.type == "cpu":
            return train_unpruned(
                self.samples,
                self.initial,
                self.scale,
                lr,
                steps,
                context,
                trackers=trackers,
                record=record,
                coefficients=coefficients,
            )
        problem = PatchClassifier.of(self.samples, self.scale, context.compiled, open_at_zero)
        parameters = {"filters": self.initial}
        if coefficients:
            patches = len(self.samples) + self.samples.classes
            parameters["coefficients"] = self.initial.new_zeros(*self.initial.shape[:3], patches)
        return descend(
            problem,
            parameters,
            lambda step: None,
            Sgd(lr, weight_decay=weight_decay, undecayed=("coefficients",)),
            steps,
            trackers=trackers,
            record=record,
            pruning=pruning,
            context=context,
            guard="loss",
        )

    def test(
        self, filters: Tensor, context: Context, samples: int | None = None, stream: str = "test"
    ) -> Generalisation:
        """Measures on fresh samples, the same for all runs that share draws."""

        def draw(count: int, chunk: int) -> PatchSamples:
            return self.data.sample(self.draws, count, stream, chunk)

        count = self.test_samples if samples is None else samples
        return generalisation(filters, draw, count, self.scale, context.compiled)


@dataclass(frozen=True, kw_only=True)
class SignalNoiseExperiment(Experiment):
    """The setting of 002 App. A.1; ``combine`` is "sum" because its figure needs it (with the mean
    over filters of the paper's formulas the training loss stays far above the reported 0.01)."""

    lab: ClassVar[str] = "topk"

    classes: int = 10
    """number of classes (T of 002)"""
    samples: int = 200
    """training samples (n)"""
    d: int = 200
    """coordinates of a patch"""
    filters: int = 20
    """filters a class (m)"""
    mu: float = 1.0
    """strength of the signal"""
    sigma_0: float = 0.01
    """std of the initial filters"""
    lr: float = 0.05
    steps: int = 5000
    combine: str = "sum"
    """how filters are put together: sum, or mean as in the paper's formulas"""
    labels: str = "drawn"
    """training labels drawn uniformly, or balanced"""
    test_samples: int = 10_000

    @property
    def setting(self) -> str:
        return f"n={self.samples} T={self.classes} d={self.d} m={self.filters} {self.combine}"

    def check(self) -> None:
        super().check()
        for name in ("samples", "filters", "steps", "test_samples"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        for name in ("mu", "sigma_0", "lr"):
            if not 0 < getattr(self, name) < float("inf"):
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        if not 2 <= self.classes < self.d:
            least = f"must be at least 2 and below d={self.d}: each class has a coordinate"
            raise bad_value("classes", self.classes, least)
        for name, known in (("combine", COMBINATIONS), ("labels", LABELS)):
            if getattr(self, name) not in known:
                raise bad_value(name, getattr(self, name), f"must be one of {', '.join(known)}")

    @property
    def scale(self) -> float:
        """The factor in front of the sum over filters."""
        return output_scale(self.combine, self.filters)

    def cost(self) -> Cost:
        return Cost(bytes_per_cell=self.bytes_per_cell(), steps_per_cell=self.steps)

    def bytes_per_cell(self) -> int:
        rows, patches = self.classes * self.filters, self.samples + self.classes
        # filters, their gradient and successor, responses and coefficients; a chunk of test noise
        return 4 * rows * (4 * self.d + 3 * patches + 2 * 250) * 2

    def setup(self, cells: Cells, context: Context, *, sigma: Tensor, mu: Tensor) -> Trial:
        """Draw samples and initial filters; sigma, mu: (run,). Cells with one key share both."""
        shared = bool((cells.keys == cells.keys[0]).all())
        draws = (cells.take(np.array([0])) if shared else cells).draws(context)
        data = SignalNoise(self.classes, self.d, mu, sigma, self.labels)
        start = initial_filters(draws, self.classes, self.filters, self.d) * self.sigma_0
        return Trial(
            data=data,
            samples=data.sample(draws, self.samples),
            initial=start.expand(len(cells), -1, -1, -1),
            draws=draws,
            scale=self.scale,
            test_samples=self.test_samples,
        )


def training_loss(experiment: Trial, filters: Tensor) -> Tensor:
    """L_S of given filters: (run,)."""
    problem = PatchClassifier.of(experiment.samples, experiment.scale)
    with torch.no_grad():
        return problem.loss({"filters": filters})
