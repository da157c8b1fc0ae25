"""Verdicts of ``topk-phase``: the figure (S6, S7), the theorems (S4, S5), the first update."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.regions import overlap
from rarefy.measure.statistics import (
    BIG_O,
    MEANS_FOLLOW,
    OMEGA,
    Identity,
    judge_bound,
    judge_difference,
    judge_equal,
    mean_interval,
    spearman_trend,
)
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.first_update import first_update_verdicts
from rarefy.studies.topk.phase.readings import reading_verdicts
from rarefy.studies.topk.phase.regions import (
    LEARNT,
    OVERLAP,
    axes_of,
    constants_of,
    fitted_curves,
    measured_region,
    published_constants,
    published_curves,
    published_region,
    spacing,
    test_loss,
)
from rarefy.theory import topk

FITTED = 0.01
"""Training loss that 002 reports to be reached everywhere."""
EVERYWHERE = 0.99
"""Share of cells that makes "everywhere" true, since 002 has one draw and we have several."""
MOST = 0.9
"""Share of cells that makes "the region is" true: boundaries are blurred by chance."""
FACTOR = 1.5
"""A published constant agrees with a fitted one up to this factor."""
FAILS_BY_CURVES = "where the curves say that dense training fails"


def phase_verdicts(study: PhaseExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    found: list[Verdict] = []
    for reading in results["reading"].values:
        judge = _Judge(study, results, scale, str(reading))
        found += judge.figure() + judge.theorems()
    found += reading_verdicts(study, results, scale)
    return found + first_update_verdicts(study, results, scale)


class _Judge:
    """The verdicts about one reading."""

    def __init__(
        self, study: PhaseExperiment, results: xr.Dataset, scale: str, reading: str
    ) -> None:
        self.study, self.results, self.scale, self.reading = study, results, scale, reading
        self.seeds = results["seed"].values
        self.sigma, self.keep = axes_of(results)
        self.loss = test_loss(results).sel(reading=reading).values
        train = results["train_loss"].isel(read=-1).sel(reading=reading)
        self.train = train.transpose("seed", "sigma", "keep").values
        self.published = published_region(study, results)

    def identity(self, claim: str, what: str) -> Identity:
        setting = f"{self.study.setting}, {self.reading}: {what}"
        return (claim, self.study.name, self.scale, setting)

    def shares(self, hit: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Share of the cells ``among`` (sigma, keep) that ``hit`` (seed, sigma, keep), by seed; the
        cells of one seed share their noise, so that a seed is one sample, not a cell."""
        if not among.any():
            return np.empty(0)
        return np.asarray(hit[:, among].mean(axis=1))

    # ------------------------------------------------------------------------------ Fig. 1 and 2

    def figure(self) -> list[Verdict]:
        below, above = self._outside()
        good = self.loss < LEARNT
        found = [
            judge_bound(
                self.identity("S6", f"share of cells with training loss under {FITTED:g}"),
                self.shares(self.train < FITTED, np.ones_like(self.published)),
                EVERYWHERE,
                "at_least",
                note=_spread(self.train),
            ),
            self._overlap(
                "S7", "region of test loss < 2 against the published one", self.published
            ),
            judge_bound(
                self.identity("S7", "inside the published curves the test loss is under 2"),
                self.shares(good, self.published),
                MOST,
                "at_least",
            ),
            judge_bound(
                self.identity("S7", "below the lower curve it is 2 or more"),
                self.shares(~good, below),
                MOST,
                "at_least",
                note="" if below.any() else "no cell of the grid lies there",
            ),
            judge_bound(
                self.identity("S7", "above the upper curve it is 2 or more"),
                self.shares(~good, above),
                MOST,
                "at_least",
                note="" if above.any() else "no cell of the grid lies there",
            ),
            judge_bound(
                self.identity("S7", "the window's width shrinks as sigma grows, Spearman's rho"),
                self._width_trends(good),
                -MEANS_FOLLOW,
                "at_most",
                note="one rho a seed: its noise levels share their draws",
            ),
        ]
        return found + self._fitted()

    def _width_trends(self, good: np.ndarray) -> np.ndarray:
        """A rho a seed; NaN, a missing value, where the width never changes."""
        widths = good @ spacing(self.keep)
        return np.array([spearman_trend(self.sigma, row, permutations=1).rho for row in widths])

    def _outside(self) -> tuple[np.ndarray, np.ndarray]:
        low, high = published_curves(self.study, self.sigma)
        below = self.keep[None, :] < low[:, None]
        return below, (self.keep[None, :] > high[:, None]) & ~below

    def _overlap(self, claim: str, what: str, region: np.ndarray, note: str = "") -> Verdict:
        samples = [
            overlap(measured_region(self.results, self.reading, seed), region)
            for seed in self.seeds
        ]
        everything = overlap(np.ones_like(region), region)
        return judge_bound(
            self.identity(claim, what),
            np.array(samples),
            OVERLAP,
            "at_least",
            note=f"{note}shared over joint area; the whole diagram would score {everything:.2f}",
        )

    def _fitted(self) -> list[Verdict]:
        """Constants of the published curves, fitted to the measured region."""
        fits = fitted_curves(self.study, self.results, self.reading)
        score = mean_interval([fit.overlap for fit in fits]).mean
        lower, upper = constants_of(self.study, fits)
        low, high = published_constants(self.study)
        return [
            judge_equal(
                self.identity("S7", f"log of fitted over published constant, {name} curve"),
                np.log(np.array(factors)),
                0.0,
                float(np.log(FACTOR)),
                note=f"fitted {constants}, published {published:.3g}; the fit's own overlap is "
                f"{score:.2f}",
            )
            for name, factors, constants, published in (
                ("lower", [fit.lower for fit in fits], lower, low),
                ("upper", [fit.upper for fit in fits], upper, high),
            )
        ]

    # ---------------------------------------------------------------------------------- theorems

    def theorems(self) -> list[Verdict]:
        return [*self._rescue(), *self._too_few()]

    def _middle(self) -> tuple[np.ndarray, np.ndarray]:
        """Index of the K in the middle of the published window, (sigma,), and whether there is a
        window at all."""
        low, high = published_curves(self.study, self.sigma)
        high = np.minimum(high, self.study.d)
        middle = np.sqrt(np.maximum(low, 1.0) * high)
        place = np.abs(self.keep[None, :] - middle[:, None]).argmin(axis=1)
        return place, (low < high) & (high >= self.keep.min())

    def _rescue(self) -> list[Verdict]:
        """Theorem 4.4 at the noise levels whose window is open and ends below d. The curves alone
        choose them: what a run's test loss was has no say in where it is judged."""
        what = f"in the middle of the published window {FAILS_BY_CURVES}"
        lower = self.identity("S4", f"test loss below the dense one's {what}")
        rescued = self.identity("S4", f"test loss under {LEARNT:g} {what}")
        small = self.identity("S4", f"test loss at most {BIG_O:g} T L_S {what}")
        dense = np.flatnonzero(self.keep == self.study.d)
        place, open_ = self._middle()
        ends_below_d = published_curves(self.study, self.sigma)[1] < self.study.d
        rows = np.flatnonzero(open_ & ends_below_d)
        if not len(rows) or not len(dense):
            why = "premise not met: no sigma of the grid has an open window that ends below d"
            why = why if len(dense) else f"no cell of the grid is dense, K = d = {self.study.d}"
            return [
                judge_difference(lower, np.empty(0), "negative", note=why),
                judge_bound(rescued, np.empty(0), MOST, "at_least", note=why),
                judge_bound(small, np.empty(0), MOST, "at_least", note=why),
            ]
        chosen, whole = self.loss[:, rows, place[rows]], self.loss[:, rows, dense[0]]
        bound = BIG_O * self.study.classes * self.train[:, rows, place[rows]]
        note = (
            f"sigma and K chosen by the curves alone, {len(rows)} noise levels from sigma = "
            f"{self.sigma[rows].min():g} on; dense {whole.mean():.3g} ({LEARNT:g} or more in "
            f"{(whole >= LEARNT).mean():.0%} of runs), there {chosen.mean():.3g}, guessing "
            f"{topk.chance_loss(self.study.classes):.3g}; {self._snr_note()}"
        )
        gain = (chosen - whole).mean(axis=1)
        return [
            judge_difference(lower, gain, "negative", note=note),
            judge_bound(rescued, (chosen < LEARNT).mean(axis=1), MOST, "at_least", note=note),
            judge_bound(small, (chosen <= bound).mean(axis=1), MOST, "at_least", note=note),
        ]

    def _snr_note(self) -> str:
        """How far the theorem's own premise, SNR of order 1/n at most, is from the grid."""
        least = float(topk.snr(self.study.mu, float(self.sigma.max()), self.study.d))
        limit = float(topk.noise_threshold_order(self.study.samples))
        if least <= limit:
            return "the theorem's SNR <= 1/n is met at the largest sigma"
        return f"the theorem asks for SNR <= Theta(1/n), here it is {least / limit:.2g}/n or more"

    def _too_few(self) -> list[Verdict]:
        """Theorem 4.5: too few coordinates give a test loss of order log T. That loss may be there
        at any K, where noise is loud: whether it is K that matters, the window's middle tells."""
        floor = OMEGA * topk.chance_loss(self.study.classes)
        mu = np.full_like(self.sigma, self.study.mu)
        most = topk.too_few(self.study.d, mu, self.sigma)
        regions = {
            "where Theorem 4.5 speaks": self.keep[None, :] <= most[:, None],
            "below the published window": self._outside()[0],
        }
        found = []
        for where, region in regions.items():
            note = f"{region.sum()} cells a seed"
            beyond = ~region & region.any(axis=1, keepdims=True)
            alike = ""
            if beyond.any():
                share = (self.loss[:, beyond] >= floor).mean()
                alike = f"; at the other K of these noise levels {share:.0%} have it too"
            found += [
                judge_bound(
                    self.identity("S5", f"test loss at least log(T)/4 {where}"),
                    self.shares(self.loss >= floor, region),
                    MOST,
                    "at_least",
                    note=note + alike,
                ),
                judge_difference(
                    self.identity("S5", f"test loss higher {where} than in the window's middle"),
                    self._above_middle(region),
                    "positive",
                    note=f"{note}, against the middle of the published window at the same sigma",
                ),
                judge_bound(
                    self.identity("S5", f"training loss under {FITTED:g} {where}"),
                    self.shares(self.train < FITTED, region),
                    MOST,
                    "at_least",
                    note=note,
                ),
            ]
        return found

    def _above_middle(self, region: np.ndarray) -> np.ndarray:
        """Mean test loss in ``region``, (sigma, keep), minus that in the middle of the published
        window at the same noise level; mean over noise levels that have both, one value a seed."""
        place, open_ = self._middle()
        rows = np.flatnonzero(open_ & region.any(axis=1))
        if not len(rows):
            return np.empty(0)
        gaps = [
            self.loss[:, at, region[at]].mean(axis=1) - self.loss[:, at, place[at]] for at in rows
        ]
        return np.asarray(np.mean(gaps, axis=0))


def _spread(losses: np.ndarray) -> str:
    finite = losses[np.isfinite(losses)]
    return f"largest {finite.max():.3g}, median {np.median(finite):.2g}" if finite.size else ""
