"""TopK pruning against cheap remedies at the same setting: random masks, weight decay, early
stopping (002 Theorem 4.4 compares with dense training alone)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, Positive, Whole
from rarefy.studies.topk.baselines.arms import READINGS, Arm, arms
from rarefy.studies.topk.setting import TINY, SignalNoiseExperiment
from rarefy.sweep.batches import Arrays, split_by_axis
from rarefy.train.descent import State
from rarefy.train.topk_pruning import TopKPruning

READS = (5, 10, 20, 50, 100, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000)


@dataclass(frozen=True, kw_only=True)
class BaselinesExperiment(SignalNoiseExperiment):
    """Every method at the knob that a validation set prefers, compared on test samples."""

    axes: ClassVar[tuple[str, ...]] = ("arm", "sigma")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": TINY
        | {"seeds": 2, "arm": arms((3, 10), (0.01, 0.3)), "sigma": (0.2, 1.5)}
        | {"reads": (5, 20, 60), "validation_samples": 60},
        "quick": {"seeds": 3, "arm": arms((4, 16, 64), (0.01, 0.1, 1.0)), "sigma": (0.5, 1.0, 1.5)}
        | {"steps": 400, "reads": (5, 20, 100, 400), "test_samples": 2000},
        "paper": {},
    }

    arm: tuple[str, ...] = arms((4, 16, 64, 128), (0.01, 0.1, 1.0))
    """method and knob: dense, revive-K, revive0-K, fixed-K, random-K, decay-LAMBDA"""
    sigma: tuple[Positive, ...] = (1.0,)
    """noise std sigma_p; 1 is the loudest of the paper's figure, where dense training fails"""
    reads: tuple[Whole, ...] = READS
    """numbers of updates after which losses are measured: early stopping may stop at any of them,
    all other methods train to the last, which must be ``steps``"""
    validation_samples: Count = 200
    """fresh samples by whose loss knobs are chosen"""
    seeds: Count = 20

    def check(self) -> None:
        super().check()
        seen = set()
        for word in self.arm:
            arm = self._arm(word)
            if arm in seen:
                raise bad_value("arm", word, "is there twice")
            seen.add(arm)
        if "dense" not in self.arm or not any(word.startswith(READINGS) for word in self.arm):
            complaint = "must have dense, and a revive-K or fixed-K to compare"
            raise bad_value("arm", self.arm, complaint)
        if not self.reads or max(self.reads) != self.steps:
            complaint = f"must lie in 0..steps={self.steps} and have steps itself"
            raise bad_value("reads", self.reads, complaint)

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("validation_loss", ("read",), "mean cross-entropy on the validation samples"),
            Output("test_loss", ("read",), "mean cross-entropy on the test samples"),
            Output("test_error", ("read",), "share of test samples not classified right"),
            Output("train_loss", ("read",), "training loss before the last update"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(sorted(set(self.reads)))}

    def simulate(self, cells: Cells, context: Context) -> Arrays:
        def run(those: Cells) -> Arrays:
            slopes = [self._arm(word).slope_at_zero for word in those.values["arm"]]
            told = Cells({**those.values, "slope": np.array(slopes)}, those.keys)
            return split_by_axis(told, "slope", lambda at_0, part: self._run(at_0, part, context))

        return self.by_seed(cells, context, run)

    def parsed(self, results: xr.Dataset) -> list[Arm]:
        """The arms of results."""
        return [self._arm(word) for word in results["arm"].values]

    def _arm(self, word: object) -> Arm:
        return Arm.parse(str(word), self.d, self.lr)

    def _run(self, slope_at_zero: int, cells: Cells, context: Context) -> Arrays:
        trial = self.setup(cells, context)
        each = [self._arm(word) for word in cells.values["arm"]]
        pruning = TopKPruning(
            torch.tensor([arm.keep for arm in each], device=trial.initial.device),
            [arm.reading for arm in each],
            (self.classes, self.filters, self.d),
            draws=trial.draws,
        )

        def measured(state: State) -> Tensor:
            filters = state.parameters["filters"]
            chosen_by = trial.test(filters, self.validation_samples, context, "validation")
            seen = trial.test(filters, self.test_samples, context)
            return torch.stack([chosen_by.loss, seen.loss, seen.error, state.loss], dim=1)

        trajectory = self.train(
            trial,
            context,
            {"measured": measured},
            self.reads,
            pruning,
            weight_decay=trial.initial.new_tensor([arm.decay for arm in each]),
            open_at_zero=slope_at_zero == 1,
        )
        names = [output.name for output in self.outputs()]
        found = dict(zip(names, trajectory.records["measured"].unbind(dim=2), strict=True))
        found["nonfinite_step"] = trajectory.nonfinite_step
        return {name: value.cpu().numpy() for name, value in found.items()}
