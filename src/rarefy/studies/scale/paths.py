"""The paths along which ``regimes-at-scale`` looks for a boundary, in any dimension.

    signal   002: from noise memorised to signal learnt, along log10 of n SNR^2/T (S1-S3)
    feature  003 with one kind of noise for all classes (Gamma = 1): from harmful to benign, along
             log10 of x = |S| |u|^4/|A_k^T A_j|_F^2 (B3, B5)
    tail     003 with hardly a feature: from useless to useful noise, along log10 of Gamma, judged
             on samples with |zeta| >= L along their class's special direction (B4, B5)
    side     the same, judged on those that lie on the side to which their class's filters point:
             003 Definition 1 asks for a large response, which only that side can have

A row keeps its draws on the whole path: only scales change. Tail and side are swept together
(``tail_path``): they differ in nothing but the samples that are tested.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.gram_samples import gram_class_noise, gram_signal_noise
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.patches import PatchSamples, labels_by_size
from rarefy.data.signal_noise import SignalNoise
from rarefy.measure.coefficients import accumulated_coefficients
from rarefy.measure.generalisation import Generalisation, generalisation
from rarefy.nets.patch_cnn import output_scale, responses
from rarefy.theory.topk import logit_gain
from rarefy.train.fitting import FitResult, fit
from rarefy.train.patch_coefficients import patch_loss


@dataclass(frozen=True)
class Training:
    """How networks are trained and tested everywhere on a path: parameters of the experiment."""

    filters: int
    sigma_0: float
    lr: float
    steps: int
    epsilon: float
    faint: float
    test_samples: int


@dataclass(frozen=True)
class Measurement:
    """Of each row, (row,): what a network trained at one place of the path shows. gamma, rho: own
    signal and own samples' noise, mean over filters that began on their positive side; the others
    as in 002 Theorems 4.2 and 4.3, NaN on the paths of 003."""

    train_loss: Tensor
    test_loss: Tensor
    test_error: Tensor
    gamma: Tensor
    rho: Tensor
    signal_learnt: Tensor
    noise_learnt: Tensor
    gamma_all: Tensor
    rho_all: Tensor
    noise_active: Tensor
    stopped_at: Tensor
    nonfinite_step: Tensor


class SweepPath(ABC):
    """A batch of rows, (row,), of one shape."""

    def __init__(
        self, training: Training, size: int, classes: int, cells: Cells, context: Context
    ) -> None:
        self.training, self.size, self.classes = training, size, classes
        self.samples, self.context = size * classes, context
        self.draws: Draws = cells.draws(context)
        self.d = cells.column("d", Context(device=context.device, dtype=torch.float64))
        self.scale = output_scale("mean", training.filters)
        self.prepare(cells)

    @abstractmethod
    def prepare(self, cells: Cells) -> None:
        """Draw what stays the same on the whole path."""

    @abstractmethod
    def train(self, place: Tensor) -> tuple[PatchSamples, Tensor, FitResult]:
        """Samples, initial filters and what became of them at ``place``, (row,) in float64."""

    @abstractmethod
    def test(self, filters: Tensor, place: Tensor) -> Generalisation: ...

    def judged(self, found: Measurement) -> Tensor:
        """What turns over along the path, (row,): the error on fresh samples."""
        return found.test_error

    def held(self, samples: PatchSamples, initial: Tensor, fitted: FitResult) -> dict[str, Tensor]:
        """Signal and noise held by the filters: NaN where no theorem speaks of them."""
        names = ("gamma", "rho", "signal_learnt", "noise_learnt", "gamma_all", "rho_all")
        missing = initial.new_full((len(initial),), torch.nan)
        return dict.fromkeys((*names, "noise_active"), missing)

    def at(self, place: Tensor) -> Measurement:
        """Train and test everywhere at once."""
        samples, initial, fitted = self.train(place)
        test = self.test(fitted.filters, place)
        seen = fitted.parameters["responses"]
        loss = patch_loss(seen, samples.scales(), samples.one_hot(), self.scale)
        return Measurement(
            train_loss=fitted.known(loss),
            test_loss=fitted.known(test.loss),
            test_error=fitted.known(test.error),
            **self.held(samples, initial, fitted),
            stopped_at=fitted.stopped_at,
            nonfinite_step=fitted.nonfinite_step,
        )

    def fit(self, samples: PatchSamples, initial: Tensor, speed: Tensor) -> FitResult:
        """``speed``: how fast logits move at rate 1, (row,), so that all rows need about as many
        steps."""
        how = self.training
        rate = (how.lr / (logit_gain(how.filters, self.scale) * speed)).to(initial)
        return fit(samples, initial, self.scale, rate, how.steps, how.epsilon, self.context, "dual")

    def _noise_speed(self, directions: Tensor) -> Tensor:
        """Largest eigenvalue of the noise's Gram matrix over n, in units of its scale squared:
        (sqrt(d) + sqrt(n))^2/n, which is d/n at large d."""
        n = float(self.samples)
        return (torch.sqrt(directions) + n**0.5) ** 2 / n


class SignalPath(SweepPath):
    """The path of 002: signal against noise."""

    def prepare(self, cells: Cells) -> None:
        one = torch.ones(len(cells), dtype=self.context.dtype, device=self.context.device)
        shape, ones = (self.classes, self.training.filters), (one, one)
        self.world = gram_signal_noise(self.draws, self.samples, shape, self.d, *ones, "balanced")

    def judged(self, found: Measurement) -> Tensor:
        """Their loss."""
        return found.test_loss

    def held(self, samples: PatchSamples, initial: Tensor, fitted: FitResult) -> dict[str, Tensor]:
        """gamma and rho over filters that began on the positive side of signal or noise, and the
        extremes that 002's theorems speak of."""
        held = accumulated_coefficients(fitted.parameters["coefficients"], samples)
        one_hot = samples.one_hot()
        own = initial[..., : self.classes]
        signal = torch.diagonal(own, dim1=1, dim2=3).transpose(1, 2) > 0
        noise = _own(responses(initial, samples.noise), one_hot) > 0
        last = fitted.parameters["responses"][..., : len(samples)]
        found = {
            "gamma": _mean(held.own_gamma, signal),
            "rho": _mean(held.own_rho(one_hot), noise),
            "signal_learnt": held.gamma.amax(dim=(2, 3)).amin(dim=1),
            "noise_learnt": held.rho.amax(dim=(2, 3)).amin(dim=1),
            "gamma_all": held.gamma.abs().amax(dim=(1, 2, 3)),
            "rho_all": held.rho.abs().amax(dim=(1, 2, 3)),
            "noise_active": (_own(last, one_hot) > 0).to(held.rho).mean(dim=(1, 2)),
        }
        return {name: fitted.known(value) for name, value in found.items()}

    def sigma(self, place: Tensor) -> Tensor:
        """mu = 1 and n SNR^2/T = 10^place, SNR = mu/(sigma_p sqrt(d))."""
        return torch.sqrt(self.samples / (self.classes * self.d)) * 10 ** (-place / 2)

    def train(self, place: Tensor) -> tuple[PatchSamples, Tensor, FitResult]:
        sigma = self.sigma(place)
        samples = replace(self.world.samples, noise_scale=sigma.to(self.context.dtype))
        speed = 1 / self.classes + sigma**2 * self._noise_speed(self.d)
        initial = self.world.filters * self.training.sigma_0
        return samples, initial, self.fit(samples, initial, speed)

    def test(self, filters: Tensor, place: Tensor) -> Generalisation:
        sigma = self.sigma(place).to(self.context.dtype)
        data: SignalNoise = replace(self.world.data, sigma=sigma)

        def draw(count: int, chunk: int) -> PatchSamples:
            return data.sample(self.draws, count, "test", chunk)

        return generalisation(filters, draw, self.training.test_samples, self.scale)


class NoisePath(SweepPath):
    """What both paths of 003 share."""

    def prepare(self, cells: Cells) -> None:
        sizes = torch.full((1, self.classes), self.size, device=self.context.device)
        self.labels = labels_by_size(sizes)
        self.bulk = self.d - 2 * self.classes
        even = torch.ones_like(self.d)
        norms = even[:, None].expand(-1, self.classes).to(self.context.dtype)
        # drawn once: where all eigenvalues are 1 the noise is zeta itself
        self.even = gram_class_noise(
            self.draws, self.labels, self.training.filters, self.spectrum(even), norms
        )

    def train(self, place: Tensor) -> tuple[PatchSamples, Tensor, FitResult]:
        strength, special = self.scales(place)
        axes = self.even.data.special_axes().to(special.device)
        table = self.even.data.eigenvalues.expand(len(special), -1, -1).clone()
        table[:, torch.arange(self.classes), axes] = special[:, None].to(table)
        norms = strength[:, None].expand(-1, self.classes).to(table)
        self.data = replace(self.even.data, eigenvalues=table, strength=norms)
        samples = self.data.assemble(self.labels, self.even.samples.noise)
        # small against one sample's noise in every dimension, as on the other path
        scale = (self.training.sigma_0 / torch.sqrt(self.d)).to(table)
        initial = self.even.filters * scale[:, None, None, None]
        speed = strength**2 / self.classes + self._noise_speed(self.d)
        speed = speed + (special**2 - 1) / self.classes
        return samples, initial, self.fit(samples, initial, speed)

    def spectrum(self, special: Tensor) -> Spectrum:
        """Eigenvalue 1 everywhere but along each class's special direction, (row,)."""
        rows, classes = len(special), self.classes
        own, axes = special[:, None].expand(-1, classes), special.new_ones(rows, classes, classes)
        axes = torch.diagonal_scatter(axes, own, dim1=1, dim2=2)
        bulk = special.new_ones(rows, classes, 1)
        eigenvalues = torch.cat([torch.zeros_like(axes), axes, bulk], dim=2)
        one = special.new_ones(rows, 2 * classes)
        return Spectrum(eigenvalues, torch.cat([one, self.bulk[:, None]], dim=1))

    @abstractmethod
    def scales(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """Feature norm and special eigenvalue, (row,) each."""

    def test(self, filters: Tensor, place: Tensor) -> Generalisation:
        return generalisation(filters, self.draw, self.training.test_samples, self.scale)

    def draw(self, count: int, chunk: int) -> PatchSamples:
        return self.data.sample(self.draws, self._test_labels(count), "test", chunk)

    def _test_labels(self, count: int) -> Tensor:
        return (torch.arange(count, device=self.labels.device) % self.classes)[None]

    data: ClassNoise


class FeaturePath(NoisePath):
    """Learning by the feature."""

    def scales(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """|u|^4 = x (d - K)/|S|: |A_k^T A_j|_F^2 is the number of noise directions."""
        fourth = 10**place * (self.d - self.classes) / self.size
        return fourth**0.25, torch.ones_like(place)


def _own(seen: Tensor, one_hot: Tensor) -> Tensor:
    """Of responses to samples' noise, (row, classes, m, n), those of its own class, (row, m, n)."""
    return torch.einsum("rkmn,rnk->rmn", seen, one_hot.expand(len(seen), -1, -1))


def _mean(values: Tensor, among: Tensor) -> Tensor:
    flat, there = values.flatten(1), among.flatten(1)
    return torch.where(there, flat, 0.0).sum(dim=1) / there.sum(dim=1)
