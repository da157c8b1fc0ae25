"""Squared cosines of neurons with features as a map (000 Fig. 6, App. A.2 Trial 5; 001 Fig. 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import Count, NotNegative, OneOf
from rarefy.measure.alignment import squared_cosines
from rarefy.measure.neuron_kinds import MIXED, PURE, count_by_group, lucky_examples, neuron_kinds
from rarefy.measure.neurons import carried, dominant
from rarefy.studies.contrastive import setting as lab
from rarefy.sweep.batches import split_by_axis
from rarefy.train.descent import State

VARIANTS = ("000", "001")


@dataclass(frozen=True, kw_only=True)
class HeatmapExperiment(lab.FigureExperiment):
    """Maps of neurons against features, as 000 and as 001 show them."""

    axes: ClassVar[tuple[str, ...]] = ("variant", "bias_scale", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("variant", "eps_min")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **lab.TINY,
            "eps_min": (0.5, 1.0),
            "steps": 30,
            "reads": (10, 30),
            "figure_read": 30,
        },
        "quick": {"seeds": 5, "eps_min": (0.1, 0.5, 1.0), "steps": 158, "reads": (25, 100, 158)},
        "paper": {},
    }

    variant: tuple[Annotated[str, OneOf(VARIANTS)], ...] = VARIANTS
    """whose figure: 000 (all its neurons are shown) or 001 (the first few of more)"""
    eps_min: tuple[lab.Frequency, ...] = (0.1, 0.3, 0.5, 0.8, 1.0)
    """frequency of the minority features, which neither paper gives for its map"""
    sigma: NotNegative = 0.03
    """noise std"""
    neurons_001: Count = 30
    """neurons of variant 001; ``neurons`` are those of variant 000"""
    shown_001: Count = 13
    """how many of them its figure shows, and its statements are about"""
    figure_eps: float = 0.5
    """eps_min of the map that is drawn"""
    maps: Count = 1
    """runs whose whole map is kept and drawn, the first ones"""

    def check(self) -> None:
        super().check()
        if self.shown_001 > self.neurons_001:
            least = f"must be in 1..neurons_001={self.neurons_001}"
            raise bad_value("shown_001", self.shown_001, least)
        if self.figure_eps not in self.eps_min:
            raise bad_value("figure_eps", self.figure_eps, f"must be in eps_min={self.eps_min}")

    def shown(self, variant: str) -> int:
        """Rows of the map."""
        return {"000": self.neurons, "001": self.shown_001}[str(variant)]

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("pure", by_group, "shown neurons that are pure, by their feature's group"),
            Output("mixed", by_group, "shown neurons that are mixed, by their strongest feature"),
            Output("lucky", ("read",), "shown neurons that are pure with squared cosine >= 0.3"),
            Output("column", by_group, "squared cosine, mean over shown neurons and features"),
            Output("carriers", by_group, "shown neurons that carry a feature, mean over features"),
            Output("largest", ("read",), "largest squared cosine shown"),
            Output("associated", ("read",), "shown neurons that carry a majority feature"),
            Output("covered", ("read",), "majority features that dominate a shown neuron"),
            Output("map", ("neuron", "feature"), "squared cosines at the figure's step; few runs"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        rows = max(self.shown(variant) for variant in self.variant)
        own = {"neuron": np.arange(rows), "feature": np.arange(self.d)}
        return {**super().coordinates(), **own}

    def cost(self) -> Cost:
        most = replace(self, neurons=max(self.neurons, self.neurons_001))
        return Cost(bytes_per_cell=most.bytes_per_cell(), steps_per_cell=self.steps)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "variant", lambda v, part: self._simulate(v, part, context))

    def _simulate(self, variant: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        neurons = {"000": self.neurons, "001": self.neurons_001}[variant]
        sized, shown, majority = replace(self, neurons=neurons), self.shown(variant), self.majority
        trial = sized.setup(cells, context)
        atoms = trial.data.dictionary

        def seen(state: State) -> torch.Tensor:
            return squared_cosines(state.parameters["weights"], atoms)[:, :shown]

        def of_kind(state: State, kind: int) -> torch.Tensor:
            cosines = seen(state)
            return count_by_group(cosines, neuron_kinds(cosines) == kind, majority)

        def covered(cosines: torch.Tensor) -> torch.Tensor:
            return dominant(cosines)[:, :, :majority].any(dim=1).sum(dim=1)

        number = context.dtype
        trajectory = trial.train(
            context,
            {
                "pure": lambda s: of_kind(s, PURE).to(number),
                "mixed": lambda s: of_kind(s, MIXED).to(number),
                "lucky": lambda s: lucky_examples(seen(s)).sum(dim=1).to(number),
                "column": lambda s: lab.group_means(seen(s).mean(dim=1), majority),
                "carriers": lambda s: lab.group_means(
                    carried(seen(s)).sum(dim=1).to(number), majority
                ),
                "largest": lambda s: seen(s).amax(dim=(1, 2)),
                "associated": lambda s: (
                    carried(seen(s))[:, :, :majority].any(dim=2).sum(dim=1).to(number)
                ),
                "covered": lambda s: covered(seen(s)).to(number),
                "map": seen,
            },
            self.reads,
        )
        found = lab.as_arrays({}, trajectory)
        found["map"] = self._kept(cells, found["map"][:, self.reads.index(self.figure_read)])
        return found

    def _kept(self, cells: Cells, cosines: np.ndarray) -> np.ndarray:
        """Maps of the first runs, NaN for the others and below the last neuron shown."""
        rows = len(self.coordinates()["neuron"])
        kept = np.full((len(cells), rows, self.d), np.nan, dtype=cosines.dtype)
        kept[:, : cosines.shape[1]] = cosines
        kept[np.asarray(cells.values["seed"]) >= self.maps] = np.nan
        return kept
