"""How long the first stage of training takes, as each quantity in turn is halved and doubled (002
Lemmas F.1 and H.1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rarefy.core.contracts import Cells, Context, Cost, Experiment, Output
from rarefy.core.errors import bad_value
from rarefy.studies.topk.regime_watch import held_by, spread
from rarefy.studies.topk.unpruned import Unpruned, check_dimension, unpruned
from rarefy.sweep.batches import split_by_axis
from rarefy.train.descent import State

REGIMES = ("signal", "noise")
QUANTITIES = ("filters", "classes", "samples", "lr", "mu", "sigma", "d")
COUNTS = ("filters", "classes", "samples")
RESOLUTION = 100
"""A stage's length is known to one part in so many; looking at every step takes long."""


@dataclass(frozen=True)
class Sizes:
    """All quantities of one cell, absolute: lr is eta."""

    filters: int
    classes: int
    samples: int
    lr: float
    mu: float
    sigma: float
    d: float


@dataclass(frozen=True, kw_only=True)
class StagesExperiment(Experiment):
    """Steps until signal or noise is learnt, one quantity varied at a time."""

    axes: ClassVar[tuple[str, ...]] = ("regime", "varied", "factor")
    scales: ClassVar[dict[str, dict[str, Any]]] = {
        "tiny": {
            "seeds": 2,
            "factor": (1.0, 2.0),
            "filters": 8,
            "samples": 12,
            "lr": 0.2,
            "steps": 120,
        },
        "quick": {
            "seeds": 3,
            "factor": (0.5, 1.0, 2.0),
            "filters": 12,
            "lr": 0.05,
            "steps": 1000,
        },
        "paper": {},
    }

    regime: tuple[str, ...] = REGIMES
    """where: signal (SNR above T n^(-1/4) in all cells) or noise (below 1/n in all cells)"""
    varied: tuple[str, ...] = QUANTITIES
    """the quantity that is multiplied by factor"""
    factor: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)
    """by what it is multiplied"""
    filters: int = 20
    """filters a class (m)"""
    classes: int = 4
    """number of classes (T)"""
    samples: int = 40
    """training samples (n)"""
    d: int = 10**13
    """coordinates of a patch"""
    mu: float = 10.0
    """strength of the signal"""
    snr_signal: float = 24.0
    """signal-to-noise ratio of the signal regime; above T n^(-1/4) for 4 T, and a quarter for T"""
    snr_noise: float = 1 / 800
    """signal-to-noise ratio of the noise regime; four times it is below 1/n for 4 n"""
    sigma_0: float = 1e-11
    """std of the initial filters"""
    lr: float = 0.02
    """learning rate where nothing is varied, in units of m/(mu^2/T + sigma_p^2 d/n)"""
    levels: tuple[float, ...] = (1.0, 3.0)
    """what all coefficients must reach; the paper has 3"""
    steps: int = 3000
    """most steps; a stage that is longer counts as missing"""
    seeds: int = 10

    def check(self) -> None:
        super().check()
        for name, known in (("regime", REGIMES), ("varied", QUANTITIES)):
            for choice in getattr(self, name):
                if choice not in known:
                    raise bad_value(name, choice, f"must be one of {', '.join(known)}")
        for name in ("mu", "snr_signal", "snr_noise", "sigma_0", "lr"):
            if not 0 < getattr(self, name) < math.inf:
                raise bad_value(name, getattr(self, name), "must be positive and finite")
        for name in ("factor", "levels"):
            for value in getattr(self, name):
                if not 0 < value < math.inf:
                    raise bad_value(name, value, "must be positive and finite")
        for name, least in (("filters", 1), ("classes", 2), ("samples", 1), ("steps", 1)):
            if getattr(self, name) < least:
                raise bad_value(name, getattr(self, name), f"must be at least {least}")
        for varied in self.varied:
            for factor in self.factor:
                self._check_cell(varied, factor)

    def _check_cell(self, varied: str, factor: float) -> None:
        sizes = self.sizes("signal", varied, factor)
        if varied in COUNTS and getattr(sizes, varied) != factor * getattr(self, varied):
            raise bad_value("factor", factor, f"must leave {varied} a whole number")
        if sizes.classes < 2 or sizes.samples < sizes.classes:
            raise bad_value("factor", factor, "needs 2 classes and a sample of each in every cell")
        check_dimension(sizes.d, sizes.classes, sizes.filters, sizes.samples, "auto")

    def sizes(self, regime: str, varied: str, factor: float) -> Sizes:
        """All quantities of a cell."""
        snr = self.snr_signal if regime == "signal" else self.snr_noise
        sigma = self.mu / (snr * math.sqrt(self.d))
        speed = self.mu**2 / self.classes + sigma**2 * self.d / self.samples
        here: dict[str, float] = {
            "filters": self.filters,
            "classes": self.classes,
            "samples": self.samples,
            "lr": self.lr * self.filters / speed,
            "mu": self.mu,
            "sigma": sigma,
            "d": float(self.d),
        }
        here[varied] *= factor
        counts = {name: int(here[name]) for name in COUNTS}
        return Sizes(**counts, lr=here["lr"], mu=here["mu"], sigma=here["sigma"], d=here["d"])

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

    def simulate(self, cells: Cells, context: Context) -> dict[str, np.ndarray]:
        columns = (cells.values[axis].tolist() for axis in self.axes)
        sizes = [self.sizes(*cell) for cell in zip(*columns, strict=True)]
        shapes = [f"{each.filters} {each.classes} {each.samples}" for each in sizes]
        marked = Cells({"shape": np.array(shapes), "at": np.arange(len(cells))}, cells.keys)

        def of_shape(shape: str, part: Cells) -> dict[str, np.ndarray]:
            return self._run([sizes[at] for at in part.values["at"]], part, context)

        return split_by_axis(marked, "shape", of_shape)

    def prepare(self, sizes: list[Sizes], cells: Cells, context: Context) -> Unpruned:
        def column(name: str, dtype: torch.dtype) -> Tensor:
            values = [getattr(each, name) for each in sizes]
            return torch.tensor(values, dtype=torch.float64).to(context.device, dtype)

        return unpruned(
            cells.draws(context),
            classes=sizes[0].classes,
            filters=sizes[0].filters,
            samples=sizes[0].samples,
            d=column("d", torch.float64),
            mu=column("mu", context.dtype),
            sigma=column("sigma", context.dtype),
            sigma_0=self.sigma_0,
            lr=column("lr", context.dtype),
        )

    def _run(self, sizes: list[Sizes], cells: Cells, context: Context) -> dict[str, np.ndarray]:
        experiment = self.prepare(sizes, cells, context)
        signal, noise = experiment.seen_signal(), experiment.seen_noise()
        one_hot = experiment.samples.one_hot()
        levels = torch.tensor(self.levels, dtype=context.dtype, device=context.device)
        reached = torch.full((2, len(cells), len(levels)), torch.nan, device=context.device)

        def look(state: State) -> None:
            if state.step % max(1, state.step // RESOLUTION):
                return
            held = held_by(experiment, state.parameters)
            least = torch.stack(
                [spread(held.own_gamma, signal)[1], spread(held.own_rho(one_hot), noise)[1]]
            )
            now = (least[:, :, None] >= levels) & reached.isnan()
            reached[now] = float(state.step)

        seen = experiment.train(context, self.steps, after_update=look)
        gamma, rho = reached.cpu().numpy()
        return {
            "gamma_stage": gamma,
            "rho_stage": rho,
            "nonfinite_step": seen.nonfinite_step.cpu().numpy(),
        }
