"""What the experiments with stored sets share: noise in the patches as an axis, fine-tuning on the
coarse question after training (004 Sec. 6), errors before and after it, and small sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.experiment import AS_CHOSEN, GranularityExperiment, Run
from rarefy.studies.granularity.premises import SMALL
from rarefy.studies.granularity.trial import MAIN_MEASURES, MEASURES, by_measure
from rarefy.sweep.batches import Arrays

TUNED = {
    "tuned_easy_error": "share of fresh easy samples on the wrong side, after fine-tuning",
    "tuned_hard_error": "share of fresh hard samples on the wrong side, after fine-tuning",
}
COUNTS = SMALL
"""A gain or a loss of error counts from this on, one test sample in twenty. The same rule for all
comparisons of labels: paired by seed, differences too small to matter would be certain as well."""
STAGES = ("before", "after")
"""Of fine-tuning; the paper compares networks after it."""
TINY: dict[str, Any] = {
    "seeds": 2,
    "variation": (AS_CHOSEN, "neurons x2"),
    "main_noise": 0.3,
    "subclasses": 2,
    "d": 16,
    "patches": 12,
    "neurons": 8,
    "threshold": 0.6,
    "batch": 16,
    "steps": 10,
    "reads": (4, 10),
    "tune_steps": 4,
    "test_each": 8,
}
QUICK: dict[str, Any] = {
    "variation": (AS_CHOSEN, "hard: no distraction"),
    "main_noise": 0.3,
    "subclasses": 4,
    "d": 48,
    "patches": 16,
    "neurons": 24,
    "threshold": 0.8,
}


@dataclass(frozen=True, kw_only=True)
class StoredSetExperiment(GranularityExperiment):
    """Training samples are drawn once. What tells single samples apart is above all the noise in
    their patches, so its size is an axis. After training, networks are fine-tuned on the coarse
    question."""

    variation: tuple[str, ...] = (
        AS_CHOSEN,
        "patches x2",
        "neurons x1/2",
        "c_b 1.3",
        "patch counts drawn",
        "hard: no distraction",
    )
    """what is changed of the setting; only "as chosen" is run on the whole grid, the others at
    ``main_noise`` and what the study compares there"""
    patch_noise: tuple[NotNegative, ...] = (0.02, 0.15, 0.2)
    """std of the noise in every patch, in the place of sigma"""
    main_noise: float = 0.2
    """the noise at which the setting is varied"""
    subclasses: Count = 8
    """subclasses of each side (k)"""
    reads: tuple[int, ...] = (40, 120)
    """numbers of updates after which the networks are tested"""
    tune_steps: Count = 60
    """updates of fine-tuning on the coarse question after that, with fresh easy samples"""
    d: int = 128
    neurons: Count = 128
    seeds: Count = 20

    def check(self) -> None:
        self.check_reads(self.reads)
        if self.main_noise not in self.patch_noise:
            allowed = f"must be one of patch_noise={self.patch_noise}"
            raise bad_value("main_noise", self.main_noise, allowed)
        for noise in self.patch_noise:
            for variation in self.variation:
                self.at_noise(noise, variation).check_model(self.subclasses)
        self.check_variation(self.variation)

    @property
    def setting(self) -> str:
        return f"{super().setting} k={self.subclasses}"

    def at_noise(self, noise: float, variation: str = AS_CHOSEN) -> Self:
        return replace(self, sigma=float(noise)).varied(variation)

    def measured(self, *dims: str) -> tuple[Output, ...]:
        """``MAIN_MEASURES`` at every read, and ``TUNED``, all with these dimensions."""
        return (
            *(Output(name, (*dims, "read"), MEASURES[name]) for name in MAIN_MEASURES),
            *(Output(name, dims, words) for name, words in TUNED.items()),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(sorted(set(self.reads)))}

    def simulate(self, cells: Cells, context: Context, run: Run | None = None) -> Arrays:
        # samples are drawn once for all updates: on a GPU compiling that would take longer
        on_cpu = context.device.type == "cpu"
        return super().simulate(cells, replace(context, compiled=context.compiled and on_cpu), run)

    def learn_and_tune(
        self, cells: Cells, context: Context, labels: Labels, samples: int
    ) -> dict[str, Tensor]:
        """``MAIN_MEASURES`` (run, read) of training with these labels, ``TUNED`` (run,) of training
        on with clean coarse ones, and the update at which a run was lost (run,).

        Fine-tuning has ``batch`` fresh samples per update whatever the stored set is: all networks
        of a seed are tuned with the same samples.
        """
        trial = self.setup(cells, context, labels, samples)
        before = trial.learn(context, self.steps, self.test_each, self.reads)
        after = trial.fine_tune(
            before.trajectory.parameters,
            self.tune_steps,
            self.batch,
            context=context,
            trackers={"tests": trial.tests(self.test_each)},
        )
        seen = by_measure(after.records["tests"])
        tuned = {name: seen[name.removeprefix("tuned_")][:, -1] for name in TUNED}
        found = before.outputs(MAIN_MEASURES) | tuned
        lost, later = found[NONFINITE_STEP.name], after.nonfinite_step
        later = torch.where(later >= 0, later + self.steps, later)
        return found | {NONFINITE_STEP.name: torch.where(lost >= 0, lost, later)}


def error_of(results: xr.Dataset, kind: str, stage: str) -> xr.DataArray:
    """Error on "easy", "hard" or "mixed" samples at the end of a stage.

    Mixed: a test set of which half is hard. On hard samples alone a coin would do better than a
    network that the traces of the other side mislead; where hard samples are rarer than half, finer
    labels gain less.
    """
    if kind == "mixed":
        return (error_of(results, "easy", stage) + error_of(results, "hard", stage)) / 2
    if stage == "after":
        return results[f"tuned_{kind}_error"]
    return results[f"{kind}_error"].isel(read=-1)
