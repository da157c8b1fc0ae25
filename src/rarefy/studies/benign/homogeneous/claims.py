"""Verdicts of ``benign-homogeneous``: two sides of a transition, and where it lies (B15)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure import statistics as st
from rarefy.measure.separation import Array, Mask, crossing, mean_error
from rarefy.studies.benign.constants import untrained
from rarefy.studies.benign.homogeneous.experiment import HomogeneousExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
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
        """|u| at which the mean over seeds of an error, (..., seed, dimension, size, strength), is
        ``BOUNDARY``: (..., dimension, size)."""
        mean = mean_error(self.error if error is None else error, self.study.test_samples, axis=-4)
        return crossing(self.strength, mean, BOUNDARY, self.study.classes)

    def ratio_at(self, boundary: Array) -> Array:
        """x at a |u| for each dimension and size."""
        return self._ratio(boundary[..., None])[..., 0]

    def few_samples(self) -> Mask:
        """Where n is at most d/4: (dimension, size)."""
        samples = self.study.classes * self.size[None, :]
        return np.asarray(samples <= st.OMEGA * self.dimension[:, None])


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
        primary = here.schedule == "trained"
        named = Naming(study, scale, "" if primary else f"{here.schedule}: ")
        claims = ("B15.1", "B15.2", "B15.3") if primary else ("B15",) * 3
        judged = [*_sides(here, named, claims[:2]), _spread(here, named, claims[2])]
        if primary:
            judged += _exponents(here, named)
        found += [undecided(verdict, untrained(study, here.train_loss)) for verdict in judged]
    return found


def _sides(here: Transition, named: Naming, claims: Sequence[str]) -> list[Verdict]:
    """Errors on either side of the transition, at a factor of 4 from x = 1."""
    weak, strong = here.ratio <= st.OMEGA, here.ratio >= st.BIG_O
    # a seed's worst cell counts: the theorem speaks of every run
    least = here.error[:, weak].min(axis=1) if weak.any() else np.empty(0)
    most = here.error[:, strong].max(axis=1) if strong.any() else np.empty(0)
    harmful = f"harmful side: error at least {CONSTANT:g} where {RATIO} is at most {st.OMEGA:g}"
    harmless = f"benign side: error at most {CONSTANT:g} where {RATIO} is at least {st.BIG_O:g}"
    lowest, highest = (
        f"{end} of {there.sum()} cells, by seed"
        for end, there in (("smallest", weak), ("largest", strong))
    )
    return [
        st.judge_bound(named(claims[0], harmful), least, CONSTANT, "at_least", note=lowest),
        st.judge_bound(named(claims[1], harmless), most, CONSTANT, "at_most", note=highest),
    ]


def boundary_exponents(here: Transition, error: Array, among: Mask) -> Array:
    """Exponents of the boundary in n and in d of many errors, (resample, 2); error: (resample,
    seed, dimension, size, strength), among: which boundary points, (dimension, size)."""
    edge = np.where(among, here.boundary(error), np.nan)
    design = np.stack(
        np.broadcast_arrays(
            1.0, np.log(here.size), np.log(here.dimension - here.study.classes)[:, None]
        ),
        axis=-1,
    )
    found = np.full((len(edge), 2), np.nan)
    # all that have the same points are fitted at once
    patterns, which = np.unique(np.isfinite(edge), axis=0, return_inverse=True)
    for place, there in enumerate(patterns):
        mine = which.ravel() == place
        if np.linalg.matrix_rank(design[there]) == 3:
            logs = np.log(edge[mine][:, there])
            found[mine] = np.linalg.lstsq(design[there], logs.T, rcond=None)[0][1:].T
    return found


def _on_grid(here: Transition) -> tuple[Mask, int, str]:
    """Boundaries that are judged, those with n at most d/4 (the law is one for many more
    coordinates than samples), how many of them lie on the grid, and a note."""
    few = here.few_samples()
    x = np.where(few, here.ratio_at(here.boundary()), np.nan)
    points = int(np.isfinite(x).sum())
    note = f"{points} of {few.sum()} boundaries with n at most d/4 lie on the grid"
    if points:
        note += f", {RATIO} = {np.nanmin(x):.3g} to {np.nanmax(x):.3g} there"
    return few, points, note


def _spread(here: Transition, named: Naming, claim: str) -> Verdict:
    """Whether x is the same all along the boundary."""
    few, _, note = _on_grid(here)

    def spread(error: Array) -> Array:
        at = here.ratio_at(here.boundary(error))
        finite, both = np.isfinite(at) & few, (1, 2)
        most = np.where(finite, at, -np.inf).max(axis=both)
        least = np.where(finite, at, np.inf).min(axis=both)
        return np.where(finite.sum(axis=both) > 1, most, np.nan) / least

    return st.judge_bound(
        named(claim, f"{RATIO} at error {BOUNDARY:g}: largest over smallest"),
        st.bootstrap_interval(here.error, spread),
        st.BIG_O,
        "at_most",
        note=note,
    )


def _exponents(here: Transition, named: Naming) -> list[Verdict]:
    few, points, note = _on_grid(here)

    def exponent(place: int, name: str, claimed: float) -> Verdict:
        fit = st.bootstrap_interval(
            here.error, lambda error: boundary_exponents(here, error, few)[:, place]
        )
        slope = st.Slope(fit.mean, fit.low, fit.high, fit.n, points)
        what = named("B15", f"exponent in {name} of the |u| at which the error is {BOUNDARY:g}")
        return st.judge_slope(what, slope, claimed, TOLERANCE, note=note)

    return [exponent(0, "n", -EXPONENT), exponent(1, "d", EXPONENT)]
