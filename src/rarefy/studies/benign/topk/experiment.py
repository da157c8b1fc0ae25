"""Networks that live on memorised noise (003), pruned while they train (002 Sec. 3)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, OneOf, Rule
from rarefy.core.precision import matrix_products
from rarefy.data.class_noise import rotation
from rarefy.data.noise_spectrum import Spectrum
from rarefy.data.patches import PatchSamples
from rarefy.measure.tail_draws import strata_draw
from rarefy.measure.tails import tail_errors
from rarefy.studies.benign.featureless import FeaturelessExperiment
from rarefy.studies.benign.setting import TINY, Ratio
from rarefy.studies.benign.trial import Trial, eager
from rarefy.sweep.batches import split_by_axes
from rarefy.train.descent import descend
from rarefy.train.fitting import StopAtLoss
from rarefy.train.optimisers import Sgd
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import TopKPruning

BASES = ("rotated", "aligned")
"""Where the special directions lie. Rotated: as in 003 Sec. 5.1, U a random unitary matrix, so that
each is spread over all coordinates. Aligned: each is a coordinate."""
KINDS = ("all", "long-tailed")
TRAINING = "trained"
KeepRatio = Annotated[float, Rule("must be more than 0 and at most 1", lambda v: 0 < v <= 1)]


@dataclass(frozen=True, kw_only=True)
class TopKExperiment(FeaturelessExperiment):
    """Of every filter only the K coordinates of largest magnitude stay after each update."""

    axes: ClassVar[tuple[str, ...]] = ("basis", "reading", "gamma", "keep")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY
        | {"gamma": (1.0, 100.0), "keep": (1.0, 0.5, 0.1), "samples": 8}
        | {"trained_steps": 30, "test_samples": 600},
        "quick": {"seeds": 5, "gamma": (10.0, 1400.0), "keep": (1.0, 0.2, 0.05)}
        | {"samples": 20, "d": 200, "filters": 20, "test_samples": 2000},
        "paper": {},
    }

    basis: tuple[Annotated[str, OneOf(BASES)], ...] = BASES
    """where the classes' special directions lie: rotated against the coordinates, or on them"""
    reading: tuple[Annotated[str, OneOf(("revive", "fixed", "random"))], ...] = ("revive", "fixed")
    """pruned coordinates may come back (revive), or the support is chosen after the first update
    (fixed) or at random, for good"""
    gamma: tuple[Ratio, ...] = (1.0, 10.0, 100.0, 1400.0)
    """noise correlation ratio Gamma, the same for all pairs of classes"""
    keep: tuple[KeepRatio, ...] = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
    """share of a filter's coordinates that is kept"""
    tail: Annotated[
        float, Rule("must be more than 0 and at most 6", lambda value: 0 < value <= 6)
    ] = 2.0
    """|zeta| along the special direction from which on a test sample is long-tailed"""
    samples: Count = 100
    """training samples of every class (|S|)"""
    trained_steps: Count = 100
    test_samples: Count = 5000
    """fresh samples, half of them long-tailed and weighted back"""
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        if any(self.without_vectors(law) for law in self.laws):
            raise bad_value("form", self.form, "coordinates are pruned: must be primal")

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("accuracy", ("kind",), "share of fresh samples of a kind classified right"),
            Output("train_loss", (), "training loss before the last update"),
            Output("special", (), "share of the filters' squared length along special directions"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"kind": np.array(KINDS)}

    def cost(self) -> Cost:
        found = self.cost_of(self.classes * self.samples, self.trained_steps)
        return Cost(2 * found.bytes_per_cell, found.steps_per_cell)

    def kept(self, share: float) -> int:
        """K, 1 at least."""
        return max(1, round(share * self.d))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        def run(seed: int, basis: str, part: Cells) -> dict[str, np.ndarray]:
            return self._run(basis, part, eager(context))

        with matrix_products(self.precision, context.device):
            return split_by_axes(cells, ("seed", "basis"), run)

    def _run(self, basis: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        noise = Spectrum.joined([self.spectrum(float(gamma)) for gamma in cells.values["gamma"]])
        sizes = [self.samples] * self.classes
        trial = self.without_features(cells, context, noise, sizes, TRAINING)
        turn = trial.data.rotation
        start = trial.initial if turn is None else trial.initial @ turn.to(trial.initial).mT
        turn = (rotation(trial.draws, self.d) if turn is None else turn).to(start)
        rotated = basis == "rotated"
        samples = in_the_space(trial.samples, turn) if rotated else trial.samples
        filters, loss, lost = self._train(trial, samples, start, cells, context)
        # tested in the axes of the noise
        accuracy, special = self._test(trial, filters @ turn if rotated else filters)
        found = {"accuracy": accuracy, "train_loss": loss, "special": special}
        gone = lost >= 0
        found = {
            name: value.masked_fill(gone.reshape(-1, *(1,) * (value.dim() - 1)), torch.nan)
            for name, value in found.items()
        }
        return {name: v.cpu().numpy() for name, v in (found | {"nonfinite_step": lost}).items()}

    def _train(
        self, trial: Trial, samples: PatchSamples, start: Tensor, cells: Cells, context: Context
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Filters, training loss, and the step at which a run stopped being finite."""
        keep = torch.tensor([self.kept(float(share)) for share in cells.values["keep"]])
        words = [
            "dense" if k == self.d else w for k, w in zip(keep, self._words(cells), strict=True)
        ]
        shape = (self.classes, self.filters, self.d)
        pruning = TopKPruning(keep.to(start.device), words, shape, draws=cells.draws(context))
        stopping = StopAtLoss(trial.rates(self.training(TRAINING)), self.stop_loss)
        trajectory = descend(
            PatchClassifier.of(samples, trial.scale, context.compiled),
            {"filters": start},
            lambda step: None,
            Sgd(stopping.lr),
            self.trained_steps,
            trackers={"loss": lambda state: state.loss},
            after_update=stopping if self.stop_loss > 0 else None,
            pruning=pruning,
            context=context,
            guard="loss",
        )
        filters, lost = trajectory.parameters["filters"], trajectory.nonfinite_step
        return filters, trajectory.records["loss"][:, 0], lost

    def _words(self, cells: Cells) -> list[str]:
        return [str(word) for word in cells.values["reading"]]

    def _test(self, trial: Trial, filters: Tensor) -> tuple[Tensor, Tensor]:
        """Accuracy by kind, and how much of the filters lies along special directions."""

        def draw(count: int, chunk: int) -> Any:
            return strata_draw(trial.data, trial.draws, (self.tail,), count, chunk)

        lengths, table = (0.0, self.tail), trial.data.eigenvalues
        tails = tail_errors(filters, draw, self.test_samples, lengths, table, trial.scale)
        error = tails.by["special"].beyond(overall=True).error
        own = trial.data.special_axes().to(filters.device)
        along = filters[:, torch.arange(self.classes), :, own].square().sum(dim=(0, 2))
        return 1 - error, along / filters.square().sum(dim=(1, 2, 3))


def in_the_space(samples: PatchSamples, turn: Tensor) -> PatchSamples:
    """Samples written in the coordinates of the space; turn: (1, d, d), its columns the axes of the
    noise."""
    noise, features = (part @ turn[0].mT for part in (samples.noise, samples.features))
    return dataclasses.replace(samples, noise=noise, features=features)
