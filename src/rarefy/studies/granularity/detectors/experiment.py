"""Who detects which feature, and how fast: coarse against fine labels (004 Sec. 5.2, App. C-G)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from rarefy.core.contracts import NONFINITE_STEP, Cells, Context, Cost, Output
from rarefy.core.errors import bad_value, unknown
from rarefy.core.parameters import Count, NotNegative, Positive
from rarefy.data.granularity_labels import Labels
from rarefy.studies.granularity.detectors.watch import AT_START, OVER_TIME, Watch
from rarefy.studies.granularity.experiment import AS_CHOSEN, CHANGES, GranularityExperiment
from rarefy.studies.granularity.trial import LABELS, both_labels

FURTHER: dict[str, dict[str, Any]] = {
    "noise as in other studies": {"sigma": 0.02},
    "strengths as in other studies": {"spread": 0.1},
}
"""What this study has smaller than the others. With theirs, the noise of a neuron is a tenth of its
threshold, and who detects what is not decided at the start: these variations show it."""


@dataclass(frozen=True, kw_only=True)
class DetectorsExperiment(GranularityExperiment):
    """Each cell trains two networks on the same samples, one with the labels of the two sides and
    one with those of the subclasses, and watches their detectors."""

    axes: ClassVar[tuple[str, ...]] = ("variation", "subclasses")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "variation": (AS_CHOSEN, "noise x2"),
            "subclasses": (1, 2),
            "main": 2,
            "d": 12,
            "patches": 10,
            "feature_patches": 2,
            "neurons": 40,
            "threshold": 0.9,
            "batch": 8,
            "lr": 1.0,
            "steps": 40,
            "reads": (0, 1, 5, 10, 20, 40),
        },
        "quick": {
            "seeds": 8,
            "variation": (AS_CHOSEN, *FURTHER),
            "subclasses": (2, 4, 8),
            "main": 4,
            "d": 40,
            "neurons": 200,
            "threshold": 1.2,
            "batch": 32,
            "lr": 1.0,
            # 19,584 run-steps: from 20,000 on, half a minute would go into compiling
            "steps": 136,
            "reads": (0, 1, 2, 4, 8, 16, 32, 64, 80, 100, 120, 136),
        },
        "paper": {},
    }

    variation: tuple[str, ...] = (
        AS_CHOSEN,
        *FURTHER,
        "patches x2",
        "neurons x1/2",
        "neurons x2",
        "c_b 1.3",
        "patch counts drawn",
    )
    """what is changed of the setting; only "as chosen" is run for every number of subclasses, the
    others at ``main``"""
    subclasses: tuple[Count, ...] = (2, 4, 8, 16)
    """subclasses of each side (k)"""
    main: int = 8
    """subclasses of each side in the table of sensitivity and the picture of shares"""
    reads: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 32, 64, 100, 150, 200, 400, 600, 800, 1000)
    """numbers of updates after which the networks are read"""
    first: Count = 1
    """updates over which the rates of phase 1 are taken"""
    d: int = 64
    spread: float = 0.02
    sigma: NotNegative = 0.002
    neurons: Count = 4096
    threshold: Positive = 1.45
    lr: Positive = 0.2
    steps: Count = 1000
    seeds: Count = 20

    def check(self) -> None:
        rising = list(self.reads) == sorted(set(self.reads))
        if not rising or not {0, self.first, self.steps} <= set(self.reads):
            allowed = f"must rise and hold 0, first={self.first}, steps={self.steps}"
            raise bad_value("reads", self.reads, allowed)
        if self.reads[-1] != self.steps or self.reads[0] != 0:
            raise bad_value("reads", self.reads, f"must lie in 0..steps={self.steps}")
        if self.main not in self.subclasses:
            raise bad_value("main", self.main, f"must be one of subclasses={self.subclasses}")
        if AS_CHOSEN not in self.variation:
            raise bad_value("variation", self.variation, f"must have {AS_CHOSEN!r}")
        for variation in self.variation:
            for subclasses in self.subclasses:
                self.varied(variation).check_model(subclasses)

    @property
    def setting(self) -> str:
        return f"{super().setting} sigma={self.sigma:g}"

    def varied(self, variation: str) -> Self:
        if variation in FURTHER:
            return replace(self, **FURTHER[variation])
        if variation not in CHANGES:
            raise unknown("variation", variation, {*CHANGES, *FURTHER})
        return super().varied(variation)

    def outputs(self) -> tuple[Output, ...]:
        return (
            *(Output(name, ("labels", "read"), words) for name, words in OVER_TIME.items()),
            *(Output(name, ("labels",), words) for name, words in AT_START.items()),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"labels": np.array(LABELS), "read": np.array(self.reads)}

    def cost(self) -> Cost:
        most = max(self.subclasses)
        return self.cost_of_grid(2 * most, most, False, 2 * self.steps)

    def _wanted(self, variation: str, subclasses: int) -> bool:
        return variation == AS_CHOSEN or subclasses == self.main

    def _run(
        self, variation: str, subclasses: int, cells: Cells, context: Context
    ) -> dict[str, Tensor]:
        setting, parts = self.varied(variation), []
        for per_side in (1, subclasses):
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
