"""Verdicts of ``benign-homogeneous``: two sides of a transition, and where it lies (B15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import (
    BIG_O,
    OMEGA,
    Identity,
    Slope,
    bootstrap_interval,
    judge_bound,
    judge_slope,
)
from rarefy.studies.benign.constants import small_loss
from rarefy.studies.benign.features.separation import Array, Mask, crossing, mean_error
from rarefy.studies.benign.homogeneous.experiment import HomogeneousExperiment
from rarefy.theory import benign

BOUNDARY = 0.25
"""Error halfway between chance and none."""
CONSTANT = 0.1
"""Error that Kou et al. 2023 (Theorem 3.2) prove on the harmful side; under it overfitting counts
as benign. Not the c_3 of the other studies: 003 sets itself beside that result, of two classes."""
EXPONENT = 0.25
"""|u|^4 ~ d/n: the boundary goes like d to this power, and n to minus it."""
TOLERANCE = EXPONENT / 4
"""A quarter of the exponent, as in the other studies."""
RATIO = "n |u|^4/(K d)"
"""How the ratio of Theorem 1, 2(a) reads for noise of one kind."""


@dataclass(frozen=True)
class Transition:
    """Of one schedule. error, train_loss: (seed, dimension, size, strength)."""

    study: HomogeneousExperiment
    scale: str
    schedule: str
    dimension: Array
    size: Array
    strength: Array
    error: Array
    train_loss: Array

    def identity(self, what: str) -> Identity:
        setting = f"{self.study.setting}, {self.schedule}: {what}"
        return ("B15", self.study.name, self.scale, setting)

    @property
    def ratio(self) -> Array:
        """n |u|^4/(K sigma^4 (d - K)), the x of Theorem 1: (dimension, size, strength)."""
        return self._ratio(self.strength[None, None, :])

    def _ratio(self, strength: Array) -> Array:
        classes = self.study.classes
        samples, d = classes * self.size[None, :, None], self.dimension[:, None, None]
        return benign.classical_ratio(classes, samples, d, strength, self.study.base)

    def boundary(self, error: Array | None = None) -> Array:
        """|u| at which the mean over seeds of an error, (seed, dimension, size, strength), is
        ``BOUNDARY``: (dimension, size)."""
        mean = mean_error(self.error if error is None else error, self.study.test_samples)
        return crossing(self.strength, mean, BOUNDARY, self.study.classes)

    def ratio_at(self, boundary: Array) -> Array:
        """x at a |u| for each dimension and size."""
        return self._ratio(boundary[:, :, None])[:, :, 0]

    def few_samples(self) -> Mask:
        """Where n is at most d/4: (dimension, size)."""
        samples = self.study.classes * self.size[None, :]
        return np.asarray(samples <= OMEGA * self.dimension[:, None])

    def small_loss(self) -> Array:
        """Share of runs with a small training loss, by seed."""
        return np.asarray((self.train_loss <= small_loss(self.study)).mean(axis=(1, 2, 3)))


def transitions(
    study: HomogeneousExperiment, results: xr.Dataset, scale: str = ""
) -> list[Transition]:
    found = []
    for schedule in results["schedule"].values:
        here = results.sel(schedule=schedule).sortby(["dimension", "size", "strength"])
        here = here.transpose("seed", "dimension", "size", "strength", ...)
        axes = (here[name].values.astype(float) for name in ("dimension", "size", "strength"))
        values = (here[name].values.astype(float) for name in ("test_error", "train_loss"))
        found.append(Transition(study, scale, str(schedule), *axes, *values))
    return found


# --------------------------------------------------------------------------------------- verdicts


def homogeneous_verdicts(
    study: HomogeneousExperiment, results: xr.Dataset, scale: str
) -> list[Verdict]:
    found: list[Verdict] = []
    for here in transitions(study, results, scale):
        if here.small_loss().mean() > 0.5:
            found += [*_sides(here), *_boundary(here)]
        else:
            found.append(_untrained(here))
    return found


def _untrained(here: Transition) -> Verdict:
    """The theorem needs a small training loss; what is there instead is told."""
    in_n, in_d, points = boundary_exponents(here, here.error)
    note = (
        f"premise not met: the median training loss is {np.nanmedian(here.train_loss):.3g}; there "
        f"the |u| at which the error is {BOUNDARY:g} goes like n^{in_n:.2g} d^{in_d:.2g} "
        f"({points} points)"
    )
    what = here.identity(f"exponent in n of the |u| at which the error is {BOUNDARY:g}")
    return judge_slope(what, Slope(np.nan, np.nan, np.nan, 0, 0), -EXPONENT, TOLERANCE, note=note)


def _sides(here: Transition) -> list[Verdict]:
    """Errors on either side of the transition, at a factor of 4 from x = 1."""
    weak, strong = here.ratio <= OMEGA, here.ratio >= BIG_O
    # a seed's worst cell counts: the theorem speaks of every run
    least = here.error[:, weak].min(axis=1) if weak.any() else np.empty(0)
    most = here.error[:, strong].max(axis=1) if strong.any() else np.empty(0)
    return [
        judge_bound(
            here.identity(
                f"harmful side: error at least {CONSTANT:g} where {RATIO} is at most {OMEGA:g}"
            ),
            least,
            CONSTANT,
            "at_least",
            note=f"smallest of {weak.sum()} cells, by seed",
        ),
        judge_bound(
            here.identity(
                f"benign side: error at most {CONSTANT:g} where {RATIO} is at least {BIG_O:g}"
            ),
            most,
            CONSTANT,
            "at_most",
            note=f"largest of {strong.sum()} cells, by seed",
        ),
        judge_bound(
            here.identity(f"share of runs with training loss at most {small_loss(here.study):g}"),
            here.small_loss(),
            0.99,
            "at_least",
        ),
    ]


def boundary_exponents(
    here: Transition, error: Array, among: Mask | None = None
) -> tuple[float, float, int]:
    """Exponents of the boundary in n and in d, and how many boundary points gave them; error:
    (seed, dimension, size, strength), among: which points, (dimension, size)."""
    edge = here.boundary(error)
    there = np.isfinite(edge) if among is None else np.isfinite(edge) & among
    log_size = np.broadcast_to(np.log(here.size), edge.shape)[there]
    log_d = np.broadcast_to(np.log(here.dimension - here.study.classes)[:, None], edge.shape)[there]
    design = np.stack([np.ones(there.sum()), log_size, log_d], axis=1)
    if np.linalg.matrix_rank(design) < 3:
        return float("nan"), float("nan"), int(there.sum())
    _, in_n, in_d = np.linalg.lstsq(design, np.log(edge[there]), rcond=None)[0]
    return float(in_n), float(in_d), int(there.sum())


def _boundary(here: Transition) -> list[Verdict]:
    """Where the error is 0.25: its exponents in n and d, and whether x is the same all along.

    Judged where n is at most d/4: the law is one for many more coordinates than samples.
    """
    few = here.few_samples()
    points = boundary_exponents(here, here.error, few)[2]
    everywhere = boundary_exponents(here, here.error)
    x = np.where(few, here.ratio_at(here.boundary()), np.nan)
    note = f"{points} of {few.sum()} boundaries with n at most d/4 lie on the grid"
    if points:
        note += f", {RATIO} = {np.nanmin(x):.3g} to {np.nanmax(x):.3g} there"

    def exponent(place: int, name: str, claimed: float) -> Verdict:
        fit = bootstrap_interval(
            here.error, lambda error: boundary_exponents(here, error, few)[place]
        )
        slope = Slope(fit.mean, fit.low, fit.high, fit.n, points)
        what = here.identity(f"exponent in {name} of the |u| at which the error is {BOUNDARY:g}")
        all_of_them = f"{note}; {everywhere[place]:.3g} with all {everywhere[2]}"
        return judge_slope(what, slope, claimed, TOLERANCE, note=all_of_them)

    def spread(error: Array) -> float:
        at = here.ratio_at(here.boundary(error))
        finite = at[np.isfinite(at) & few]
        return float(finite.max() / finite.min()) if len(finite) > 1 else float("nan")

    return [
        exponent(0, "n", -EXPONENT),
        exponent(1, "d", EXPONENT),
        judge_bound(
            here.identity(f"{RATIO} at error {BOUNDARY:g}: largest over smallest"),
            bootstrap_interval(here.error, spread),
            BIG_O,
            "at_most",
            note=note,
        ),
    ]
