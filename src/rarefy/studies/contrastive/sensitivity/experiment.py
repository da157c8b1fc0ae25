"""Fig. 2-3's trend where the paper leaves something out or assumes something (000 Fig. 2-3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf, Share
from rarefy.data.sparse_coding import Companions
from rarefy.studies.contrastive.alignment.experiment import AlignmentExperiment
from rarefy.studies.contrastive.setting import Frequency, Trial
from rarefy.sweep.batches import split_by_axis

KINDS: dict[str, dict[str, dict[str, Any]]] = {
    "learning rate": {"lr 0.1": {"lr": 0.1}, "lr 1": {"lr": 1.0}},
    "temperature": {
        "tau 0.5": {"tau": 0.5},
        "tau 2": {"tau": 2.0},
        "tau 2, loss times tau": {"tau": 2.0, "loss_form": "times-tau"},
    },
    "batch": {"batch 16": {"batch": 16}, "batch 256": {"batch": 256}},
    "tokens": {
        "1 token": {"tokens": 1},
        "4 tokens": {"tokens": 4},
        "feature on one of 2 tokens": {"spread": "one"},
    },
    "activation": {"activation 0.1": {"activation": 0.1}, "activation 0.5": {"activation": 0.5}},
    "decay and start": {
        "weight decay 0": {"weight_decay": 0.0},
        "weight decay 0.01": {"weight_decay": 0.01},
        "sigma_0 0.01": {"sigma_0": 0.01},
    },
    "width": {"96 neurons": {"neurons": 96}},
    "bias": {"bias grows to the end": {"bias_until": "end"}},
    "attention": {"attention trained": {"attention": "trained", "spread": "one"}},
    "independence": {"rare features come with frequent ones": {"together": 1.0}},
}
"""What is changed, by kind; the last two drop an assumption, the others fill a gap."""
VARIATIONS = {name: changes for kind in KINDS.values() for name, changes in kind.items()}


@dataclass(frozen=True, kw_only=True)
class Varied(AlignmentExperiment):
    """The setting of ``contrast-alignment`` with two of its assumptions open."""

    attention: Annotated[str, OneOf(("fixed", "trained"))] = "fixed"
    """fixed: W_Q = W_K = identity; trained: they start there and follow the gradient, undecayed"""
    together: Share = 0.0
    """chance that a rare feature's presence is decided together with a frequent one's"""

    def bytes_per_cell(self) -> int:
        # W_Q and W_K, what autograd keeps for them, and for the rest where they are trained
        matrices = 24 * 8 * self.d1**2 if self.attention == "trained" else 0
        return 3 * super().bytes_per_cell() + matrices

    def companions(self) -> tuple[int, ...]:
        """Majority features have none; the k-th minority feature has the k-th majority one."""
        rare = (k % self.majority for k in range(self.minority))
        return (*range(self.majority), *rare)

    def setup(self, cells: Cells, context: Context, **options: Any) -> Trial:
        share = torch.full((len(cells),), self.together, dtype=context.dtype, device=context.device)
        options["companions"] = Companions(self.companions(), share) if self.together else None
        trained = self.attention == "trained"
        return super().setup(cells, context, **options, train_attention=trained)


@dataclass(frozen=True, kw_only=True)
class SensitivityExperiment(Experiment):
    """One thing changed at a time, the trend in eps_min read at several steps."""

    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("variation", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("variation", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "eps_min": (0.3, 1.0),
            "variation": ("lr 0.1", "lr 1", "attention trained"),
            "d1": 40,
            "reads": (10, 20),
        },
        "quick": {
            "seeds": 6,
            "eps_min": (0.2, 1.0),
            "variation": ("lr 0.1", "batch 16", "feature on one of 2 tokens"),
            "reads": (25, 100),
        },
        "paper": {},
    }

    seeds: Count = 30
    """repeats of each grid point"""
    eps_min: tuple[Frequency, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    variation: tuple[Annotated[str, OneOf(tuple(VARIATIONS))], ...] = tuple(VARIATIONS)
    """what is changed"""
    bias_scale: NotNegative = 1.0
    """bias at T1 in units of the paper's"""
    sigma: NotNegative = 0.03
    """noise std"""
    d1: Count = 500
    """dimension of a token"""
    reads: tuple[int, ...] = (25, 100, 400)
    """steps at which alignment is read; the last but one is judged"""

    def check(self) -> None:
        if len(self.reads) < 2:
            raise bad_value("reads", self.reads, "at least two; the last but one is judged")
        for name in self.variation:
            self.varied(name)

    def varied(self, variation: str) -> Varied:
        """The alignment experiment with one thing changed."""
        return Varied.at(
            "paper",
            eps_min=self.eps_min,
            d1=self.d1,
            reads=self.reads,
            figure_read=self.reads[-1],
            steps=max(self.reads),
            **VARIATIONS[variation],
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
        largest = max(self.varied(name).bytes_per_cell() for name in self.variation)
        return Cost(largest, max(self.reads))

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "variation", lambda v, part: self._runs(v, part, context))

    def _runs(self, variation: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        fixed = {"sigma": self.sigma, "bias_scale": self.bias_scale}
        same = {name: np.full(len(cells), value) for name, value in fixed.items()}
        values = {**cells.values, **same}
        found = self.varied(variation).simulate(Cells(values, cells.keys), context)
        minority = {name: found[name][:, :, 1] for name in ("aligned", "best")}
        return {**minority, "nonfinite_step": found["nonfinite_step"]}
