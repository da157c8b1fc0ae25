"""What long-tailed samples in the training set do for test accuracy (003 Sec. 3)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from scipy import special

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count, OneOf, Rule, Share
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.tail_noise import long_tailed
from rarefy.studies.benign.setting import Ratio, Schedule
from rarefy.studies.benign.tails import FEW, TailsExperiment
from rarefy.studies.benign.trial import Trial, outputs_of

MOMENTS = ("free", "held")
"""What more long-tailed samples do to the second moment of the noise along the special direction:
it grows with them, or the direction's eigenvalue is lowered so that it stays the law's own."""
KINDS = ("all", "ordinary", "long-tailed")


@dataclass(frozen=True, kw_only=True)
class MixingExperiment(TailsExperiment):
    """A training set of fixed size, with few or many long-tailed samples in it."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma", "moment", "share")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": FEW | {"gamma": (4.0,), "share": (0.0, 0.2, 0.5), "samples": 8},
        "quick": {"seeds": 5, "gamma": (5.0, 10.0), "share": (0.0, 0.1, 0.25, 0.5)}
        | {"samples": 25, "d": 200, "filters": 20, "test_samples": 5000},
        "paper": {},
    }

    schedule: tuple[Schedule, ...] = ("trained", "carried on")
    gamma: tuple[Ratio, ...] = (2.0, 5.0, 10.0)
    """noise correlation ratio of all pairs under the law's own share of long-tailed samples"""
    moment: tuple[Annotated[str, OneOf(MOMENTS)], ...] = MOMENTS
    """second moment of the training noise along the special direction: free, or held"""
    share: tuple[Share, ...] = (0.0, 0.1, 0.25, 0.5)
    """share of long-tailed samples in the training set; the law's own is 0.046"""
    tail: Annotated[
        float, Rule("must be more than 0 and at most 6", lambda value: 0 < value <= 6)
    ] = 2.0
    """|zeta| along the special direction from which on a sample is long-tailed"""
    samples: Count = 100
    """training samples of every class (|S|)"""
    test_samples: Count = 20_000
    """fresh samples, half of them long-tailed and weighted back"""
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        self.check_strata(2)

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.samples}"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("accuracy", ("kind",), "share of fresh samples of a kind classified right"),
            Output("train_loss", ("class",), "training loss at the end, by class"),
            Output("stopped_at", (), "updates until the training loss was small; -1: never"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"kind": np.array(KINDS), "class": np.arange(self.classes)}

    def cost(self) -> Cost:
        return self.cost_of(self.classes * self.samples, self.trained_steps)

    def second_moment(self, share: float) -> float:
        """E zeta^2 along the special direction with ``share`` of long-tailed samples; the law's own
        share gives 1."""
        beyond = 2 * special.ndtr(-self.tail)
        density = math.exp(-(self.tail**2) / 2) / math.sqrt(2 * math.pi)
        there = 2 * self.tail * density + beyond  # E zeta^2 [|zeta| >= tail]
        return float((1 - share) * (1 - there) / (1 - beyond) + share * there / beyond)

    def training_spectrum(self, gamma: float, moment: str, share: float) -> Spectrum:
        """That of all A_k for training."""
        noise = self.spectrum(gamma)
        held = moment == "held"
        return noise.with_special(self.second_moment(share) ** -0.5) if held else noise

    def run(self, schedule: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        trial = self._prepared(schedule, cells, context)
        fitted, train_loss = self.fit(trial, schedule, context)
        found = self.tails(trial, fitted, (0.0, self.tail)).by["special"]
        beyond, below = found.beyond(overall=True), found.below(overall=True)
        errors = [beyond.error[:, 0], below.error[:, 1], beyond.error[:, 1]]
        accuracy = 1 - torch.stack(errors, dim=1)
        return outputs_of(fitted, accuracy=accuracy) | {"train_loss": train_loss}

    def _prepared(self, schedule: str, cells: Cells, context: Context) -> Trial:
        """Training samples are drawn with a share of long-tailed ones, test samples as ever."""
        columns = [cells.values[name] for name in ("gamma", "moment", "share")]
        rows = [(float(g), str(m), float(s)) for g, m, s in zip(*columns, strict=True)]
        law = Spectrum.joined([self.spectrum(row[0]) for row in rows])
        sizes = [self.samples] * self.classes
        experiment = self.without_features(cells, context, law, sizes, schedule)
        data, samples = experiment.data, experiment.samples
        training = Spectrum.joined([self.training_spectrum(*row) for row in rows]).eigenvalues
        table = data.eigenvalues.clone()
        table[..., : 2 * self.classes] = training[..., : 2 * self.classes].to(table)
        tail = long_tailed(
            dataclasses.replace(data, eigenvalues=table),
            experiment.draws,
            experiment.samples.labels,
            torch.tensor([row[2] for row in rows], dtype=torch.float64),
            self.tail,
        )
        # all but zeta along the special direction is as it was drawn
        label = samples.labels[0]
        axis = data.special_axes().to(label.device)[label]
        noise, sample = samples.noise.clone(), torch.arange(len(samples), device=label.device)
        noise[:, sample, axis] = table[:, label, axis] * tail.special
        return dataclasses.replace(experiment, samples=dataclasses.replace(samples, noise=noise))
