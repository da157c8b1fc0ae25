"""Verdicts of ``benign-tail`` (B4): does the error on long-tailed data fall with Gamma, and as fast
as exp(-c_2 L^2 Gamma) with one constant c_2?

c_2 is free, so its size cannot be judged, but that it stays: at each Gamma the largest c with error
<= (K - 1) exp(-c L^2 Gamma) for every L measured. From the smallest Gamma of which 2(b) speaks (C_2
read as 4) to the largest it may fade by no more than the factor 4 that constants are allowed. The
best classifier by noise keeps two fifths of it; an error that does not depend on Gamma fades in
proportion to Gamma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.benign.constants import READ, premise
from rarefy.studies.benign.tail.experiment import TailExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming

Array = NDArray[np.float64]

ENOUGH = 10.0
"""Errors of equal weight, all seeds together, from which on an error is measured: the logarithm is
then known to about 0.3."""
DELTA = 0.1
"""Probability of failure in Condition 1, as in the tables of conditions."""
NOTHING = st.Interval(np.nan, np.nan, np.nan, 0)
IN_WORDS = {"definition": "tail by Def. 1", "special": "tail by |zeta| >= L"}


@dataclass(frozen=True)
class TailCells:
    """The cells (Gamma, L) at which an error was measured, of one schedule and criterion: error,
    (seed, cell); gamma, length, (cell,)."""

    error: Array
    gamma: Array
    length: Array
    classes: int

    @property
    def x(self) -> Array:
        return self.length**2 * self.gamma

    def constants(self, error: Array) -> Array:
        """The largest c with error <= (K - 1) exp(-c L^2 Gamma), (..., cell), of (..., seed,
        cell)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((self.classes - 1) / st.finite_mean(error, -2)) / self.x)

    def constant_at(self, gamma: float, error: Array) -> Array:
        """The same for every L at one Gamma."""
        return np.asarray(self.constants(error)[..., self.gamma == gamma].min(axis=-1))

    def lasting(self) -> st.Interval:
        """c_2 at the largest Gamma over that at the smallest."""
        if len(np.unique(self.gamma)) < 2:
            return NOTHING
        last, first = float(self.gamma.max()), float(self.gamma.min())

        def kept(error: Array) -> Array:
            return self.constant_at(last, error) / self.constant_at(first, error)

        return st.bootstrap_interval(self.error, kept)


def measured_cells(
    study: TailExperiment, results: xr.Dataset, schedule: str, criterion: str
) -> TailCells:
    """Cells with Gamma of at least C_2, L > 0, and enough errors."""
    here = results.sel(schedule=schedule, criterion=criterion)
    error = by_seed(here["tail_error"], "gamma", "length")
    seen = np.nansum(by_seed(here["errors_seen"], "gamma", "length"), axis=0)
    gamma, length = np.meshgrid(here["gamma"].values, here["length"].values, indexing="ij")
    used = (gamma >= READ.tail) & (length > 0) & (seen >= ENOUGH)
    return TailCells(error[:, used], gamma[used], length[used], study.classes)


def verdicts(study: TailExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    ordered = results.sortby("gamma")
    for schedule in texts(results, "schedule"):
        loss = results["train_loss"].sel(schedule=schedule).mean("class").values
        for criterion in texts(results, "criterion"):
            primary = (schedule, criterion) == ("trained", "definition")
            before = "" if primary else f"{schedule}, {IN_WORDS[criterion]}: "
            named = Naming(study, scale, before)
            cells = measured_cells(study, ordered, schedule, criterion)
            here = ordered.sel(schedule=schedule, criterion=criterion)
            both = [
                _falls(here, named, "B4.1" if primary else "B4"),
                _lasts(cells, named, "B4.2" if primary else "B4"),
            ]
            found += [undecided(verdict, premise(study, loss)) for verdict in both]
    return found


def _falls(here: xr.Dataset, named: Naming, claim: str) -> Verdict:
    """At the L that is nearest to 1: the theorem says nothing of L near 0, and errors beyond a
    large L are too few."""
    length = here["length"].values
    at = float(length[np.abs(length - 1).argmin()])
    error = by_seed(here["tail_error"].sel(length=at), "gamma")
    means, gamma = st.finite_mean(error), here["gamma"].values
    return st.judge_trend(
        named(claim, f"error beyond L = {at:g} falls with Gamma"),
        st.spearman_trend(gamma, error, within_rows=True),
        "decreasing",
        note=f"from {means[0]:.3g} at Gamma {gamma[0]:g} to {means[-1]:.2g} at {gamma[-1]:g}",
    )


def _lasts(cells: TailCells, named: Naming, claim: str) -> Verdict:
    told = ", ".join(
        f"{cells.constant_at(gamma, cells.error):.3g} at {gamma:g}"
        for gamma in np.unique(cells.gamma)
    )
    count = f"{len(cells.x)} cells with Gamma >= {READ.tail:g} and errors enough to measure"
    verdict = st.judge_bound(
        named(claim, "c_2 at the largest Gamma over c_2 at the smallest"),
        cells.lasting(),
        st.OMEGA,
        "at_least",
        note=joined(count, f"c_2 by Gamma: {told}" if told else ""),
    )
    return undecided(verdict, _missed(cells))


def _missed(cells: TailCells) -> str:
    """Condition 1 (a) asks for |A^T A|_F of C sqrt(log(K/delta)) times |A^T A|_op at least. With
    one special direction per class F^2 is Gamma and op^2 Gamma - 1 times what classes share."""
    if not len(cells.gamma):
        return ""
    gamma, asked = float(cells.gamma.min()), math.sqrt(math.log(cells.classes / DELTA))
    ratio = math.sqrt(gamma / (gamma - 1))
    if ratio >= asked:
        return ""
    return (
        f"Condition 1 (a), |A^T A|_F over |A^T A|_op is {ratio:.3g} at Gamma {gamma:g}, where "
        f"{asked:.3g} is asked with C = 1"
    )
