"""What becomes of the small classes when one class gets more data (003 Sec. 3, after Theorem 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, OneOf
from rarefy.data.noise_spectrum import Spectrum, spectrum_for
from rarefy.measure.tails import CRITERIA
from rarefy.studies.benign.setting import Ratio, Schedule
from rarefy.studies.benign.tails import FEW, TailsExperiment
from rarefy.studies.benign.trial import Trial, outputs_of
from rarefy.sweep.batches import split_by_axis

CONTROLS = ("as stated", "clear", "ratio held", "size held")
"""What happens as "the majority grows". As stated: its samples grow, its noise stays. Clear: the
same, but it has no noise along the other classes' special directions, which Gamma hardly notices.
Ratio held: as clear, but its noise, as strong as ever, turns away from that of the others, so that
their Gamma towards it does not fall. Size held: its samples do not grow, its noise gets stronger,
so that every Gamma changes as in the first."""


@dataclass(frozen=True, kw_only=True)
class MajorityExperiment(TailsExperiment):
    """One class (the last) grows, the others stay small: what the small ones lose in the tail."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma", "control", "majority")
    kinds: ClassVar[int] = 3
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": FEW | {"gamma": (4.0,), "majority": (6, 12, 24), "minority": 6},
        "quick": {"seeds": 8, "gamma": (4.0,), "majority": (25, 75, 150)}
        | {"d": 300, "filters": 20, "test_samples": 5000},
        "paper": {},
    }

    schedule: tuple[Schedule, ...] = ("trained", "carried on")
    gamma: tuple[Ratio, ...] = (2.0, 4.0, 10.0)
    """noise correlation ratio of all pairs while the classes are equally large"""
    control: tuple[Annotated[str, OneOf(CONTROLS)], ...] = CONTROLS
    """what grows as the last class "grows": as stated, clear, ratio held, size held"""
    majority: tuple[Count, ...] = (25, 100, 400)
    """samples of the last class"""
    minority: Count = 25
    """samples of each other class"""
    lengths: tuple[float, ...] = (0.0, 1.0)
    """L of the tails; 0: all data"""
    test_samples: Count = 10_000
    """fresh samples, equally many of every class"""
    trained_steps: Count = 800
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        for size in self.majority:
            if size < self.minority:
                raise bad_value("majority", size, f"must be at least minority={self.minority}")
        if len(self.lengths) < 2 or self.lengths[0] != 0 or min(np.diff(self.lengths)) <= 0:
            raise bad_value("lengths", self.lengths, "must be 0 and then rise")
        self.check_strata(len(self.lengths))

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.minority}"

    def outputs(self) -> tuple[Output, ...]:
        tail = ("criterion", "length", "class")
        return (
            Output("accuracy", tail, "share of fresh samples beyond L that are classified right"),
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
        return self.cost_of(self.total(max(self.majority)), self.trained_steps)

    def total(self, majority: int) -> int:
        """Training samples."""
        return (self.classes - 1) * self.minority + majority

    def sizes(self, control: str, majority: int) -> np.ndarray:
        """|S_k|: (classes,)."""
        last = self.minority if control == "size held" else majority
        return np.array([self.minority] * (self.classes - 1) + [last])

    @property
    def common(self) -> int:
        """Directions, besides the special ones, in which all classes have noise: half of what is
        left, so that a class can turn away from them."""
        return (self.d - 2 * self.classes) // 2

    def noise(self, gamma: float, control: str, majority: int) -> Spectrum:
        """That of all A_k. After the special directions come the common ones that the last class
        keeps, those that it leaves, and those that it has to itself instead."""
        classes, rank = self.classes, self.classes + self.common
        noise = spectrum_for(gamma, self.d, classes, self.base, rank)
        bulk = noise.eigenvalues[..., -1:]
        left, away = bulk.clone(), torch.zeros_like(bulk)
        left[:, -1], away[:, -1] = 0, self.base
        values = torch.cat([noise.eigenvalues, left, away], dim=2)
        # Gamma_kj has |S_j| |A_k^T A_j|_F^2 below
        if control == "size held":
            values[:, -1] *= (majority / self.minority) ** 0.5
        if control in ("clear", "ratio held"):
            values[:, -1, classes : 2 * classes - 1] = 0
        kept = self.common
        if control == "ratio held":
            kept = self.kept(gamma, majority)
        turned = self.common - kept
        count = noise.count.new_tensor([[1.0] * (2 * classes) + [kept, turned, turned]])
        return Spectrum(values, count, noise.silent - turned)

    def kept(self, gamma: float, majority: int) -> int:
        """Common directions that the last class keeps while its ratio is held. In units of base^4
        |A_k^T A_j|_F^2 counts common directions, and the last special one, where others have noise
        too: for a large Gamma or majority that alone may be more than is allowed."""
        noise = self.noise(gamma, "as stated", majority)
        before = float(noise.gram()[0, 0, -1]) / self.base**4
        special = float(noise.eigenvalues[0, -1, 2 * self.classes - 1] / self.base) ** 2
        left = before * self.minority / majority - special
        return int(min(max(round(left), 0), self.common))

    def run(self, schedule: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        pairs = zip(cells.values["control"], cells.values["majority"], strict=True)
        samples = np.array([self.sizes(str(word), int(size)).sum() for word, size in pairs])
        shaped = Cells({**cells.values, "samples": samples}, cells.keys)
        return split_by_axis(
            shaped, "samples", lambda count, part: self._run(schedule, count, part, context)
        )

    def _run(
        self, schedule: str, samples: int, cells: Cells, context: Context
    ) -> dict[str, np.ndarray]:
        trial = self._prepared(schedule, samples, cells, context)
        fitted, train_loss = self.fit(trial, schedule, context)
        tails = self.tails(trial, fitted, self.lengths)
        seen = [tails.by[name].beyond() for name in CRITERIA]
        accuracy = 1 - torch.stack([one.error for one in seen], dim=1).transpose(2, 3)
        return outputs_of(fitted, accuracy=accuracy) | {"train_loss": train_loss}

    def _prepared(self, schedule: str, samples: int, cells: Cells, context: Context) -> Trial:
        """The small classes have the same training samples however large the last one is, and its
        samples at one size are among those at a larger one."""
        columns = [cells.values[name] for name in ("gamma", "control", "majority")]
        rows = [(float(g), str(c), int(s)) for g, c, s in zip(*columns, strict=True)]
        noise = Spectrum.joined([self.noise(*row) for row in rows])
        small = [self.minority] * (self.classes - 1)
        sizes, room = [*small, samples - sum(small)], self.total(max(self.majority))
        return self.without_features(cells, context, noise, sizes, schedule, room)
