"""What long-tailed samples in the training set do for test accuracy (003 Sec. 3)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy import stats

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.patches import labels_by_size
from rarefy.data.tail_noise import TailSamples, long_tailed
from rarefy.measure.tails import CHUNK, tail_errors
from rarefy.studies.benign.setting import TRAININGS, ClassNoiseExperiment, equal_spectrum
from rarefy.studies.benign.tail_draws import strata_draw
from rarefy.studies.benign.tail_runs import eager, masked, train
from rarefy.studies.benign.trial import Trial
from rarefy.sweep.batches import split_by_axis

MOMENTS = ("free", "held")
"""What more long-tailed samples do to the second moment of the noise along the special direction:
it grows with them, or the direction's eigenvalue is lowered so that it stays the law's own."""
KINDS = ("all", "ordinary", "long-tailed")


@dataclass(frozen=True, kw_only=True)
class MixingExperiment(ClassNoiseExperiment):
    """A training set of fixed size, with few or many long-tailed samples in it."""

    axes: ClassVar[tuple[str, ...]] = ("schedule", "gamma", "moment", "share")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "gamma": (4.0,),
            "share": (0.0, 0.2, 0.5),
            "samples": 8,
            "classes": 3,
            "d": 24,
            "filters": 6,
            "trained_steps": 40,
            "test_samples": 600,
        },
        "quick": {
            "seeds": 5,
            "gamma": (5.0, 10.0),
            "share": (0.0, 0.1, 0.25, 0.5),
            "samples": 25,
            "d": 200,
            "filters": 20,
            "trained_steps": 250,
            "test_samples": 5000,
        },
        "paper": {"seeds": 4},
    }

    schedule: tuple[str, ...] = TRAININGS
    """how the network is trained: printed, trained"""
    gamma: tuple[float, ...] = (2.0, 5.0, 10.0)
    """noise correlation ratio of all pairs under the law's own share of long-tailed samples"""
    moment: tuple[str, ...] = MOMENTS
    """second moment of the training noise along the special direction: free, or held"""
    share: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.35, 0.5)
    """share of long-tailed samples in the training set; the law's own is 0.046"""
    tail: float = 2.0
    """|zeta| along the special direction from which on a sample is long-tailed"""
    samples: int = 100
    """training samples of every class (|S|)"""
    strength: float = 1e-6
    """norm of the features: next to nothing, so that the noise must be learnt"""
    test_samples: int = 20_000
    """fresh samples, half of them long-tailed and weighted back"""
    seeds: int = 10

    def check(self) -> None:
        super().check()
        for name, known in (("schedule", TRAININGS), ("moment", MOMENTS)):
            for value in getattr(self, name):
                if value not in known:
                    raise bad_value(name, value, f"must be one of {', '.join(known)}")
        for gamma in self.gamma:
            if not 1 <= gamma < float("inf"):
                raise bad_value("gamma", gamma, "must be finite and at least 1")
        for share in self.share:
            if not 0 <= share <= 1:
                raise bad_value("share", share, "must be in [0, 1]: it is a share")
        if not 0 < self.tail <= 6:
            raise bad_value("tail", self.tail, "must be more than 0 and at most 6")
        if self.samples < 1:
            raise bad_value("samples", self.samples, "must be at least 1")
        if not 0 <= self.strength < float("inf"):
            raise bad_value("strength", self.strength, "must be finite and at least 0")
        if 0 < self.test_samples % CHUNK < 2 * self.classes:  # one sample a class and stratum
            allowed = f"must be a multiple of {CHUNK}, or at least {2 * self.classes} more than one"
            raise bad_value("test_samples", self.test_samples, allowed)

    @property
    def setting(self) -> str:
        return f"{super().setting} |S|={self.samples}"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("accuracy", ("kind",), "share of fresh samples of a kind classified right"),
            Output("test_loss", ("kind",), "mean cross-entropy of fresh samples of a kind"),
            Output("train_loss", ("class",), "training loss at the end, by class"),
            Output("stopped_at", (), "updates until the training loss was small; -1: never"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"kind": np.array(KINDS), "class": np.arange(self.classes)}

    def cost(self) -> Cost:
        return self.cost_of(self.classes * self.samples, self.trained_steps)

    def spectrum(self, gamma: float) -> Spectrum:
        """That of all A_k for the test."""
        return equal_spectrum(gamma, self.d, self.classes, self.base)

    def second_moment(self, share: float) -> float:
        """E zeta^2 along the special direction with ``share`` of long-tailed samples; the law's own
        share gives 1."""
        beyond = 2 * stats.norm.sf(self.tail)
        there = 2 * self.tail * stats.norm.pdf(self.tail) + beyond  # E zeta^2 [|zeta| >= tail]
        return float((1 - share) * (1 - there) / (1 - beyond) + share * there / beyond)

    def training_spectrum(self, gamma: float, moment: str, share: float) -> Spectrum:
        """That of all A_k for training."""
        noise = self.spectrum(gamma)
        held = moment == "held"
        return noise.with_special(self.second_moment(share) ** -0.5) if held else noise

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def of_seed(seed: int, those: Cells) -> dict[str, np.ndarray]:
            return split_by_axis(
                those, "schedule", lambda word, part: self._run(word, part, eager(context))
            )

        return split_by_axis(cells, "seed", of_seed)

    def _run(self, schedule: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        experiment = self._prepared(cells, context)
        trained = train(self, experiment, schedule, context)

        def draw(count: int, chunk: int) -> TailSamples:
            return strata_draw(experiment.data, experiment.draws, (self.tail,), count, chunk)

        tails = tail_errors(
            trained.filters,
            draw,
            self.test_samples,
            (0.0, self.tail),
            experiment.data.eigenvalues,
            experiment.scale,
        )
        beyond = tails.by["special"].beyond(overall=True)
        below = tails.by["special"].below(overall=True)
        errors = [beyond.error[:, 0], below.error[:, 1], beyond.error[:, 1]]
        losses = [beyond.loss[:, 0], below.loss[:, 1], beyond.loss[:, 1]]
        lost = trained.nonfinite_step
        return {
            "accuracy": masked(1 - torch.stack(errors, dim=1), lost),
            "test_loss": masked(torch.stack(losses, dim=1), lost),
            **trained.outputs(),
        }

    def _prepared(self, cells: Cells, context: Context) -> Trial:
        """Training samples are drawn with a share of long-tailed ones, test samples as ever."""
        columns = [cells.values[name] for name in ("gamma", "moment", "share")]
        rows = [(float(g), str(m), float(s)) for g, m, s in zip(*columns, strict=True)]
        sizes = torch.full((1, self.classes), self.samples, device=context.device)
        strength = torch.full((len(cells),), self.strength, dtype=context.dtype)
        experiment = self.setup(
            cells,
            context,
            spectrum=Spectrum.joined([self.spectrum(row[0]) for row in rows]),
            strength=strength.to(context.device),
            sizes=sizes,
            zeta_axes="rotated",
        )
        data, samples = experiment.data, experiment.samples
        training = Spectrum.joined([self.training_spectrum(*row) for row in rows]).eigenvalues
        table = data.eigenvalues.clone()
        table[..., : 2 * self.classes] = training[..., : 2 * self.classes].to(table)
        tail = long_tailed(
            dataclasses.replace(data, eigenvalues=table),
            experiment.draws,
            labels_by_size(sizes),
            torch.tensor([row[2] for row in rows], dtype=torch.float64),
            self.tail,
        )
        # all but zeta along the special direction is as it was drawn
        label = samples.labels[0]
        axis = data.special_axes().to(label.device)[label]
        noise, sample = samples.noise.clone(), torch.arange(len(samples), device=label.device)
        noise[:, sample, axis] = table[:, label, axis] * tail.special
        return dataclasses.replace(experiment, samples=dataclasses.replace(samples, noise=noise))
