"""Test loss over noise and kept coordinates, with pruned coordinates that may come back and with a
support that is final (002 Fig. 1 and 2, Theorems 4.4 and 4.5, App. I)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.parameters import Count, OneOf, Positive
from rarefy.core.precision import PRECISIONS, matrix_products
from rarefy.studies.topk.setting import TINY, SignalNoiseExperiment, Trial, own_signal
from rarefy.sweep.batches import Arrays, split_by_axis
from rarefy.train.descent import State
from rarefy.train.optimisers import Rate, per_run
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import READINGS, TopKPruning, check_keep

SHUT = "revive0"
"""Coordinates may come back, but ReLU'(0) = 0, as automatic differentiation has it: a signal's
coordinate at zero then sees no gradient, and only noise can come back."""
PRIMARY = "revive"
"""The paper's algorithm as Sec. 3 writes it: set to zero, go on with the descent, ReLU'(0) = 1.
That signals are "irreversibly removed" (Sec. 5.2) is said of what follows, not of a rule."""
READS_AS = {
    "revive": "pruned coordinates may come back",
    SHUT: "may come back, ReLU'(0) = 0",
    "fixed": "the first support is final",
    "random": "a random support",
    "dense": "nothing is pruned",
}


@dataclass(frozen=True, kw_only=True)
class PhaseExperiment(SignalNoiseExperiment):
    """The phase diagram of TopK pruning, once for each reading of what "pruned" means."""

    axes: ClassVar[tuple[str, ...]] = ("reading", "sigma", "keep")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "seeds": 2, "sigma": (0.2, 1.0), "keep": (2, 10, 40)},
        "quick": {"seeds": 2, "reading": ("revive", "fixed"), "sigma": (0.25, 0.5, 1.0)}
        | {"keep": (2, 25, 60, 100, 200), "steps": 700, "test_samples": 2000},
        "paper": {},
        # what the paper leaves open, each with the rest as it is
        "every50": {"seeds": 10, "reading": ("revive",), "every": 50},
        "mean": {"seeds": 5, "reading": ("revive",), "combine": "mean"}
        | {"sigma": (0.2, 0.4, 0.6, 0.8, 1.0), "keep": (2, 20, 47, 83, 119, 164, 200)},
    }

    reading: tuple[Annotated[str, OneOf((*READINGS, SHUT))], ...] = ("revive", SHUT, "fixed")
    """what becomes of a pruned coordinate: revive, revive0, fixed (or random, dense)"""
    sigma: tuple[Positive, ...] = tuple(round(0.05 * i, 2) for i in range(1, 21))
    """noise std sigma_p; the paper has every 0.01 from 0.01 to 1"""
    keep: tuple[int, ...] = tuple(range(2, 201, 9))
    """coordinates kept of every filter (K); the paper has every one from 2 to 200"""
    every: Count = 1
    """updates between two prunings"""
    first: Count = 1
    """update after which pruning begins; a fixed support is chosen then"""
    precision: Annotated[str, OneOf(PRECISIONS)] = "tf32"
    """matrix products on a GPU: float32, or tf32, in which 400 of 400 cells end alike (measured by
    ``bench_topk_gpu.py``)"""
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        for keep in self.keep:
            check_keep(keep, self.d)

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_loss", (), "mean cross-entropy on fresh samples"),
            Output("train_loss", (), "training loss before the last update"),
            Output("first_signal", (), "what the first update adds to own signals, mean"),
            Output("first_noise", (), "what the first update adds to noise coordinates, std"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def simulate(self, cells: Cells, context: Context) -> Arrays:
        def run(those: Cells) -> Arrays:
            return split_by_axis(
                those, "reading", lambda word, part: self._run(word, part, context)
            )

        with matrix_products(self.precision, context.device):
            return self.by_seed(cells, context, run)

    def rate(self, sigma: Tensor, keep: Tensor) -> Rate:
        """Learning rate of cells, (run,) each."""
        return self.lr

    def _run(self, reading: str, cells: Cells, context: Context) -> Arrays:
        keep = cells.column("keep", context).long()
        trial = self.setup(cells, context)
        lr = self.rate(cells.column("sigma", context), keep)
        found = self._first_update(trial, lr)
        shape = (self.classes, self.filters, self.d)
        word = "revive" if reading == SHUT else reading
        draws, compiled = cells.draws(context), context.compiled
        pruning = TopKPruning(keep, word, shape, self.first, self.every, draws, compiled)

        def tested(state: State) -> Tensor:
            seen = trial.test(state.parameters["filters"], self.test_samples, context)
            return torch.stack([seen.loss, state.loss], dim=1)

        trajectory = self.train(
            trial,
            context,
            {"tested": tested},
            (self.steps,),
            pruning,
            open_at_zero=reading != SHUT,
            lr=lr,
        )
        test_loss, train_loss = trajectory.records["tested"][:, 0].unbind(dim=1)
        found |= {
            "test_loss": test_loss,
            "train_loss": train_loss,
            "nonfinite_step": trajectory.nonfinite_step,
        }
        return {name: value.cpu().numpy() for name, value in found.items()}

    def _first_update(self, trial: Trial, lr: Rate) -> dict[str, Tensor]:
        """What the first update, not yet pruned, does to signal and noise coordinates; to signals
        of filters that are not negative on them at the start: in the others the ReLU is shut on
        their class's signal, and the first update leaves it as it is."""
        problem = PatchClassifier.of(trial.samples, trial.scale)
        _, gradient = problem.gradients({"filters": trial.initial})
        added = -per_run(lr, trial.initial) * gradient["filters"]
        could = own_signal(trial.initial) >= 0
        return {
            "first_signal": (own_signal(added) * could).sum(dim=(1, 2)) / could.sum(dim=(1, 2)),
            "first_noise": added[..., self.classes :].square().mean(dim=(1, 2, 3)).sqrt(),
        }
