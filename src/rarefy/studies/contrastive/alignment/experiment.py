"""How imbalance changes what neurons align with (000 Fig. 2-3, Theorem 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Output
from rarefy.core.parameters import Count, NotNegative
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import aligned_counts, carried, dominant, lucky, ordinary
from rarefy.studies.contrastive import setting as lab
from rarefy.train.descent import State


@dataclass(frozen=True, kw_only=True)
class AlignmentExperiment(lab.FigureExperiment):
    """Alignment of neurons with majority and minority features against eps_min."""

    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "sigma", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("sigma", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {**lab.TINY_FIGURE, "eps_min": (0.3, 1.0), "sigma": (0.03,)},
        "quick": {
            "seeds": 6,
            "eps_min": (0.1, 0.4, 0.7, 1.0),
            "sigma": (0.03,),
            "steps": 158,
            "reads": (25, 50, 100, 158),
        },
        "paper": {},
        "large": {
            **lab.LARGE,
            "seeds": 10,
            "eps_min": (0.5, 0.7, 0.8, 0.9, 1.0),
            "sigma": (0.02,),
            "steps": 7850,
            "reads": (100, 400, 1600, 7850),
            "figure_read": 400,
        },
    }

    sigma: tuple[NotNegative, ...] = (0.01, 0.03, 0.05)
    """noise std; the noise-to-signal ratio is sigma^2 d1"""
    steps: Count = 1600
    """training steps"""
    reads: tuple[int, ...] = (25, 50, 100, 158, 400, 1600)
    """steps at which alignment is read; 158 is T4 = d^1.99/eta at d = 9"""

    def outputs(self) -> tuple[Output, ...]:
        each, by_group = ("read",), ("read", "group")
        return (
            Output("aligned", by_group, "neurons with cosine at least 0.3, mean over features"),
            Output("best", by_group, "largest cosine of any neuron, mean over features"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("mixed", each, "features that carry a tenth of a neuron's squared norm, mean"),
            Output("initial_set", (), "size of the paper's N_i, mean over neurons"),
            Output("lucky", ("group",), "size of the paper's M*_j, mean over features"),
            Output("t1", (), "step T1 of (34); -1: not reached", "steps"),
        )

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        trial = self.setup(cells, context)
        eps_min = cells.column("eps_min", context)
        atoms, majority = trial.data.dictionary, self.majority
        start = projections(trial.weights, atoms)
        member = ordinary(start, eps_min)  # eps_max = 1, so eps_min is the ratio
        fortunate = lucky(start, eps_min)

        def means(values: torch.Tensor) -> torch.Tensor:
            return lab.group_means(values, majority)

        def cosines(state: State) -> torch.Tensor:
            return squared_cosines(state.parameters["weights"], atoms)

        trajectory = trial.train(
            context,
            {
                "aligned": lambda s: means(aligned_counts(cosines(s)).to(context.dtype)),
                "best": lambda s: means(cosines(s).amax(dim=1).sqrt()),
                "pure": lambda s: means(dominant(cosines(s)).sum(dim=1).to(context.dtype)),
                "mixed": lambda s: carried(cosines(s)).sum(dim=2).to(context.dtype).mean(dim=1),
            },
            self.reads,
        )
        start_sizes = member.sum(dim=2).to(context.dtype).mean(dim=1)
        fortunes = means(fortunate.sum(dim=1).to(context.dtype))
        found = {"initial_set": start_sizes, "lucky": fortunes, "t1": trial.bias.t1}
        return lab.as_arrays(found, trajectory)
