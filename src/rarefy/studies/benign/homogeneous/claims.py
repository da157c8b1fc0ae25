"""Verdicts of ``benign-homogeneous``: two sides of a transition, and where it lies (B15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.separation import Array, Mask, crossing, mean_error
from rarefy.studies.benign.constants import small_loss
from rarefy.studies.benign.homogeneous.experiment import HomogeneousExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.reading import Naming
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
    schedule: str
    dimension: Array
    size: Array
    strength: Array
    error: Array
    train_loss: Array

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
        return np.asarray(samples <= st.OMEGA * self.dimension[:, None])

    def small_loss(self) -> Array:
        """Share of runs with a small training loss, by seed."""
        return np.asarray((self.train_loss <= small_loss(self.study)).mean(axis=(1, 2, 3)))


def transitions(study: HomogeneousExperiment, results: xr.Dataset) -> list[Transition]:
    axes = ("dimension", "size", "strength")
    ordered = results.sortby(list(axes))
    found = []
    for schedule in texts(results, "schedule"):
        here = ordered.sel(schedule=schedule)
        values = [by_seed(here[name], *axes) for name in ("test_error", "train_loss")]
        coordinates = [here[name].values.astype(float) for name in axes]
        found.append(Transition(study, schedule, *coordinates, *values))
    return found


def verdicts(study: HomogeneousExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for here in transitions(study, results):
        named = Naming(study, scale, f"{study.setting}, {here.schedule}: ")
        if here.small_loss().mean() > 0.5:
            found += [*_sides(here, named), *_boundary(here, named)]
        else:
            found.append(_untrained(here, named))
    return found


def _untrained(here: Transition, named: Naming) -> Verdict:
    """The theorem needs a small training loss; what is there instead is told."""
    in_n, in_d, points = boundary_exponents(here, here.error)
    note = (
        f"premise not met: the median training loss is {np.nanmedian(here.train_loss):.3g}; there "
        f"the |u| at which the error is {BOUNDARY:g} goes like n^{in_n:.2g} d^{in_d:.2g} "
        f"({points} points)"
    )
    what = named("B15", f"exponent in n of the |u| at which the error is {BOUNDARY:g}")
    return st.judge_slope(
        what, st.Slope(np.nan, np.nan, np.nan, 0, 0), -EXPONENT, TOLERANCE, note=note
    )


def _sides(here: Transition, named: Naming) -> list[Verdict]:
    """Errors on either side of the transition, at a factor of 4 from x = 1."""
    weak, strong = here.ratio <= st.OMEGA, here.ratio >= st.BIG_O
    # a seed's worst cell counts: the theorem speaks of every run
    least = here.error[:, weak].min(axis=1) if weak.any() else np.empty(0)
    most = here.error[:, strong].max(axis=1) if strong.any() else np.empty(0)
    harmful = f"harmful side: error at least {CONSTANT:g} where {RATIO} is at most {st.OMEGA:g}"
    harmless = f"benign side: error at most {CONSTANT:g} where {RATIO} is at least {st.BIG_O:g}"
    fitted = f"share of runs with training loss at most {small_loss(here.study):g}"
    lowest, highest = (
        f"{end} of {there.sum()} cells, by seed"
        for end, there in (("smallest", weak), ("largest", strong))
    )
    return [
        st.judge_bound(named("B15", harmful), least, CONSTANT, "at_least", note=lowest),
        st.judge_bound(named("B15", harmless), most, CONSTANT, "at_most", note=highest),
        st.judge_bound(named("B15", fitted), here.small_loss(), 0.99, "at_least"),
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


def _boundary(here: Transition, named: Naming) -> list[Verdict]:
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
        fit = st.bootstrap_interval(
            here.error, lambda error: boundary_exponents(here, error, few)[place]
        )
        slope = st.Slope(fit.mean, fit.low, fit.high, fit.n, points)
        what = named("B15", f"exponent in {name} of the |u| at which the error is {BOUNDARY:g}")
        all_of_them = f"{note}; {everywhere[place]:.3g} with all {everywhere[2]}"
        return st.judge_slope(what, slope, claimed, TOLERANCE, note=all_of_them)

    def spread(error: Array) -> float:
        at = here.ratio_at(here.boundary(error))
        finite = at[np.isfinite(at) & few]
        return float(finite.max() / finite.min()) if len(finite) > 1 else float("nan")

    return [
        exponent(0, "n", -EXPONENT),
        exponent(1, "d", EXPONENT),
        st.judge_bound(
            named("B15", f"{RATIO} at error {BOUNDARY:g}: largest over smallest"),
            st.bootstrap_interval(here.error, spread),
            st.BIG_O,
            "at_most",
            note=note,
        ),
    ]
