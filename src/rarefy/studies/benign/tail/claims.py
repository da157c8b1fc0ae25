"""Verdicts of ``benign-tail`` (B4): does log error fall at least linearly in L^2 Gamma?

Yardstick: a network whose right score beats the others by a |zeta| standard deviations errs with
probability chance * 2 Q(a |zeta|), and beyond L with the mean of that over |zeta| >= L. The a that
gives a measured error is its *strength*. The theorem's bound with one constant for all settings
says that a^2/Gamma does not fall: not in L at fixed Gamma, not in Gamma at fixed L.

The yardstick came after a first look at errors: log error itself is less than linear in L^2 Gamma
over the range that can be measured, and would be by this law too, which obeys the bound. So the
words of the claim are judged as they stand beside it: the exponent of log error with nothing
allowed, and the bound with its constant read as 1/4.

An exponent in Gamma below 1 need not be the network's fault. The best classifier by noise has for
a^2 the squared ratio of eigenvalues, about sqrt(Gamma rank) while Gamma is small against the rank:
it obeys the bound with c = 1/2, and yet falls more slowly than linearly. So by the yardstick no
more is asked for in Gamma than the best has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure import statistics as st
from rarefy.studies.benign.constants import READ, premise, small_mean_loss
from rarefy.studies.benign.tail.experiment import TailExperiment
from rarefy.studies.kit.arrays import by_seed, texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.kit.worst import corrected_level, worst_of
from rarefy.theory.class_noise_bayes import least_noise_error, special_ratio
from rarefy.theory.tail_law import strength

Array = NDArray[np.float64]

ENOUGH = 10.0
"""Errors of equal weight, all seeds together, from which on an error is measured: the logarithm is
then known to about 0.3."""
EXPONENT = 1 - 0.25
"""Smallest exponent that counts as linear: over two decades of L^2 Gamma the constant then falls by
a factor of 3.2, less than the 4 that constants are allowed."""
CELLS = 3
"""Fewest measured cells that carry an exponent."""
BEST = "the best classifier by noise (c = 1/2)"
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

    def exponent(self, along: str, floor: float = EXPONENT) -> tuple[st.Interval, str]:
        """Exponent p of (log error) ~ x^p, by the yardstick, with x = L^2 at fixed Gamma (``along``
        "length") or x = Gamma at fixed L; of all that are fixed the one that decides whether every
        exponent is at least ``floor``, and its name. The intervals hold for all together."""
        if along == "length":
            where, group, linear, name = np.log(self.length**2), self.gamma, 1.0, "Gamma"
        else:
            where, group, linear, name = np.log(self.gamma), self.length, 0.0, "L"
        fixed = [each for each in np.unique(group) if (group == each).sum() >= CELLS]
        if not fixed:
            return NOTHING, f"no {name} with {CELLS} measured cells"
        chance = 1 - 1 / self.classes

        def fitted(error: Array, here: Array) -> float:
            a = strength(error.mean(axis=0), self.length[here], chance)
            return linear + slope(where[here], 2 * np.log(a))

        level = corrected_level(len(fixed))
        found = [
            st.bootstrap_interval(self.error[:, here], partial(fitted, here=here), level=level)
            for here in (group == each for each in fixed)
        ]
        worst = worst_of([one.low for one in found], [one.high for one in found], floor=floor)
        values = ", ".join(f"{one.mean:.2g}" for one in found)
        return found[worst], (
            f"decided by {name} = {fixed[worst]:g}; {name} = "
            f"{', '.join(f'{each:g}' for each in fixed)}: {values}"
        )

    def plain(self) -> st.Interval:
        """Exponent of -log(error) in L^2 Gamma over all cells, no yardstick."""
        if len(np.unique(self.x)) < CELLS:
            return NOTHING
        return st.bootstrap_interval(self.error, lambda error: self.plain_slope(error.mean(axis=0)))

    def plain_slope(self, error: Array) -> float:
        """The same of one error per cell."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return slope(np.log(self.x), np.log(-np.log(error)))

    def _squares(self, error: Array) -> Array:
        """a^2 of the mean errors, (cell,)."""
        return strength(error.mean(axis=0), self.length, 1 - 1 / self.classes) ** 2

    def constants(self, error: Array) -> Array:
        """The largest c with error <= (K - 1) exp(-c L^2 Gamma), (cell,)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log((self.classes - 1) / error.mean(axis=0)) / self.x)

    def largest_constant(self) -> st.Interval:
        """The same for all cells at once."""
        if not self.x.size:
            return NOTHING
        return st.bootstrap_interval(self.error, lambda error: float(self.constants(error).min()))

    def lasting(self) -> st.Interval:
        """Smallest a^2/Gamma in the further half of the cells (by L^2 Gamma) over the median of the
        nearer half."""
        if len(np.unique(self.x)) < 2:
            return NOTHING
        far = self.x > np.median(self.x)

        def kept(error: Array) -> float:
            constant = self._squares(error) / self.gamma
            if not (np.isfinite(constant[far]).any() and np.isfinite(constant[~far]).any()):
                return np.nan
            return float(np.nanmin(constant[far]) / np.nanmedian(constant[~far]))

        return st.bootstrap_interval(self.error, kept)


def slope(x: Array, y: Array) -> float:
    """Least squares of y on x; cells without a value are left out."""
    there = np.isfinite(x) & np.isfinite(y)
    if len(np.unique(x[there])) < 2:
        return np.nan
    dx, dy = x[there] - x[there].mean(), y[there] - y[there].mean()
    return float(dx @ dy / (dx @ dx))


def measured_cells(
    study: TailExperiment,
    results: xr.Dataset,
    schedule: str,
    criterion: str,
    least: float = READ.tail,
) -> TailCells:
    """Cells with Gamma of at least ``least``, L > 0, and enough errors."""
    here = results.sel(schedule=schedule, criterion=criterion)
    error = by_seed(here["tail_error"], "gamma", "length")
    seen = by_seed(here["errors_seen"], "gamma", "length").sum(axis=0)
    gamma, length = np.meshgrid(here["gamma"].values, here["length"].values, indexing="ij")
    used = (gamma >= least) & (length > 0) & (seen >= ENOUGH) & np.isfinite(error).all(axis=0)
    return TailCells(error[:, used], gamma[used], length[used], study.classes)


def verdicts(study: TailExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for schedule in texts(results, "schedule"):
        loss = results["train_loss"].sel(schedule=schedule).mean("class").values
        why = premise(study, loss)
        for criterion in texts(results, "criterion"):
            setting = f"{study.setting}, {schedule}, {IN_WORDS[criterion]}: "
            named = Naming(study, scale, setting)
            cells = measured_cells(study, results, schedule, criterion)
            fall = _fall(cells, named, _control(results, schedule, criterion))
            # how fast it falls is a question about trained networks
            rest = [] if np.nanmean(loss) > small_mean_loss(study) else _speed(study, cells, named)
            found += [undecided(verdict, why) for verdict in (fall, *rest)]
    return found


def _count(cells: TailCells) -> str:
    return f"{len(cells.x)} cells with Gamma >= {READ.tail:g} and errors enough to measure"


def _fall(cells: TailCells, named: Naming, control: str) -> Verdict:
    least = f"{cells.error.mean(axis=0).min():.2g}" if cells.x.size else ""
    return st.judge_trend(
        named("B4", "error falls as L^2 Gamma grows"),
        st.spearman_trend(cells.x, cells.error, within_rows=True),
        "decreasing",
        note=joined(_count(cells), f"smallest error measured {least}" if least else "", control),
    )


def _speed(study: TailExperiment, cells: TailCells, named: Naming) -> list[Verdict]:
    best, in_gamma = best_exponents(study, cells)
    found = [
        st.judge_bound(
            named("B4", "exponent of -log(error) in L^2 Gamma, as claimed"),
            cells.plain(),
            1.0,
            "at_least",
            note=f"{_count(cells)}; {BEST} has {best:.2g} on the same cells",
        ),
        st.judge_bound(
            named("B4", "largest c with error at most (K - 1) exp(-c L^2 Gamma), measured cells"),
            cells.largest_constant(),
            READ.c_2,
            "at_least",
            note=f"{_constant(cells)}; c is free, 1/4 is our reading",
        ),
    ]
    for along, fixed, most in (
        ("length", "in L^2 at fixed Gamma (1: linear)", 1.0),
        ("gamma", f"in Gamma at fixed L ({in_gamma:.2g}: {BEST})", min(in_gamma, 1.0)),
    ):
        exponent, note = cells.exponent(along, EXPONENT * most)
        found.append(
            st.judge_bound(
                named("B4", f"smallest exponent of the strength squared {fixed}"),
                exponent,
                EXPONENT * most,
                "at_least",
                note=f"{note}; by the yardstick, chosen after a first look; {most:.2g} less a "
                "quarter is allowed",
            )
        )
    what = "a^2/Gamma, smallest of the far over median of the near half of L^2 Gamma"
    note = "a: strength by the yardstick, chosen after a first look"
    return [
        *found,
        st.judge_bound(named("B4", what), cells.lasting(), st.OMEGA, "at_least", note=note),
    ]


def best_exponents(study: TailExperiment, cells: TailCells) -> tuple[float, float]:
    """Of the best classifier by noise, on the same cells by |zeta|: the exponent of -log(error) in
    L^2 Gamma, and that of its a^2, the squared ratio of eigenvalues, in Gamma."""
    if not cells.x.size:
        return np.nan, np.nan
    ratio = special_ratio(cells.gamma, study.d - study.classes)
    error = least_noise_error(ratio, study.classes, "gaussian", cells.length)
    return cells.plain_slope(error), slope(np.log(cells.gamma), 2 * np.log(ratio))


def _control(results: xr.Dataset, schedule: str, criterion: str) -> str:
    """What selection alone does, where the noise says nothing about the class."""
    if 1.0 not in results["gamma"].values:
        return ""
    here = results.sel(schedule=schedule, criterion=criterion, gamma=1.0)
    error, length = here["tail_error"].mean("seed").values, here["length"].values
    there = (here["errors_seen"].sum("seed").values >= ENOUGH) & np.isfinite(error)
    if not there.any():
        return ""
    last = int(np.flatnonzero(there)[-1])
    return f"control Gamma = 1: {error[0]:.2g} at L = {length[0]:g}, {error[last]:.2g} at " + (
        f"{length[last]:g}" + (", by selection alone" if criterion == "definition" else "")
    )


def _constant(cells: TailCells) -> str:
    if not cells.x.size:
        return "no cell with errors enough to measure"
    c = cells.constants(cells.error)
    place = int(c.argmin())
    return (
        f"(K - 1) exp(-c L^2 Gamma) bounds all {len(c)} measured cells with c = {c[place]:.2g}, "
        f"set by Gamma = {cells.gamma[place]:g}, L = {cells.length[place]:g}"
    )
