"""How long the first stage of training takes, as each quantity in turn is halved and doubled (002
Lemmas F.1 and H.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import torch

from rarefy.core.contracts import Cells, Context, Cost, Output
from rarefy.core.errors import bad_value
from rarefy.core.parameters import AtLeast, Count, OneOf, Positive
from rarefy.studies.topk.unpruned import Sizes, Unpruned, UnprunedExperiment, check_dimension
from rarefy.studies.topk.watch import held_by, spread
from rarefy.train.descent import State

REGIMES = ("signal", "noise")
QUANTITIES = ("filters", "classes", "samples", "lr", "mu", "sigma", "d")
COUNTS = ("filters", "classes", "samples")
RESOLUTION = 100
"""A stage's length is known to one part in so many; looking at every step takes long."""


@dataclass(frozen=True, kw_only=True)
class StagesExperiment(UnprunedExperiment):
    """Steps until signal or noise is learnt, one quantity varied at a time."""

    axes: ClassVar[tuple[str, ...]] = ("regime", "varied", "factor")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {"seeds": 2, "factor": (1.0, 2.0)}
        | {"filters": 8, "samples": 12, "lr": 0.2, "steps": 120},
        "quick": {"seeds": 3, "factor": (0.5, 1.0, 2.0), "filters": 12, "lr": 0.05, "steps": 1000},
        "paper": {},
    }

    regime: tuple[Annotated[str, OneOf(REGIMES)], ...] = REGIMES
    """where: signal (SNR above T n^(-1/4) in all cells) or noise (below 1/n in all cells)"""
    varied: tuple[Annotated[str, OneOf(QUANTITIES)], ...] = QUANTITIES
    """the quantity that is multiplied by factor"""
    factor: tuple[Positive, ...] = (0.5, 1.0, 2.0, 4.0)
    """by what it is multiplied"""
    classes: Annotated[int, AtLeast(2)] = 4
    """number of classes (T)"""
    samples: Count = 40
    """training samples (n)"""
    d: Count = 10**13
    """coordinates of a patch"""
    snr_signal: Positive = 24.0
    """signal-to-noise ratio of the signal regime; above T n^(-1/4) for 4 T, and a quarter for T"""
    snr_noise: Positive = 1 / 800
    """signal-to-noise ratio of the noise regime; four times it is below 1/n for 4 n"""
    lr: Positive = 0.02
    """learning rate where nothing is varied, in units of m/(mu^2/T + sigma_p^2 d/n)"""
    levels: tuple[Positive, ...] = (3.0,)
    """what all coefficients must reach within ``steps``, or else the stage counts as missing; the
    last is judged, and the paper has 3"""
    seeds: Count = 20

    def check(self) -> None:
        for varied in self.varied:
            for factor in self.factor:
                if varied in COUNTS and not self._whole(varied, factor):
                    raise bad_value("factor", factor, f"must leave {varied} a whole number")
                sizes = self.sizes("signal", varied, factor)
                if sizes.classes < 2 or sizes.samples < sizes.classes:
                    least = "needs 2 classes and a sample of each in every cell"
                    raise bad_value("factor", factor, least)
                check_dimension(sizes.d, sizes.classes, sizes.filters, sizes.samples, "auto")

    def _whole(self, varied: str, factor: float) -> bool:
        count = factor * getattr(self, varied)
        return bool(count >= 1 and count == int(count))

    def sizes(self, regime: str, varied: str, factor: float) -> Sizes:
        snr = self.snr_signal if regime == "signal" else self.snr_noise
        sigma = self.mu / (snr * math.sqrt(self.d))
        speed = self.mu**2 / self.classes + sigma**2 * self.d / self.samples
        here: dict[str, Any] = {
            "filters": self.filters,
            "classes": self.classes,
            "samples": self.samples,
            "lr": self.lr * self.filters / speed,
            "mu": self.mu,
            "sigma": sigma,
            "d": float(self.d),
        }
        here[varied] *= factor
        here |= {name: int(here[name]) for name in COUNTS}
        return Sizes(**here, output_scale=1 / here["filters"])

    @property
    def setting(self) -> str:
        return f"n={self.samples} T={self.classes} m={self.filters} d={float(self.d):g}"

    def outputs(self) -> tuple[Output, ...]:
        return (
            Output("gamma_stage", ("level",), "steps until gamma of all positive filters", "steps"),
            Output("rho_stage", ("level",), "steps until rho of all positive filters", "steps"),
        )

    def coordinates(self) -> dict[str, np.ndarray]:
        return {"level": np.array(self.levels)}

    def cost(self) -> Cost:
        most = int(max(1.0, *self.factor))
        rows, patches = self.classes * self.filters * most, (self.samples + self.classes) * most
        bytes_per_cell = 4 * (rows * patches * 12 + patches**2 + rows**2 * 2)
        return Cost(bytes_per_cell=bytes_per_cell, steps_per_cell=self.steps)

    def prepare(self, cells: Cells, context: Context) -> Unpruned:
        return Unpruned.drawn(self.sizes_of(cells), cells.draws(context), self.sigma_0)

    def measure(self, trial: Unpruned, context: Context) -> dict[str, np.ndarray]:
        signal, noise, one_hot = trial.seen_signal(), trial.seen_noise(), trial.samples.one_hot()
        levels = torch.tensor(self.levels, dtype=context.dtype, device=context.device)
        reached = torch.full((2, len(trial.lr), len(levels)), torch.nan, device=context.device)

        def look(state: State) -> None:
            if state.step % max(1, state.step // RESOLUTION):
                return
            held = held_by(trial, state.parameters)
            least = torch.stack(
                [spread(held.own_gamma, signal)[1], spread(held.own_rho(one_hot), noise)[1]]
            )
            now = (least[:, :, None] >= levels) & reached.isnan()
            reached[now] = float(state.step)

        seen = trial.train(context, self.steps, after_update=look)
        gamma, rho = reached.cpu().numpy()
        return {
            "gamma_stage": gamma,
            "rho_stage": rho,
            "nonfinite_step": seen.nonfinite_step.cpu().numpy(),
        }
