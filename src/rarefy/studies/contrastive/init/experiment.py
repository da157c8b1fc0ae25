"""The neuron sets before training, counted and computed exactly (000 Lemma B.2, 001 Lemma C.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, Positive, PositiveShare, Rule
from rarefy.data.sparse_coding import dictionary
from rarefy.measure.alignment import projections
from rarefy.measure.neurons import lucky, ordinary
from rarefy.sweep.batches import split_by_axis
from rarefy.train.contrastive import initial_weights


@dataclass(frozen=True, kw_only=True)
class InitExperiment(Experiment):
    """Ordinary and lucky neurons of random networks, against their exact laws and the bounds."""

    axes: ClassVar[tuple[str, ...]] = ("d", "ratio")
    random_axes: ClassVar[tuple[str, ...]] = ("d",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 4, "d": (4, 9), "ratio": (0.5, 1.0), "d1": 20, "drawn": 96},
        "quick": {
            "seeds": 20,
            "d": (9, 32, 128),
            "ratio": (0.3, 0.5, 0.7, 0.8, 0.9, 1.0),
            "drawn": 2000,
        },
        "paper": {},
        "large": {"seeds": 40, "d": (16, 32, 64, 128), "width_exponent": 2.0, "drawn": 16384},
    }

    d: tuple[Annotated[int, AtLeast(2)], ...] = (9, 16, 32, 64, 128, 256)
    """number of features; 000 publishes 9"""
    ratio: tuple[PositiveShare, ...] = (0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
    """imbalance, eps_min/eps_max; it only sets the thresholds, so all ratios share their draws"""
    width_exponent: Positive = 1.4464
    """C_m of m = d^C_m; 1.4464 makes the 24 neurons that 000 publishes at d = 9"""
    d1: Count = 500
    """dimension of a token"""
    sigma_0: Positive = 1e-3
    """std of the initial weights; it cancels out of every output, as the sets are about shares of
    a norm and norms and projections are measured in units of it: kept to be drawn as published"""
    gamma: Annotated[float, Rule("must be at least 0 and below 1", lambda v: 0 <= v < 1)] = 0.001
    """the small constant of (28)"""
    drawn: Count = 3000
    """neurons a run draws at least: small networks are drawn many times, with one dictionary"""

    def neurons(self, d: int) -> int:
        """m = d^C_m, the neurons of one network."""
        return max(1, round(d**self.width_exponent))

    def networks(self, d: int) -> int:
        """Networks a run draws; the shares' law does not depend on the dictionary they share."""
        return max(1, round(self.drawn / self.neurons(d)))

    @property
    def setting(self) -> str:
        return f"m=d^{self.width_exponent:.3g}"

    def check(self) -> None:
        if max(self.d) > self.d1:
            raise bad_value("d", max(self.d), f"must be in 2..d1={self.d1}")

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("ordinary", (), "|M_j|, mean over features", "neurons"),
            Output("ordinary_most", (), "|M_j|, largest over features", "neurons"),
            Output("lucky", (), "|M*_j|, mean over features", "neurons"),
            Output("shared_most", (), "|M_j and M_j'|, largest over pairs", "neurons"),
            Output("carried_most", (), "|N_i|, largest over neurons", "features"),
            Output("norm_least", (), "|w|^2/(sigma_0^2 d1), smallest neuron"),
            Output("norm_most", (), "the same, largest neuron"),
            Output("feature_norm_least", (), "|M M^T w|^2/(sigma_0^2 d), smallest neuron"),
            Output("feature_norm_most", (), "the same, largest neuron"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {}

    def cost(self) -> Cost:
        sizes = []
        for d in self.d:
            neurons = self.networks(d) * self.neurons(d)
            sizes.append(neurons * (2 * self.d1 + 6 * d) + 3 * self.networks(d) * d * d)
        return Cost(bytes_per_cell=8 * max(sizes), steps_per_cell=1)

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "d", lambda d, part: self._apart(int(d), part, context))

    def _apart(self, d: int, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        context.check_time()
        found = self._counts(d, cells, context)
        context.advance(len(cells))
        return {name: values.cpu().numpy() for name, values in found.items()}

    def _counts(self, d: int, cells: Cells, context: Context) -> dict[str, Tensor]:
        """Every output of the cells with d features, (run,) each."""
        # cells that differ in the ratio alone have the same networks: they are drawn once
        keys, own = np.unique(cells.keys, return_inverse=True)
        draws = Cells({}, keys).draws(context)
        m, networks = self.neurons(d), self.networks(d)
        scale = torch.full((len(keys),), self.sigma_0, dtype=context.dtype, device=context.device)
        weights = initial_weights(draws, networks * m, self.d1, scale)
        along = projections(weights, dictionary(draws, self.d1, d))
        squared_norm = weights.square().sum(dim=2) / (self.sigma_0**2 * self.d1)
        del weights
        inside = (along / self.sigma_0).square().sum(dim=2) / d
        found: dict[str, Tensor] = {}
        for name, norms in (("norm", squared_norm), ("feature_norm", inside)):
            by_network = norms.reshape(len(keys), networks, m)
            found[f"{name}_least"] = by_network.amin(dim=2).mean(dim=1)
            found[f"{name}_most"] = by_network.amax(dim=2).mean(dim=1)
        mine = torch.as_tensor(own, device=context.device)
        found = {name: values[mine] for name, values in found.items()}
        found |= self._sets(along[mine], cells.column("ratio", context), m)
        return found

    def _sets(self, along: Tensor, ratio: Tensor, m: int) -> dict[str, Tensor]:
        """Sizes of the sets; along: (run, networks m, d)."""
        d = along.shape[2]

        def by_network(member: Tensor) -> Tensor:
            """(run, network, m, d), as numbers that sums and products keep exact."""
            return member.to(along.dtype).reshape(len(along), -1, m, d)

        member = by_network(ordinary(along, ratio, self.gamma))
        size = member.sum(dim=2)
        pairs = torch.matmul(member.transpose(2, 3), member)
        same = torch.eye(d, dtype=torch.bool, device=along.device)
        apart = pairs.masked_fill(same, 0.0)  # counts are at least 0, so the largest is safe
        fortunate = by_network(lucky(along, ratio, self.gamma)).sum(dim=2)
        return {
            "ordinary": size.mean(dim=(1, 2)),
            "ordinary_most": size.amax(dim=2).mean(dim=1),
            "lucky": fortunate.mean(dim=(1, 2)),
            "shared_most": apart.amax(dim=(2, 3)).mean(dim=1),
            "carried_most": member.sum(dim=3).amax(dim=2).mean(dim=1),
        }
