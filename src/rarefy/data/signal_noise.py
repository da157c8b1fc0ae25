"""Signal and noise of 002 (Def. 3.1): mu e_y in one patch, Gaussian noise off the signals in the
other."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.core.rng import Draws
from rarefy.data.patches import PatchSamples

LABELS = ("drawn", "balanced")


@dataclass(frozen=True)
class SignalNoise:
    """A signal in one patch and noise in the other (the TopK paper): ``classes`` signals mu e_1 ..
    mu e_T in d dimensions, and noise N(0, sigma_p^2) on the other d - T coordinates.

    Arguments:
        classes, d: how many classes and dimensions.
        mu, sigma: (run,), strength of the signal and std of the noise.
        labels: "drawn" uniformly, as Def. 3.1 has it, or "balanced", as equal as n allows.

    Example:
        >>> draws = rarefy.lab.Draws(range(3))  # three runs
        >>> data = rarefy.lab.SignalNoise(2, 50, mu=draws.per_run(1.0), sigma=draws.per_run(0.5))
        >>> samples = data.sample(draws, 20)
        >>> len(samples), samples.noise.shape  # run, sample, d
        (20, torch.Size([3, 20, 50]))
    """

    classes: int
    d: int
    mu: Tensor
    sigma: Tensor
    labels: str = "drawn"

    def __post_init__(self) -> None:
        check_signal_noise(self.classes, self.d, self.mu, self.sigma, self.labels)

    def sample(
        self, draws: Draws, samples: int, stream: str = "train", step: int = 0
    ) -> PatchSamples:
        """``samples`` samples; ``draws`` has one key per run, or one for all runs together."""
        if samples < 1:
            raise bad_value("samples", samples, "must be at least 1")
        classes, d, like = self.classes, self.d, self.mu
        if self.labels == "drawn":
            labels = draws.integers(f"{stream} labels", classes, (samples,), step)
        else:
            labels = torch.arange(samples, device=like.device) % classes
            labels = labels.expand(len(draws), -1)
        free = draws.normal(f"{stream} noise", (samples, d - classes), step)
        zero = torch.zeros(len(draws), samples, classes, dtype=free.dtype, device=free.device)
        axes = torch.eye(classes, d, dtype=free.dtype, device=free.device)
        return PatchSamples(
            labels=labels,
            noise=torch.cat([zero, free], dim=2),
            features=axes.expand(len(draws), -1, -1),
            noise_scale=self.sigma,
            strength=self.mu[:, None].expand(-1, classes),
        )


def check_signal_noise(
    classes: int, d: int, mu: Tensor, sigma: Tensor, labels: str = "drawn"
) -> None:
    """Refuse values outside the model, by name."""
    if classes < 2:
        raise bad_value("classes", classes, "must be at least 2")
    if classes >= d:
        raise bad_value(
            "classes", classes, f"must be below d={d}: each class has a coordinate of its own"
        )
    for name, values, least in (("mu", mu, "more than 0"), ("sigma", sigma, "at least 0")):
        for value in values.flatten().tolist():
            if not 0 <= value < float("inf") or (name == "mu" and value == 0):
                raise bad_value(name, value, f"must be finite and {least}")
    if labels not in LABELS:
        raise bad_value("labels", labels, f"must be one of {', '.join(LABELS)}")
