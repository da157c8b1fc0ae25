"""Error on long-tailed data against L and Gamma (003 Theorem 1, statement 2(b))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, InRange
from rarefy.data.noise_spectrum import Spectrum
from rarefy.measure.tail_draws import TailDraws
from rarefy.measure.tails import CHUNK, CRITERIA
from rarefy.studies.benign.setting import Ratio, Schedule
from rarefy.studies.benign.tails import FEW, TailsExperiment
from rarefy.studies.benign.trial import outputs_of


@dataclass(frozen=True, kw_only=True)
class TailExperiment(TailsExperiment):
    """How fast the error falls towards the tail, for several noise correlation ratios."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": FEW
        | {"gamma": (1.0, 5.0, 10.0)}
        | {"lengths": (0.0, 1.0, 2.0), "samples": 8, "test_samples": 1000},
        "quick": {"seeds": 5, "gamma": (1.0, 2.0, 5.0, 10.0, 20.0)}
        | {"samples": 40, "d": 250, "filters": 40, "test_samples": 20_000},
        "paper": {},
    }

    schedule: tuple[Schedule, ...] = ("trained", "carried on")
    gamma: tuple[Ratio, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
    """noise correlation ratio of all pairs; 1: no class structure in the noise"""
    samples: Count = 100
    """training samples of every class (|S|)"""
    lengths: tuple[float, ...] = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    """L of the tails; 0: all data"""
    shift: Annotated[float, InRange(0, 5)] = 2.0
    """how far, in stds, half of the test samples are shifted towards large outputs; further out
    weights are tiny"""
    test_samples: Count = 60_000
    """fresh samples, most of them in a tail and weighted back"""
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        if len(self.lengths) < 3 or self.lengths[0] != 0 or min(np.diff(self.lengths)) <= 0:
            raise bad_value("lengths", self.lengths, "must be 0 and then rise, three at least")
        if self.test_samples % CHUNK:
            raise bad_value("test_samples", self.test_samples, f"must be a multiple of {CHUNK}")

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.samples}"

    def outputs(self) -> tuple[Output, ...]:
        tail = ("criterion", "length")
        return (
            Output("tail_error", tail, "error of samples beyond L, all classes alike"),
            Output("tail_share", tail, "probability of being beyond L"),
            Output("errors_seen", tail, "errors of equal weight among those seen beyond L"),
            Output("train_loss", ("class",), "training loss at the end, by class"),
            Output("stopped_at", (), "updates until the training loss was small; -1: never"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "criterion": np.array(CRITERIA),
            "length": np.array(self.lengths),
            "class": np.arange(self.classes),
        }

    def cost(self) -> Cost:
        n = self.classes * self.samples
        cost = self.cost_of(n, self.trained_steps)
        # a chunk of test samples, drawn in two halves and joined, and all responses to it
        extra = CHUNK * (4 * self.stored_axes(n) + 4 * self.classes * self.filters)
        return Cost(cost.bytes_per_cell + 8 * extra, cost.steps_per_cell)

    def run(self, schedule: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        noise = Spectrum.joined([self.spectrum(float(gamma)) for gamma in cells.values["gamma"]])
        sizes = [self.samples] * self.classes
        trial = self.without_features(cells, context, noise, sizes, schedule)
        fitted, train_loss = self.fit(trial, schedule, context)
        draw = TailDraws(trial.data, trial.draws, fitted.filters, self.lengths[1:], self.shift)
        tails = self.tails(trial, fitted, self.lengths, draw)
        seen = [tails.by[name].beyond(overall=True) for name in CRITERIA]
        measured = {
            name: torch.stack([getattr(one, part) for one in seen], dim=1)
            for name, part in (
                ("tail_error", "error"),
                ("tail_share", "probability"),
                ("errors_seen", "errors_seen"),
            )
        }
        return outputs_of(fitted, **measured) | {"train_loss": train_loss}
