"""Who detects which feature, and how fast: coarse against fine labels (004 Sec. 5.2, App. C-G)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf, Positive
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.detectors.watch import AT_START, OVER_TIME, Watch
from rarefy.studies.granularity.experiment import AS_CHOSEN, GranularityExperiment
from rarefy.studies.granularity.trial import LABELS, both_labels

FIXED, LOOSE = "patch counts fixed", "strengths and noise as in granularity-errors"
VARIATIONS = (AS_CHOSEN, FIXED, LOOSE)


@dataclass(frozen=True, kw_only=True)
class DetectorsExperiment(GranularityExperiment):
    """Each cell trains two networks on the same samples, one with the labels of the two sides and
    one with those of the subclasses, and watches their detectors. Widths and thresholds as in the
    paper: ``neurons`` m per output with fine labels, d m with coarse ones, c_b = sqrt(2 + 2 c_0)
    and sqrt(4 + 2 c_0) with c_0 = 0.05 (App. B.3, 6)."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "subclasses")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "variation": (AS_CHOSEN, FIXED),
            "subclasses": (1, 2),
            "main": 2,
            "d": 12,
            "patches": 10,
            "feature_patches": 2,
            "neurons": 40,
            "ratio": 12,
            "threshold": 0.9,
            "batch": 8,
            "sigma_0": 0.01,
            "lr": 1.0,
            "steps": 20,
            "reads": (0, 5, 10, 20),
        },
        "quick": {
            "seeds": 8,
            "variation": (AS_CHOSEN, FIXED),
            "subclasses": (2, 4, 8),
            "main": 4,
            "d": 24,
            "neurons": 120,
            "ratio": 24,
            "threshold": 1.0,
            "batch": 32,
            "sigma_0": 0.005,
            "lr": 0.05,
            # 19,200 run-steps: from 20,000 on, half a minute would go into compiling
            "steps": 300,
            "reads": (0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 100, 150, 200, 250, 300),
        },
        "paper": {"variation": (AS_CHOSEN,)},
    }

    variation: tuple[Annotated[str, OneOf(VARIATIONS)], ...] = VARIATIONS
    """what is changed of the setting; only "as chosen" is run for every number of subclasses, the
    others at ``main``"""
    subclasses: tuple[Count, ...] = (2, 4, 8)
    """subclasses of each side (k)"""
    main: int = 8
    """subclasses of each side where the setting is varied, and in the picture of shares"""
    reads: tuple[int, ...] = (
        *(0, 5, 10, 15, 20, 25, 30, 40, 50, 60, 80, 100, 125, 150, 200),
        *(300, 400, 600, 800, 1000, 1250, 1500, 1750, 2000, 2500, 3000),
    )
    """numbers of updates after which the networks are read"""
    d: int = 24
    patches: int = 96
    feature_patches: int = 12
    counts: str = "drawn"
    spread: float = 0.0
    sigma: NotNegative = 0.0002
    neurons: Count = 960
    ratio: Count = 24
    """neurons of a coarse output over those of a fine one (the paper: d)"""
    threshold: Positive = math.sqrt(2.1)
    sigma_0: Positive = 0.0017
    lr: Positive = 0.005
    """learning rate, of the order of sigma_0: 3 of it (App. B.3, 14)"""
    steps: Count = 3000
    seeds: Count = 20

    def check(self) -> None:
        rising = list(self.reads) == sorted(set(self.reads))
        if not rising or not self.reads or self.reads[0] != 0 or self.reads[-1] != self.steps:
            allowed = f"must rise from 0 to steps={self.steps}"
            raise bad_value("reads", self.reads, allowed)
        if self.main not in self.subclasses:
            raise bad_value("main", self.main, f"must be one of subclasses={self.subclasses}")
        self.check_variation(self.variation)
        for variation in self.variation:
            for subclasses in self.subclasses:
                self.varied(variation).check_model(subclasses)

    @property
    def setting(self) -> str:
        return f"{super().setting} sigma={self.sigma:g}"

    def varied(self, variation: str) -> Self:
        changes: dict[str, dict[str, Any]] = {
            FIXED: {"counts": "fixed"},
            LOOSE: {"sigma": 0.002, "spread": 0.1},
        }
        return replace(self, **changes.get(variation, {}))

    def of(self, labels: str) -> Self:
        """With the width and the threshold of networks with these labels."""
        return self.wide(self.ratio * self.neurons) if labels == "coarse" else self

    def outputs(self) -> tuple[Output, ...]:
        return (
            *(Output(name, ("labels", "read"), words) for name, words in OVER_TIME.items()),
            *(Output(name, ("labels",), words) for name, words in AT_START.items()),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"labels": np.array(LABELS), "read": np.array(self.reads)}

    def cost(self) -> Cost:
        most = max(self.subclasses)
        return self.cost_of_grid(2 * max(most, self.ratio), most, False, 2 * self.steps)

    def _wanted(self, variation: str, subclasses: int) -> bool:
        return variation == AS_CHOSEN or subclasses == self.main

    def _run(
        self, variation: str, subclasses: int, cells: Cells, context: Context
    ) -> dict[str, Tensor]:
        varied, parts = self.varied(variation), []
        for name, per_side in zip(LABELS, (1, subclasses), strict=True):
            setting = varied.of(name)
            labels = Labels(setting.model(subclasses), per_side)
            trial = setting.setup(cells, context, labels)
            watch = Watch(labels, trial.initial)
            trajectory = trial.train(
                self.steps, context=context, trackers={"watch": watch.look}, record=self.reads
            )
            seen = dict(zip(OVER_TIME, trajectory.records["watch"].unbind(dim=2), strict=True))
            lost = {NONFINITE_STEP.name: trajectory.nonfinite_step}
            parts.append(seen | watch.at_start() | lost)
        return both_labels(*parts)
