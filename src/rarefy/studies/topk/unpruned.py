"""The training of 002 without pruning, in any dimension: a batch of it, and how it begins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.compilation import WORTH_BUILDING
from rarefy.core.contracts import Cells, Context, Experiment
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, Positive
from rarefy.core.rng import Draws
from rarefy.data.gram_samples import gram_signal_noise
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.statistics import BIG_O
from rarefy.nets.patch_cnn import initial_filters, responses
from rarefy.studies.topk.setting import Trial, own_signal
from rarefy.sweep.batches import split_by_axis
from rarefy.theory.conditions import Condition, worst
from rarefy.theory.topk import condition_4_1
from rarefy.train.descent import State, Tracker, Trajectory
from rarefy.train.forms import train_unpruned

PRIMAL_NUMBERS = 2 * 10**8
"""Coordinates of one run's filters and samples that the primal form will hold."""


@dataclass(frozen=True)
class Sizes:
    """All quantities of one run, absolute: ``lr`` is eta, ``output_scale`` the factor in front of
    the sum over filters."""

    filters: int
    classes: int
    samples: int
    d: float
    mu: float
    sigma: float
    lr: float
    output_scale: float


@dataclass(frozen=True)
class Unpruned(Trial):
    """A batch of runs of one shape (n, T, m), ready to train; ``initial``: (run, T, m, axis), in
    the coordinates of ``samples``; lr: (run,)."""

    lr: Tensor
    form: str

    @classmethod
    def drawn(
        cls,
        sizes: Sequence[Sizes],
        draws: Draws,
        sigma_0: float,
        labels: str = "balanced",
        form: str = "auto",
    ) -> Unpruned:
        """Draw training samples and initial filters of runs of one shape.

        "auto" and "dual" draw no vectors of d coordinates, so that runs may differ in d; "primal"
        does, and wants one d for all.
        """

        def column(name: str, dtype: torch.dtype = draws.dtype) -> Tensor:
            values = [getattr(each, name) for each in sizes]
            return torch.tensor(values, dtype=torch.float64).to(draws.keys.device, dtype)

        one = sizes[0]
        mu, sigma, lr = (column(name) for name in ("mu", "sigma", "lr"))
        if form != "primal":
            rows, d = (one.classes, one.filters), column("d", torch.float64)
            world = gram_signal_noise(draws, one.samples, rows, d, mu, sigma, labels)
            data, samples, start, form = world.data, world.samples, world.filters, "dual"
        else:
            data = SignalNoise(one.classes, int(one.d), mu, sigma, labels)
            start = initial_filters(draws, one.classes, one.filters, int(one.d))
            samples = data.sample(draws, one.samples)
        return cls(data, samples, start * sigma_0, draws, one.output_scale, lr, form)

    def train(
        self,
        context: Context,
        steps: int,
        trackers: Mapping[str, Tracker] | None = None,
        record: Sequence[int] = (),
        after_update: Callable[[State], None] | None = None,
    ) -> Trajectory:
        """Full-batch descent; gamma and rho are accumulated along ("coefficients")."""
        return train_unpruned(
            self.samples,
            self.initial,
            self.scale,
            self.lr,
            steps,
            context,
            form=self.form,
            trackers=trackers,
            record=record,
            after_update=after_update,
            coefficients=True,
        )

    def seen_signal(self) -> Tensor:
        """Filters that begin on the positive side of their own signal, M_jj: (run, T, m)."""
        return own_signal(self.initial) > 0

    def seen_noise(self, filters: Tensor | None = None) -> Tensor:
        """Filters of a sample's class on the positive side of its noise, (run, m, n); as they
        begin, N_(y_i, i), unless trained ``filters`` are given."""
        response = responses(self.initial if filters is None else filters, self.samples.noise)
        return torch.einsum("rkmn,rnk->rmn", response, self.samples.one_hot()) > 0


def check_dimension(d: float, classes: int, filters: int, samples: int, form: str) -> None:
    """Refuse a d that signals leave no room in, or that the primal form cannot hold."""
    if not d > classes:
        raise bad_value("d", d, f"must be above the number of classes, {classes}")
    most = PRIMAL_NUMBERS // (classes * filters + samples)
    if form == "primal" and d > most:
        raise bad_value(
            "d", d, f"with --form primal at most {most:g}: vectors are stored; use dual"
        )


@dataclass(frozen=True, kw_only=True)
class UnprunedExperiment(Experiment):
    """Trainings without pruning; cells may differ in every quantity."""

    compile_from: ClassVar[int] = WORTH_BUILDING

    filters: Count = 20
    """filters per class (m)"""
    mu: Positive = 10.0
    """strength of the signal; large enough that sigma_p^2 d >= 1 for most SNR"""
    sigma_0: Positive = 1e-11
    """std of the initial filters; as small as Condition 4.1 asks for at the largest n and T"""
    steps: Count = 3000
    """updates"""

    @abstractmethod
    def sizes(self, *cell: Any, **values: Any) -> Sizes:
        """All quantities of a cell, given by its values on the axes."""

    @abstractmethod
    def prepare(self, cells: Cells, context: Context) -> Unpruned:
        """Cells of one shape, ready to train."""

    @abstractmethod
    def measure(self, trial: Unpruned, context: Context) -> dict[str, np.ndarray]:
        """Train a batch of one shape and look at it."""

    def sizes_of(self, cells: Cells) -> list[Sizes]:
        columns = (cells.values[axis].tolist() for axis in self.axes)
        return [self.sizes(*cell) for cell in zip(*columns, strict=True)]

    def shape(self, sizes: Sizes) -> str:
        """Runs are trained together where this is the same."""
        return f"{sizes.filters} {sizes.classes} {sizes.samples}"

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        shapes = np.array([self.shape(each) for each in self.sizes_of(cells)])
        return split_by_axis(
            Cells({**cells.values, "shape": shapes}, cells.keys),
            "shape",
            lambda _, part: self.measure(self.prepare(part, context), context),
        )

    def worst_conditions(self, cells: Sequence[tuple[Any, ...]]) -> list[Condition]:
        """Each line of Condition 4.1 at the cell that misses it most; the constant of Theta (in d)
        is read as 1, that of O (in the learning rate) as 4, and T* as the number of steps."""
        lists = []
        for cell in cells:
            sizes = self.sizes(*cell)
            given = asdict(sizes) | {"d": int(sizes.d), "sigma_0": self.sigma_0}
            lines = condition_4_1(**given, horizon=self.steps)
            rate = condition_4_1(**given, horizon=self.steps, constant=BIG_O)[-1]
            lists.append([*lines[:-1], rate])
        return [worst(line) for line in zip(*lists, strict=True)]
