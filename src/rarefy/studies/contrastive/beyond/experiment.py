"""Two assumptions dropped: attention that is trained, and features that come together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.parameters import Count, NotNegative, OneOf, Share
from rarefy.data.sparse_coding import SPREADS, Companions
from rarefy.measure.alignment import projections, squared_cosines
from rarefy.measure.neurons import dominant
from rarefy.pruning.update_rules import rule_codes
from rarefy.studies.contrastive import setting as lab
from rarefy.sweep.batches import split_by_axis
from rarefy.train.descent import State
from rarefy.train.neuron_pruning import NeuronPruning

ATTENTION = ("fixed", "trained")
SMALL: dict[str, Any] = {"share": (0.0, 1.0), "bias_scale": (0.0,)}


@dataclass(frozen=True, kw_only=True)
class BeyondExperiment(lab.ImbalancedExperiment):
    """Imbalance and pruning when W_Q, W_K are trained and when a rare feature has a companion."""

    version: ClassVar[int] = 2
    axes: ClassVar[tuple[str, ...]] = ("bias_scale", "attention", "share", "alpha", "eps_min")
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **SMALL,
            "seeds": 2,
            "eps_min": (0.3, 1.0),
            "d1": 24,
            "batch": 16,
            "steps": 20,
            "reads": (10, 20),
        },
        "quick": SMALL
        | {"seeds": 4, "eps_min": (0.2, 1.0), "d1": 48, "steps": 100, "reads": (25, 100)},
        "paper": {},
    }

    seeds: Count = 30
    """repeats of each grid point"""
    eps_min: tuple[lab.Frequency, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    attention: tuple[Annotated[str, OneOf(ATTENTION)], ...] = ATTENTION
    """fixed: W_Q = W_K = identity; trained: they start there and follow the gradient, undecayed"""
    share: tuple[Share, ...] = (0.0, 0.5, 1.0)
    """chance that a rare feature's presence is decided together with its companion's"""
    alpha: tuple[lab.LeftOut, ...] = (0.0, 0.2)
    """share of the neurons, the smallest, that are left out; 0: no pruning"""
    bias_scale: tuple[NotNegative, ...] = (0.0, 0.5)
    """bias at T1 in units of the paper's; at 1 it silences all neurons once features show on some
    tokens only, since attention dilutes them"""
    spread: Annotated[str, OneOf(SPREADS)] = "subset"
    """tokens that show a present feature; on a random subset of them attention has a choice"""
    sigma: NotNegative = 0.03
    """noise std"""
    d1: Count = 100
    """dimension of a token; W_Q and W_K have its square"""
    reads: tuple[int, ...] = (25, 100, 400)
    """steps at which alignment is read"""

    def check(self) -> None:
        super().check()
        lab.check_alphas(self.alpha, self.neurons)
        lab.check_reads(self.reads, self.steps)

    def judged_reads(self) -> tuple[int, ...]:
        """The middle read, where Fig. 2-3 are read elsewhere, and the last."""
        return tuple(dict.fromkeys((self.reads[len(self.reads) // 2], self.reads[-1])))

    def companions(self) -> tuple[int, ...]:
        """Majority features have none; the k-th minority feature has the k-th majority one."""
        rare = (k % self.majority for k in range(self.minority))
        return (*range(self.majority), *rare)

    def cost(self) -> Cost:
        trained = 24 * self.d1**2 if "trained" in self.attention else 0
        return Cost(3 * self.bytes_per_cell() + 8 * trained, self.steps)

    def outputs(self) -> tuple[Output, ...]:
        by_group = ("read", "group")
        return (
            Output("best", by_group, "largest cosine of any neuron, mean over features"),
            Output("energy", by_group, "sum over neurons of <w,M_j>^2, mean over features"),
            Output("pure", by_group, "neurons pure in a feature (operational set), mean"),
            Output("on_itself", ("read",), "attention of a token on itself, mean over samples"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"read": np.array(self.reads), **super().coordinates()}

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        return split_by_axis(cells, "attention", lambda how, part: self._runs(how, part, context))

    def _runs(self, attention: str, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        codes = rule_codes(["dense"] * len(cells), context.device)
        start = torch.zeros(len(cells), dtype=torch.int64, device=context.device)
        trial = self.setup(
            cells,
            context,
            pruning=NeuronPruning(cells.column("alpha", context), start, codes, self.neurons),
            companions=Companions(self.companions(), cells.column("share", context)),
            train_attention=attention == "trained",
        )
        atoms = trial.data.dictionary
        probe = trial.data.sample(trial.draws.spawn("attention"), self.batch, 0).x

        def means(values: torch.Tensor) -> torch.Tensor:
            return lab.group_means(values.to(context.dtype), self.majority)

        def cosines(state: State) -> torch.Tensor:
            return squared_cosines(state.parameters["weights"], atoms)

        def on_itself(state: State) -> torch.Tensor:
            weights = trial.problem.attention_of(state.parameters).weights(probe)
            return torch.diagonal(weights, dim1=2, dim2=3).mean(dim=(1, 2))

        trajectory = trial.train(
            context,
            {
                "best": lambda s: means(cosines(s).amax(dim=1).sqrt()),
                "energy": lambda s: means(
                    projections(s.parameters["weights"], atoms).square().sum(dim=1)
                ),
                "pure": lambda s: means(dominant(cosines(s)).sum(dim=1)),
                "on_itself": on_itself,
            },
            self.reads,
        )
        return lab.as_arrays({}, trajectory)
