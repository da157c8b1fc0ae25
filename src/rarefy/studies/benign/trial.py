"""A batch of networks of 003: samples and initial filters, how they are trained and tested."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Context
from rarefy.core.rng import Draws
from rarefy.data.class_noise import ClassNoise
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.patches import PatchSamples
from rarefy.measure.generalisation import Generalisation, generalisation, sample_losses, scores_of
from rarefy.train.fitting import FitResult, fit


@dataclass(frozen=True)
class Training:
    """Rate, most steps, and the training loss at which a run stops (0: never). ``relative``: the
    rate is in units of n/(m output_scale^2 tr(A^T A)), the mean trace of a run's classes."""

    lr: float
    steps: int
    stop_loss: float = 0.0
    relative: bool = False

    def rates(self, samples: int, filters: int, scale: float, spectrum: Spectrum) -> Tensor:
        """In plain units, (run or 1,)."""
        trace = spectrum.trace().mean(dim=1)
        if not self.relative:
            return torch.full_like(trace, self.lr)
        return self.lr * samples / (filters * scale**2 * trace)


@dataclass(frozen=True)
class Trial:
    """A batch of runs ready to train. ``data``, ``samples`` and ``initial`` are written in the same
    coordinates, in all d of them or in as many as their inner products need; ``spectrum`` is that
    of the noise in d dimensions. ``form``: as in ``rarefy.train.forms``."""

    data: ClassNoise
    samples: PatchSamples
    spectrum: Spectrum
    initial: Tensor
    draws: Draws
    scale: float
    form: str = "auto"
    precision: str = "float32"

    def fit(self, context: Context, training: Training) -> FitResult:
        """Without steps for runs that stand still: at a small noise correlation ratio a run needs
        ten times the steps of one at a large ratio."""
        return fit(
            self.samples,
            self.initial,
            self.scale,
            self.rates(training),
            training.steps,
            training.stop_loss,
            context,
            self.form,
            self.precision,
        )

    def rates(self, training: Training) -> Tensor:
        """Of every run, in plain units."""
        runs, _, filters, _ = self.initial.shape
        found = training.rates(len(self.samples), filters, self.scale, self.spectrum)
        return found.to(self.initial).expand(runs).contiguous()

    def on_training_samples(self, filters: Tensor) -> tuple[Tensor, Tensor]:
        """Loss and error on the training samples, (run,) each."""
        scores = scores_of(filters, self.samples, self.scale)
        loss, error = sample_losses(scores, self.samples.labels)
        return loss.mean(dim=1), error.mean(dim=1)

    def test(
        self,
        filters: Tensor,
        context: Context,
        samples: int,
        draw: Callable[[int, int], PatchSamples] | None = None,
    ) -> Generalisation:
        """Measures on fresh samples, equally many of every class unless ``draw`` says otherwise."""
        return generalisation(filters, draw or self.fresh, samples, self.scale, context.compiled)

    def fresh(self, count: int, chunk: int) -> PatchSamples:
        """``count`` test samples, class after class."""
        return self.data.sample(self.draws, self.test_labels(count), "test", chunk)

    def test_labels(self, count: int) -> Tensor:
        labels = torch.arange(count, device=self.initial.device) % self.data.classes
        return labels[None]


def eager(context: Context) -> Context:
    """Not compiled: trainings are short, and shapes change from batch to batch."""
    return dataclasses.replace(context, compiled=False)


def outputs_of(fitted: FitResult, **measured: Tensor) -> dict[str, np.ndarray]:
    """What was measured, NaN in runs that did not stay finite, and how each run ended."""
    found = {name: fitted.known(values) for name, values in measured.items()}
    ends = {"stopped_at": fitted.stopped_at, "nonfinite_step": fitted.nonfinite_step}
    return {name: values.detach().cpu().numpy() for name, values in (found | ends).items()}
