"""Labels ever finer, down to one per sample (004 Sec. 6.2 and 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.stored_sets import QUICK, TINY, StoredSetExperiment


@dataclass(frozen=True, kw_only=True)
class ExtremeExperiment(StoredSetExperiment):
    """A stored set with k subclasses a side; labels merge subclasses, name them, or cut them into
    pieces down to single samples. Every update sees the whole set. Then all networks are fine-tuned
    on the coarse question."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "patch_noise", "per_side")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**TINY, "patch_noise": (0.02, 0.3), "per_side": (1, 2, 8), "samples": 4},
        "quick": {
            **QUICK,
            "seeds": 8,
            "patch_noise": (0.02, 0.3),
            "per_side": (1, 2, 4, 8, 16),
            "samples": 4,
            "batch": 32,
            "steps": 100,
            "reads": (5, 10, 20, 40, 100),
            "tune_steps": 30,
            "test_each": 32,
        },
        "paper": {},
    }

    patch_noise: tuple[NotNegative, ...] = (0.02, 0.1, 0.15, 0.2)
    per_side: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    """labels of each side: 1 coarse, ``subclasses`` fine, subclasses x samples one per sample"""
    samples: Count = 8
    """training samples of every subclass, drawn once"""
    reads: tuple[int, ...] = (5, 10, 20, 40, 80, 200)
    batch: Count = 128
    steps: Count = 200
    test_each: Count = 32

    def check(self) -> None:
        super().check()
        if self.batch < 2 * self.most:
            allowed = f"must hold the whole set, {2 * self.most} samples"
            raise bad_value("batch", self.batch, allowed)
        for per_side in self.per_side:
            Labels(self.model(self.subclasses), per_side)
            if per_side > self.most:
                raise bad_value("per_side", per_side, f"at most {self.most}, one label a sample")
        for words, needed in {**self.compared, "one label a sample": self.most}.items():
            if needed not in self.per_side:
                raise bad_value("per_side", self.per_side, f"must have {needed} ({words})")

    @property
    def most(self) -> int:
        """Labels of each side if every sample has its own."""
        return self.subclasses * self.samples

    @property
    def compared(self) -> dict[str, int]:
        """Labels of each side of what one label per sample is compared with."""
        return {"coarse": 1, "fine": self.subclasses}

    @property
    def setting(self) -> str:
        return f"{super().setting} {self.samples} samples a subclass"

    def outputs(self) -> tuple[Output, ...]:
        return self.measured()

    def cost(self) -> Cost:
        steps = self.steps + self.tune_steps
        return self.cost_of_grid(2 * max(self.per_side), self.subclasses, True, steps)

    def _wanted(self, variation: str, noise: float, per_side: int) -> bool:
        ends = (*self.compared.values(), self.most)
        return variation == AS_CHOSEN or (noise == self.main_noise and per_side in ends)

    def _run(
        self, variation: str, noise: float, per_side: int, cells: Cells, context: Context
    ) -> dict[str, Tensor]:
        setting = self.at_noise(noise, variation)
        labels = Labels(setting.model(self.subclasses), per_side)
        return setting.learn_and_tune(cells, context, labels, self.samples)
