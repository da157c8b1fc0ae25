"""Does Fig. 2-3's trend survive the hyper-parameters the paper leaves out? (000 Fig. 2-3)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, InRange, NotNegative
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.setting import Frequency
from rarefy.sweep.batches import split_by_axis

VARIATIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("as chosen", {}),
    ("lr 0.1", {"lr": 0.1}),
    ("lr 1", {"lr": 1.0}),
    ("tau 0.5", {"tau": 0.5}),
    ("tau 2", {"tau": 2.0}),
    ("tau 2, loss times tau", {"tau": 2.0, "loss_form": "times-tau"}),
    ("batch 16", {"batch": 16}),
    ("batch 256", {"batch": 256}),
    ("1 token", {"tokens": 1}),
    ("4 tokens", {"tokens": 4}),
    ("feature on one of 2 tokens", {"spread": "one"}),
    ("activation 0.1", {"activation": 0.1}),
    ("activation 0.5", {"activation": 0.5}),
    ("weight decay 0", {"weight_decay": 0.0}),
    ("weight decay 0.01", {"weight_decay": 0.01}),
    ("sigma_0 0.01", {"sigma_0": 0.01}),
    ("96 neurons", {"neurons": 96}),
    ("bias grows to the end", {"bias_until": "end"}),
)


@dataclass(frozen=True, kw_only=True)
class SensitivityExperiment(Experiment):
    """One hyper-parameter changed at a time, the trend in eps_min read at several steps."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "variation", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("variation", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "eps_min": (0.3, 1.0),
            "variation": (0, 2, 10),
            "d1": 60,
            "reads": (10, 20),
        },
        "quick": {
            "seeds": 6,
            "eps_min": (0.2, 1.0),
            "variation": (0, 1, 6, 10),
            "reads": (25, 100),
        },
        "paper": {},
    }

    seeds: Count = 30
    """repeats of each grid point"""
    eps_min: tuple[Frequency, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    variation: tuple[Annotated[int, InRange(0, len(VARIATIONS) - 1)], ...] = tuple(
        range(len(VARIATIONS))
    )
    """what is changed, by its number in the table of variations"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 1.0)
    """bias at T1 in units of the paper's; 0: no bias"""
    sigma: NotNegative = 0.03
    """noise std"""
    d1: Count = 500
    """dimension of a token"""
    reads: tuple[int, ...] = (25, 100, 400)
    """steps at which alignment is read"""

    def check(self) -> None:
        if len(self.reads) < 2:
            raise bad_value("reads", self.reads, "at least two; the last but one is judged")
        for value in self.variation:
            self.varied(value)

    def varied(self, variation: int) -> AlignmentExperiment:
        """The alignment experiment with one thing changed."""
        return AlignmentExperiment.at(
            "paper",
            eps_min=self.eps_min,
            sigma=(self.sigma,),
            bias_scale=self.bias_scale,
            d1=self.d1,
            reads=self.reads,
            figure_read=self.reads[-1],
            steps=max(self.reads),
            **VARIATIONS[int(variation)][1],
        )

    @property
    def setting(self) -> str:
        return "d=9 m=24"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("aligned", ("read",), "minority: neurons with cosine at least 0.3, mean"),
            Output("best", ("read",), "minority: largest cosine of any neuron, mean"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads)}

    def cost(self) -> Cost:
        largest = max(self.varied(v).cost().bytes_per_cell for v in self.variation)
        return Cost(largest, max(self.reads))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "variation", lambda v, part: self._runs(int(v), part, context))

    def _runs(self, variation: int, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        values = {**cells.values, "sigma": np.full(len(cells), self.sigma)}
        found = self.varied(variation).simulate(Cells(values, cells.keys), context)
        minority = {name: found[name][:, :, 1] for name in ("aligned", "best")}
        return {**minority, "nonfinite_step": found["nonfinite_step"]}
