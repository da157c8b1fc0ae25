"""Theorems 4.4 and 4.5 on a phase diagram (claims S4 and S5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.measure.regions import Mask, between
from rarefy.measure.statistics import BIG_O, OMEGA, Identity, judge_bound, judge_difference
from rarefy.studies.kit.reading import Naming
from rarefy.studies.topk.phase.experiment import PhaseExperiment
from rarefy.studies.topk.phase.regions import LEARNT, Numbers, at_end, axes_of, published_curves
from rarefy.theory import topk

FITTED = 0.01
"""Training loss that 002 reports to be reached everywhere."""
MOST = 0.9
"""Share of cells that makes "the region is" true: boundaries are blurred by chance."""


@dataclass(frozen=True)
class Diagram:
    """One reading of the phase diagram, with the published curves, (sigma,), over it."""

    experiment: PhaseExperiment
    sigma: Numbers
    keep: Numbers
    loss: Numbers
    """test loss at the end, (seed, sigma, keep)"""
    train: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, experiment: PhaseExperiment, results: xr.Dataset, reading: str) -> Diagram:
        sigma, keep = axes_of(results)
        loss, train = (at_end(results, name, reading) for name in ("test_loss", "train_loss"))
        return cls(experiment, sigma, keep, loss, train, *published_curves(experiment, sigma))

    def inside(self) -> Mask:
        """Cells (sigma, keep) of the published window."""
        return between(self.keep, self.low, self.high)

    def below(self) -> Mask:
        return self.keep[None, :] < self.low[:, None]

    def above(self) -> Mask:
        return (self.keep[None, :] > self.high[:, None]) & ~self.below()

    def middle(self) -> tuple[np.ndarray, Mask]:
        """Index of the K in the middle of the published window, (sigma,), and whether there is a
        window at all."""
        high = np.minimum(self.high, self.experiment.d)
        middle = np.sqrt(np.maximum(self.low, 1.0) * high)
        place = np.abs(self.keep[None, :] - middle[:, None]).argmin(axis=1)
        return place, (self.low < high) & (high >= self.keep.min())


def mostly(
    identity: Identity, hit: Mask, among: Mask, note: str = "", least: float = MOST
) -> Verdict:
    """Most of the cells ``among`` (sigma, keep) are ``hit`` (seed, sigma, keep); the cells of one
    seed share their noise, so that a seed is one sample, not a cell."""
    shares = hit[:, among].mean(axis=1) if among.any() else np.empty(0)
    return judge_bound(identity, shares, least, "at_least", note=note)


def rescue(named: Naming, here: Diagram) -> list[Verdict]:
    """Theorem 4.4 at the noise levels whose window is open and ends below d. The curves alone
    choose them: what a run's test loss was has no say in where it is judged."""
    d, classes = here.experiment.d, here.experiment.classes
    dense = np.flatnonzero(here.keep == d)
    place, open_ = here.middle()
    rows = np.flatnonzero(open_ & (here.high < d))
    chosen, whole, bound = np.empty((3, 0, 1))
    if not len(dense):
        note = f"no cell of the grid is dense, K = d = {d}"
    elif not len(rows):
        note = "premise not met: no sigma of the grid has an open window that ends below d"
    else:
        chosen, whole = here.loss[:, rows, place[rows]], here.loss[:, rows, dense[0]]
        bound = BIG_O * classes * here.train[:, rows, place[rows]]
        note = (
            f"sigma and K chosen by the curves alone, {len(rows)} noise levels from sigma = "
            f"{here.sigma[rows].min():g} on; dense {whole.mean():.3g} ({LEARNT:g} or more in "
            f"{(whole >= LEARNT).mean():.0%} of runs), there {chosen.mean():.3g}, guessing "
            f"{topk.chance_loss(classes):.3g}; {_snr_note(here)}"
        )
    what = "in the middle of the published window where the curves say that dense training fails"
    lower = named("S4", f"test loss below the dense one's {what}")
    found = [judge_difference(lower, (chosen - whole).mean(axis=1), "negative", note=note)]
    for said, hit in (
        (f"under {LEARNT:g}", chosen < LEARNT),
        (f"at most {BIG_O:g} T L_S", chosen <= bound),
    ):
        name = named("S4", f"test loss {said} {what}")
        found.append(judge_bound(name, hit.mean(axis=1), MOST, "at_least", note=note))
    return found


def _snr_note(here: Diagram) -> str:
    """How far the theorem's own premise, SNR of order 1/n at most, is from the grid."""
    experiment = here.experiment
    least = float(topk.snr(experiment.mu, float(here.sigma.max()), experiment.d))
    limit = float(topk.noise_threshold_order(experiment.samples))
    if least <= limit:
        return "the theorem's SNR <= 1/n is met at the largest sigma"
    return f"the theorem asks for SNR <= Theta(1/n), here it is {least / limit:.2g}/n or more"


def too_few(named: Naming, here: Diagram) -> list[Verdict]:
    """Theorem 4.5: too few coordinates give a test loss of order log T. That loss may be there
    at any K, where noise is loud: whether it is K that matters, the window's middle tells."""
    experiment = here.experiment
    floor = OMEGA * topk.chance_loss(experiment.classes)
    most = topk.too_few(experiment.d, np.full_like(here.sigma, experiment.mu), here.sigma)
    found = []
    for where, region in (
        ("where Theorem 4.5 speaks", here.keep[None, :] <= most[:, None]),
        ("below the published window", here.below()),
    ):
        note = f"{region.sum()} cells a seed"
        beyond = ~region & region.any(axis=1, keepdims=True)
        alike = ""
        if beyond.any():
            share = (here.loss[:, beyond] >= floor).mean()
            alike = f"; at the other K of these noise levels {share:.0%} have it too"
        at_least = named("S5", f"test loss at least log(T)/4 {where}")
        higher = named("S5", f"test loss higher {where} than in the window's middle")
        fitted = named("S5", f"training loss under {FITTED:g} {where}")
        against = f"{note}, against the middle of the published window at the same sigma"
        found += [
            mostly(at_least, here.loss >= floor, region, note + alike),
            judge_difference(higher, _above_middle(here, region), "positive", note=against),
            mostly(fitted, here.train < FITTED, region, note),
        ]
    return found


def _above_middle(here: Diagram, region: Mask) -> Numbers:
    """Mean test loss in ``region``, (sigma, keep), minus that in the middle of the published
    window at the same noise level; mean over noise levels that have both, one value per seed."""
    place, open_ = here.middle()
    rows = np.flatnonzero(open_ & region.any(axis=1))
    if not len(rows):
        return np.empty(0)
    gaps = [here.loss[:, at, region[at]].mean(axis=1) - here.loss[:, at, place[at]] for at in rows]
    return np.asarray(np.mean(gaps, axis=0))
