"""The three stages of contrastive learning under imbalance (000 Lemmas 3.1-3.2, Fig. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, NotNegative, Positive
from rarefy.measure.alignment import outside, projections, squared_cosines
from rarefy.measure.contrastive_data import latent_moment
from rarefy.studies.contrastive import setting as lab
from rarefy.studies.contrastive.dynamics.watch import StageWatch
from rarefy.train.descent import Trajectory


@dataclass(frozen=True, kw_only=True)
class DynamicsExperiment(lab.ImbalancedExperiment):
    """Growth rates, stage times and what Theorems C.1 and D.1 say about them."""

    axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    random_axes: ClassVar[tuple[str, ...]] = ("eps_min",)
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            **lab.TINY,
            "eps_min": (0.3, 1.0),
            "steps": 120,
            "lr": 0.2,
            "stage_1_steps": 4,
            "moment_samples": 256,
        },
        "quick": {"seeds": 8, "eps_min": (0.25, 1.0), "lr": 0.25, "steps": 320, "stage_1_steps": 6},
        "paper": {},
        "large": {
            **lab.LARGE,
            "seeds": 10,
            "eps_min": (0.5, 0.8, 0.9, 1.0),
            "sigma": 0.02,
            "lr": 0.5,
            "stage_1_steps": 10,
            "steps": 7900,
        },
    }

    eps_min: tuple[lab.Frequency, ...] = (0.1, 0.25, 0.5, 1.0)
    """frequency of the minority features"""
    sigma: NotNegative = 0.03
    """noise std"""
    bias_scale: NotNegative = 1.0
    """bias at T1 in units of the paper's sqrt(2 log d/d) |w|"""
    lr: Positive = 0.05
    """smaller than in contrast-alignment, so that stage 1 has many steps"""
    steps: Count = 1600
    """T4 = d^1.99/eta is 1585 at d = 9"""
    stage_1_steps: Count = 20
    """steps over which stage-1 growth is measured; must end before T1"""
    recorded: Annotated[int, AtLeast(2)] = 32
    """number of steps at which curves are kept, denser early"""
    moment_samples: Count = 2048
    """samples per run for E[z+ z], which predicts the growth"""

    def check(self) -> None:
        super().check()
        if self.stage_1_steps > self.steps:
            least = f"must be in 1..steps={self.steps}"
            raise bad_value("stage_1_steps", self.stage_1_steps, least)

    def record_steps(self) -> np.ndarray:
        """Steps 0, 1, ... to the end, evenly spaced in the square root of time."""
        grid = np.linspace(0, math.sqrt(self.steps), self.recorded) ** 2
        return np.unique(np.append(grid.round().astype(int), self.steps))

    def cost(self) -> Cost:
        base = super().cost()
        curves = 8 * self.neurons * (self.steps + 4 * self.d + 2 * self.d1)
        return Cost(base.bytes_per_cell + curves, self.steps)

    def outputs(self) -> tuple[Output, ...]:
        curve = ("step",)
        return (
            Output("stage_1_factor", ("group",), "growth of <w,M_j> over stage_1_steps steps"),
            Output("moment", ("group",), "E[z+ z] of the mixed, summed latents"),
            Output("outside_factor", (), "growth of the outside part along itself"),
            Output("outside_energy", (), "growth of the outside part's squared norm"),
            Output("t1", (), "T1 of 000 (34); -1: not reached", "steps"),
            Output("t2", (), "T2 of 000 (61); -1: not reached", "steps"),
            Output("lucky_at_t1", ("test",), "lucky (i,j): cases, pass (36), pass it over sqrt 2"),
            Output("others_at_t1", ("test",), "i not in M_j: cases, pass (37), unused"),
            Output(
                "many_at_t1", (), "share of neurons with more features above (38) than its bound"
            ),
            Output("peak_at_t1", (), "largest outside coordinate over sqrt(log d/d1) |w|, mean"),
            Output("lucky_at_t2", ("test",), "lucky (i,j): cases, pass (9), unused"),
            Output("pure_at_t2", ("test",), "operational lucky (i,j): cases, pass (9), unused"),
            Output(
                "ordinary_over_lucky", (), "largest ordinary over largest lucky weight, mean over j"
            ),
            Output("bias_at_t2", (), "bias over |w|/sqrt(d), smallest neuron"),
            Output("dominant", curve, "traced neuron: weight on its dominant feature"),
            Output("second", curve, "traced neuron: weight on its second feature"),
            Output("noise", curve, "traced neuron: norm outside the feature space"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {
            "step": self.record_steps(),
            **super().coordinates(),
            "test": np.array(["cases", "pass", "pass_weaker"]),
        }

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        eps_min = cells.column("eps_min", context)
        trial = self.setup(cells, context)
        atoms = trial.data.dictionary
        watch = StageWatch(trial, eps_min, self.majority, self.stage_1_steps)
        trackers = {
            "along": lambda s: projections(s.parameters["weights"], atoms),
            "noise_norm": lambda s: outside(s.parameters["weights"], atoms).norm(dim=2),
        }
        record = self.record_steps().tolist()
        trajectory = trial.train(context, trackers, record, watch)
        moment = latent_moment(
            trial.data, trial.problem.attention, trial.draws.spawn("moment"), self.moment_samples
        )
        found = watch.at_stages()
        found.update(self._curves(trajectory, trial))
        found["moment"] = lab.group_means(moment, self.majority)
        found["nonfinite_step"] = trajectory.nonfinite_step

        def kept(value: Tensor) -> np.ndarray:
            """NaN for a run that stopped being finite: it must not enter a verdict."""
            if value.is_floating_point():
                lost = trajectory.nonfinite_step >= 0
                value = torch.where(lost.reshape(-1, *(1,) * (value.dim() - 1)), torch.nan, value)
            return value.cpu().numpy()

        return {name: kept(value) for name, value in found.items()}

    def _curves(self, trajectory: Trajectory, trial: lab.Trial) -> dict[str, Tensor]:
        """Curves, and the trace of the neuron that ends up purest (000 Fig. 1)."""
        along = trajectory.records["along"]
        cosines = squared_cosines(trajectory.parameters["weights"], trial.data.dictionary)
        neuron = cosines.amax(dim=2).argmax(dim=1)
        run = torch.arange(len(neuron), device=neuron.device)
        order = cosines[run, neuron].argsort(dim=1, descending=True)
        return {
            "dominant": along[run, :, neuron, order[:, 0]].abs(),
            "second": along[run, :, neuron, order[:, 1]].abs(),
            "noise": trajectory.records["noise_norm"][run, :, neuron],
        }
