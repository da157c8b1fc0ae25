"""The data models of 002 and 003 without their vectors: samples and initial filters in turned
coordinates (``rarefy.data.bartlett``), whose cost does not depend on d.

Directions along which nothing distinguishes one from another are drawn together and turned: the
noise of the n training samples first, then the filters, which see those n axes and axes of their
own. The others (signals, features, special directions) stay as they are. All inner products have
the law they have in d dimensions, hence all training has, and fresh samples, which show the filters
independent normal numbers along every axis. It takes Gaussian noise and Gaussian filters: other
laws do not look the same from all sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.bartlett import bartlett_factor, gaussian_in_span
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.patches import PatchSamples
from rarefy.data.signal_noise import SignalNoise, check_signal_noise

Model = TypeVar("Model", SignalNoise, ClassNoise)


@dataclass(frozen=True)
class GramSamples(Generic[Model]):
    """data: the model in turned coordinates, for fresh samples; samples: those of training;
    filters: standard Gaussian ones, (run, classes, m, axis), to be multiplied by sigma_0."""

    data: Model
    samples: PatchSamples
    filters: Tensor


def gram_signal_noise(
    draws: Draws,
    samples: int,
    filters: tuple[int, int],
    d: Tensor,
    mu: Tensor,
    sigma: Tensor,
    labels: str = "drawn",
) -> GramSamples[SignalNoise]:
    """002 Def. 3.1 in any d, (run,) in float64; filters: (classes, m); mu, sigma: (run,)."""
    classes = filters[0]
    check_signal_noise(classes, int(d.min().item()), mu, sigma, labels)
    bulk = _block(draws, "turned", samples, filters, d - classes)
    width = bulk.noise.shape[2]
    data = SignalNoise(classes, classes + width, mu, sigma, labels)
    # its own draw gives labels and features; the noise is put in its place
    drawn = SignalNoise(classes, classes + 1, mu, sigma, labels).sample(draws, samples)
    along = draws.normal("turned filters along signals", (*filters, classes))
    noise = bulk.noise
    zero = noise.new_zeros(len(noise), samples, classes)
    axes = torch.eye(classes, classes + width, dtype=noise.dtype, device=noise.device)
    return GramSamples(
        data=data,
        samples=PatchSamples(
            labels=drawn.labels.expand(len(noise), -1),
            noise=torch.cat([zero, noise], dim=2),
            features=axes.expand(len(noise), -1, -1),
            noise_scale=drawn.noise_scale,
            strength=drawn.strength,
        ),
        filters=torch.cat([along.expand(len(bulk.filters), -1, -1, -1), bulk.filters], dim=3),
    )


def gram_class_noise(
    draws: Draws,
    labels: Tensor,
    filters: int,
    spectrum: Spectrum,
    strength: Tensor,
    room: int | None = None,
) -> GramSamples[ClassNoise]:
    """003 Sec. 2 with noise of any ``spectrum``; labels: (run or 1, n); filters: m; strength:
    (run, classes). Features and special directions stay as they are; silent ones are left out: no
    sample ever shows what the filters have there.

    room: draw so many samples, n or more, and take the first n. With the same room, training sets
    of different sizes have the same axes, and so the same filters and fresh samples.
    """
    classes, samples = spectrum.classes, labels.shape[1]
    room = samples if room is None else room
    if room < samples:
        raise bad_value("room", room, f"must be at least the number of samples, {samples}")
    count = spectrum.count.to(strength.device, torch.float64)
    eigenvalues = spectrum.eigenvalues.to(strength)
    noise, rows, table = [], [], []
    # what is drawn must not depend on the other runs of a batch: kinds are never left out by value
    for kind in range(eigenvalues.shape[2]):
        if kind < 2 * classes:
            noise.append(draws.normal(f"turned kind {kind}", (room, 1)))
            rows.append(draws.normal(f"turned filters kind {kind}", (classes, filters, 1)))
        else:
            stream = f"turned kind {kind}"
            block = _block(draws, stream, room, (classes, filters), count[:, kind])
            noise.append(block.noise)
            rows.append(block.filters)
        table.append(eigenvalues[:, :, kind : kind + 1].expand(-1, -1, noise[-1].shape[2]))
    groups = max(len(part) for part in noise)
    zeta = torch.cat([part.expand(groups, -1, -1) for part in noise], dim=2)
    data = ClassNoise(torch.cat(table, dim=2), strength)
    data.check_labels(labels)
    return GramSamples(
        data=data,
        samples=data.assemble(labels, zeta[:, :samples]),
        filters=torch.cat([part.expand(groups, -1, -1, -1) for part in rows], dim=3),
    )


@dataclass(frozen=True)
class _Block:
    """Standard Gaussian noise, (run, n, axis), and filters, (run, classes, m, axis)."""

    noise: Tensor
    filters: Tensor


def _block(
    draws: Draws, stream: str, samples: int, filters: tuple[int, int], freedom: Tensor
) -> _Block:
    """Noise and filters along ``freedom``, (run,), directions that are all alike; none is 0."""
    classes, m = filters
    noise = bartlett_factor(draws, f"{stream} noise", samples, freedom.clamp(min=1))
    noise = (noise * (freedom > 0)[:, None, None]).to(draws.dtype)
    seen = gaussian_in_span(draws, f"{stream} filters", filters, noise.shape[2], freedom)
    beyond = freedom - samples
    # where no axis is left, one stands in and is put out
    across = bartlett_factor(draws, f"{stream} filters across", classes * m, beyond.clamp(min=1))
    across = (across * (beyond > 0)[:, None, None]).to(draws.dtype)
    across = across.reshape(len(across), classes, m, classes * m)
    found = torch.cat([seen.expand(len(across), -1, -1, -1), across], dim=3)
    return _Block(torch.nn.functional.pad(noise, (0, classes * m)), found)


def check_gaussian(law: str, initialisation: str) -> None:
    """Refuse what cannot be turned, for studies that offer both forms."""
    for name, value in (("law", law), ("initialisation", initialisation)):
        if value != "gaussian":
            raise bad_value(
                name,
                value,
                "without vectors only gaussian: other laws change when turned; use --form primal",
            )
