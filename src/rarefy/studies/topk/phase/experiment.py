"""Test loss over noise and kept coordinates, with pruned coordinates that may come back and with a
support that is final (002 Fig. 1 and 2, Theorems 4.4 and 4.5, App. I)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, OneOf, Positive
from rarefy.core.precision import PRECISIONS, matrix_products
from rarefy.pruning.masks import keep_largest
from rarefy.studies.topk.setting import TINY, SignalNoiseExperiment, Trial, own_signal
from rarefy.sweep.batches import split_by_axis
from rarefy.train.descent import State
from rarefy.train.patch_classifier import PatchClassifier
from rarefy.train.topk_pruning import READINGS, TopKPruning, check_keep

SHUT = "revive0"
"""Coordinates may come back, but ReLU'(0) = 0, as automatic differentiation has it: a signal's
coordinate at zero then sees no gradient, and only noise can come back."""


@dataclass(frozen=True, kw_only=True)
class PhaseExperiment(SignalNoiseExperiment):
    """The phase diagram of TopK pruning, once for each reading of what "pruned" means."""

    axes: ClassVar[tuple[str, ...]] = ("reading", "sigma", "keep")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "seeds": 2, "sigma": (0.2, 1.0), "keep": (2, 10, 40), "reads": (20, 60)},
        "quick": {"seeds": 2, "sigma": (0.25, 0.5, 0.75, 1.0)}
        | {"keep": (2, 8, 25, 60, 100, 150, 200)}
        | {"steps": 700, "reads": (700,), "test_samples": 2000},
        "paper": {},
        # initial weights far below the first update, as Condition 4.1 asks: then it is the update
        # that decides a fixed support
        "faint": {"sigma": (0.2, 0.4, 0.6, 0.8, 1.0), "keep": (2, 6, 16, 40, 80, 120, 160, 200)}
        | {"sigma_0": 1e-4, "steps": 2000, "reads": (2000,)},
    }

    reading: tuple[Annotated[str, OneOf((*READINGS, SHUT))], ...] = ("revive", SHUT, "fixed")
    """what becomes of a pruned coordinate: revive, revive0, fixed (or random, dense)"""
    sigma: tuple[Positive, ...] = tuple(round(0.01 * i, 2) for i in range(1, 101))
    """noise std sigma_p"""
    keep: tuple[int, ...] = tuple(range(2, 201))
    """coordinates kept of every filter (K)"""
    every: Count = 1
    """updates between two prunings"""
    first: Count = 1
    """update after which pruning begins; a fixed support is chosen then"""
    reads: tuple[Count, ...] = (5000,)
    """numbers of updates after which losses are measured"""
    precision: Annotated[str, OneOf(PRECISIONS)] = "tf32"
    """matrix products on a GPU: float32, or tf32, in which 400 of 400 cells end alike (measured by
    ``bench_topk_gpu.py``)"""
    seeds: Count = 3

    def check(self) -> None:
        super().check()
        for keep in self.keep:
            check_keep(keep, self.d)
        if not self.reads or max(self.reads) > self.steps:
            raise bad_value("reads", self.reads, f"must lie in 1..steps={self.steps}")

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("test_loss", ("read",), "mean cross-entropy on fresh samples"),
            Output("train_loss", ("read",), "training loss before the last update, three digits"),
            Output("test_error", ("read",), "share of fresh samples not classified right"),
            Output("signal_held", (), "filters with their own signal in them at the end, share"),
            Output(
                "first_kept", (), "own signal among the K largest after the first update, share"
            ),
            Output("first_signal", (), "what the first update adds to own signals, mean"),
            Output("first_noise", (), "what the first update adds to noise coordinates, std"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(sorted(set(self.reads)))}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        # cells of one seed share noise, labels and initial filters: one product serves them all
        def of_seed(seed: int, those: Cells) -> dict[str, np.ndarray]:
            return split_by_axis(
                those, "reading", lambda word, part: self._run(word, part, context)
            )

        with matrix_products(self.precision, context.device):
            return split_by_axis(cells, "seed", of_seed)

    def _run(self, reading: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        keep = cells.column("keep", context).long()
        trial = self.setup(cells, context)
        found = self._first_update(trial, keep)
        shape = (self.classes, self.filters, self.d)
        word = "revive" if reading == SHUT else reading
        pruning = TopKPruning(keep, word, shape, self.first, self.every, cells.draws(context))

        def tested(state: State) -> Tensor:
            seen = trial.test(state.parameters["filters"], self.test_samples, context)
            return torch.stack([seen.loss, seen.error, state.loss], dim=1)

        trajectory = self.train(
            trial, context, {"tested": tested}, self.reads, pruning, open_at_zero=reading != SHUT
        )
        test_loss, test_error, train_loss = trajectory.records["tested"].unbind(dim=2)
        own = own_signal(trajectory.parameters["filters"])
        found |= {
            "test_loss": test_loss,
            "test_error": test_error,
            "train_loss": _three_digits(train_loss),
            "signal_held": (own > 0).flatten(1).to(own.dtype).mean(dim=1),
            "nonfinite_step": trajectory.nonfinite_step,
        }
        return {name: value.cpu().numpy() for name, value in found.items()}

    def _first_update(self, trial: Trial, keep: Tensor) -> dict[str, Tensor]:
        """What the first update, not yet pruned, does to signal and noise coordinates; to signals
        of filters that are not negative on them at the start: in the others the ReLU is shut on
        their class's signal, and the first update leaves it as it is."""
        problem = PatchClassifier.of(trial.samples, trial.scale)
        _, gradient = problem.gradients({"filters": trial.initial})
        moved = trial.initial - self.lr * gradient["filters"]
        added = moved - trial.initial
        could = own_signal(trial.initial) >= 0
        kept = own_signal(keep_largest(moved.abs(), keep[:, None, None]))
        count = could.sum(dim=(1, 2))
        return {
            "first_kept": (kept & could).sum(dim=(1, 2)) / count,
            "first_signal": (own_signal(added) * could).sum(dim=(1, 2)) / count,
            "first_noise": added[..., self.classes :].square().mean(dim=(1, 2, 3)).sqrt(),
        }


def _three_digits(values: Tensor) -> Tensor:
    """float32 rounded to eleven bits: what a reader needs, and half the bytes of a stored grid."""
    if values.dtype != torch.float32:
        return values
    return ((values.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)
