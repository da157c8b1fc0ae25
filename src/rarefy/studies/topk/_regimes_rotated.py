"""The training of 002 without pruning, in as few coordinates as it has different vectors.

Off the signals, noise and initial filters are isotropic Gaussian vectors of d - T coordinates.
Turned so that the first training sample lies along the first axis, the second in the plane of the
first two, and so on, they are a lower triangle of standard normals with chi variables on its
diagonal (Bartlett's decomposition): the same law of all inner products, and nothing else enters
descent. The chi variables alone are drawn approximately (``LEAST_FREEDOM``). n samples and T m
filters then need n + T m coordinates instead of d - T, so that d may be as large as Condition 4.1
asks (10^13 and more). What of the initial filters lies across all training noise never moves:
training runs in the first T + n coordinates, and only test samples see the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.nets.patch_cnn import output_scale, responses
from rarefy.train.descent import State, Tracker, Trajectory, descend
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier

LEAST_FREEDOM = 30
"""From here on the cube root law of chi-square (Wilson and Hilferty 1931) is right to a hundredth
of its standard deviation (within three of them)."""


@dataclass(frozen=True)
class Rotated:
    """A batch of runs of one shape (n, T, m), ready to train.

    samples: noise in the first n turned coordinates; initial: filters there, (run, T, m, T + n);
    across: what of the initial filters no training sample sees, (run, T, m, T m); data: the model
    from which test samples come, in all T + n + T m coordinates; lr: (run,).
    """

    samples: PatchSamples
    initial: Tensor
    across: Tensor
    data: SignalNoise
    draws: Draws
    scale: float
    lr: Tensor

    def train(
        self,
        context: Context,
        steps: int,
        trackers: Mapping[str, Tracker] | None = None,
        record: Sequence[int] = (),
        after_update: Callable[[State], None] | None = None,
    ) -> Trajectory:
        """Full-batch descent; gamma and rho are accumulated along ("coefficients")."""
        patches = len(self.samples) + self.samples.classes
        return descend(
            PatchClassifier.of(self.samples, self.scale, context.compiled),
            {
                "filters": self.initial,
                "coefficients": self.initial.new_zeros(*self.initial.shape[:3], patches),
            },
            lambda step: None,
            Sgd(self.lr),
            steps,
            trackers=trackers,
            record=record,
            after_update=after_update,
            context=context,
            guard="loss",
        )

    def test(self, filters: Tensor, samples: int, context: Context) -> Generalisation:
        """Measures of trained filters, (run, T, m, T + n), on fresh samples."""

        def draw(count: int, chunk: int) -> PatchSamples:
            return self.data.sample(self.draws, count, "test", chunk)

        everything = torch.cat([filters, self.across], dim=3)
        return generalisation(everything, draw, samples, self.scale, context.compiled)

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


def rotated(
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
) -> Rotated:
    """Draw training samples and initial filters. d, mu, sigma, lr: (run,), d in float64."""
    check_freedom(int(d.min()), classes, filters, samples)
    rows = classes * filters
    data = SignalNoise(classes, classes + samples + rows, mu, sigma, labels)
    small = SignalNoise(classes, classes + samples, mu, sigma, labels).sample(draws, samples)
    free = d - classes
    turned = small.noise.clone()
    turned[:, :, classes:] = triangle(draws, "noise", samples, free)
    # the projection of a Gaussian vector on the span of others is Gaussian again
    inside = draws.normal("filters", (classes, filters, classes + samples))
    across = triangle(draws, "filters across", rows, free - samples)
    return Rotated(
        samples=PatchSamples(
            small.labels, turned, small.features, small.noise_scale, small.strength
        ),
        initial=inside * sigma_0,
        across=across.reshape(len(draws), classes, filters, rows) * sigma_0,
        data=data,
        draws=draws,
        scale=output_scale(combine, filters),
        lr=lr,
    )


def triangle(draws: Draws, stream: str, rows: int, freedom: Tensor) -> Tensor:
    """``rows`` standard Gaussian vectors of ``freedom`` coordinates, (run,), turned into a lower
    triangle: (run, rows, rows)."""
    below = torch.tril(draws.normal(stream, (rows, rows)), diagonal=-1)
    left = freedom[:, None] - torch.arange(rows, device=freedom.device)
    normal = draws.normal(f"{stream} lengths", (rows,)).to(left.dtype)
    # chi-square is the cube of a normal variable, very nearly
    spread = 2 / (9 * left)
    lengths = torch.sqrt(left * (1 - spread + normal * torch.sqrt(spread)) ** 3)
    return below + torch.diag_embed(lengths.to(below.dtype))


def check_freedom(d: int, classes: int, filters: int, samples: int) -> None:
    least = classes + samples + classes * filters + LEAST_FREEDOM
    if d < least:
        raise bad_value(
            "d", d, f"must be at least T + n + T m + {LEAST_FREEDOM} = {least} to be turned"
        )
