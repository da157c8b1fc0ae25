"""The training of 002 without pruning, in any dimension: a batch of it, and how it begins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.gram_samples import gram_signal_noise
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.nets.patch_cnn import initial_filters, output_scale, responses
from rarefy.train.descent import State, Tracker, Trajectory
from rarefy.train.forms import check_form, train_unpruned

PRIMAL_NUMBERS = 2 * 10**8
"""Coordinates of one run's filters and samples that the primal form will hold."""


@dataclass(frozen=True)
class Unpruned:
    """A batch of runs of one shape (n, T, m), ready to train; ``initial``: (run, T, m, axis), in
    the coordinates of ``samples``; lr: (run,)."""

    data: SignalNoise
    samples: PatchSamples
    initial: Tensor
    draws: Draws
    scale: float
    lr: Tensor
    form: str

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

    def test(self, filters: Tensor, samples: int, context: Context) -> Generalisation:
        """Measures of trained filters on fresh samples."""

        def draw(count: int, chunk: int) -> PatchSamples:
            return self.data.sample(self.draws, count, "test", chunk)

        return generalisation(filters, draw, samples, self.scale, context.compiled)

    def seen_signal(self) -> Tensor:
        """Filters that begin on the positive side of their own signal, M_jj: (run, T, m)."""
        classes = self.initial.shape[1]
        own = torch.diagonal(self.initial[..., :classes], dim1=1, dim2=3).transpose(1, 2)
        return own > 0

    def seen_noise(self, filters: Tensor | None = None) -> Tensor:
        """Filters of a sample's class on the positive side of its noise, (run, m, n); as they
        begin, N_(y_i, i), unless trained ``filters`` are given."""
        response = responses(self.initial if filters is None else filters, self.samples.noise)
        return torch.einsum("rkmn,rnk->rmn", response, self.samples.one_hot()) > 0


def unpruned(
    draws: Draws,
    *,
    classes: int,
    filters: int,
    samples: int,
    d: Tensor,
    mu: Tensor,
    sigma: Tensor,
    sigma_0: float,
    lr: Tensor,
    combine: str = "mean",
    labels: str = "balanced",
    form: str = "auto",
) -> Unpruned:
    """Draw training samples and initial filters. d, mu, sigma, lr: (run,), d in float64.

    "auto" and "dual" draw no vectors of d coordinates, so that runs may differ in d; "primal" does,
    and wants one d for all.
    """
    check_form(form)
    scale = output_scale(combine, filters)
    if form != "primal":
        world = gram_signal_noise(draws, samples, (classes, filters), d, mu, sigma, labels)
        return Unpruned(
            world.data, world.samples, world.filters * sigma_0, draws, scale, lr, "dual"
        )
    size = int(d[0].item())
    data = SignalNoise(classes, size, mu, sigma, labels)
    start = initial_filters(draws, classes, filters, size) * sigma_0
    return Unpruned(data, data.sample(draws, samples), start, draws, scale, lr, form)


def check_dimension(d: float, classes: int, filters: int, samples: int, form: str) -> None:
    """Refuse a d that signals leave no room in, or that the primal form cannot hold."""
    check_form(form)
    if not d > classes:
        raise bad_value("d", d, f"must be above the number of classes, {classes}")
    most = PRIMAL_NUMBERS // (classes * filters + samples)
    if form == "primal" and d > most:
        raise bad_value(
            "d", d, f"with --form primal at most {most:g}: vectors are stored; use dual"
        )
