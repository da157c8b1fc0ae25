"""S9 and S10: what pruning gains or costs at moderate and at extreme noise (002 Tables 1 and 2).

Differences from dense are averaged over the noise levels of a band seed by seed, so that a verdict
is about the band's mean and its interval about training again. 002 does not say where its noise is:
each place has verdicts of its own. At noise 0 all three places are the same cell. Where the dense
network is not certainly better than guessing there is nothing to lose, and nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import (
    Identity,
    Interval,
    judge_bound,
    judge_difference,
    judge_equal,
    mean_interval,
)
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.studies.sparse.advice import advice_verdicts
from rarefy.studies.sparse.pairs import FEWEST, band_gain, cautious, number, seed_means
from rarefy.studies.sparse.published import published
from rarefy.studies.sparse.readings import PLACES, Paired, band_of, placed, readings, setting_of
from rarefy.tools.sparse_experiment import SparseTraining

AGGRESSIVE = 0.2
"""Keeps below are aggressive pruning (002 has 10 %); from here on it is moderate."""
LIGHT = 0.5
"""Keeps from here on are light pruning: 002 Table 2 has no clear loss at 80 and 50 %."""
GAIN, GAIN_WITHIN = 1.0, 0.5
"""Points: 002 Table 1 has gains of about half a point to one and a half."""
SMALL_COST = 1.0
"""Points; Table 1 has 0.62 for 10 % of the weights, on average over noise up to 0.5."""
NEUTRAL = 0.1
"""Points: a smaller loss is none, 10 of 10,000 test images. Fixed before looking."""
GUESS = {"digits": 10.4, "mnist": 11.35, "cifar10": 10.0, "cifar100": 1.0}
"""Per cent right of one constant answer on the test images, of the sets known by name."""
CONTRADICTION = (
    "002 contradicts itself here: App. B.1 says that aggressive pruning hurts at extreme noise, "
    "Table 1 has +1.07 points at std 5 with 10 % kept; both are judged"
)


Named = Callable[[str], Identity]


class Gain(NamedTuple):
    """Differences from dense, (seed,); where, and how good dense is there; why nothing can be
    decided, if so."""

    samples: NDArray[np.float64]
    note: str
    premise: str = ""
    alike: NDArray[np.float64] | None = None
    """the same at all keeps, (seed, keep), for a spread that is not small by chance"""

    @property
    def mean(self) -> Interval:
        alike = self.samples[:, None] if self.alike is None else self.alike
        return cautious(self.samples, alike)

    def has_sign(
        self, identity: Identity, sign: Literal["positive", "negative"], *notes: str
    ) -> Verdict:
        found = judge_difference(identity, self.mean, sign, note=joined(self.note, *notes))
        return undecided(found, self.premise)

    def about(self, identity: Identity, predicted: float, within: float) -> Verdict:
        found = judge_equal(identity, self.mean, predicted, within, note=self.note)
        return undecided(found, self.premise)

    def at_least(self, identity: Identity, bound: float) -> Verdict:
        found = judge_bound(identity, self.mean, bound, "at_least", note=self.note)
        return undecided(found, self.premise)


def verdicts(experiment: SparseTraining, results: xr.Dataset, scale: str) -> list[Verdict]:
    claim = published(experiment).claim
    judge = {"S9": _table_1, "S10": _table_2}[claim]
    guess = GUESS.get(experiment.data, 0.0)
    extreme = any(band_of(noise) == "extreme" for noise in experiment.noise)
    found: list[Verdict] = []
    for words, part in readings(results):
        for place, where in PLACES.items():
            paired = placed(part, place)
            if place == "adapted" and not len(paired.levels):
                continue  # nothing to adapt: the same network as in "training"
            naming = Naming(experiment, scale, setting_of(experiment, words, f"{where}, "))
            found += judge(partial(naming, claim), paired, guess, extreme)
    return found + advice_verdicts(experiment, results, scale, with_noise=True)


def _table_1(named: Named, paired: Paired, guess: float, extreme: bool) -> list[Verdict]:
    found = []
    for keep in (keep for keep in paired.thinned if keep >= AGGRESSIVE):
        gain = _gain(paired, keep, "moderate", guess)
        found.append(gain.has_sign(named(f"keep {keep:g} gains at moderate noise"), "positive"))
        what = f"keep {keep:g} gains 0.5 to 1.5 points at moderate noise"
        found.append(gain.about(named(what), GAIN, GAIN_WITHIN))
    keep, words = _smallest(paired)
    if not extreme:
        # such a grid still has the published cost of few weights
        gain = _gain(paired, keep, "moderate", guess)
        what = f"{words} costs under a point at moderate noise"
        return [*found, gain.at_least(named(what), -SMALL_COST)]
    loss = _gain(paired, keep, "extreme", guess)
    found.append(loss.has_sign(named(f"{words} loses at extreme noise"), "negative", CONTRADICTION))
    first = _gain(_least_extreme(paired), keep, "extreme", guess)
    cell = "the largest of six published cells, picked after the fact"
    what = f"{words} gains at the least extreme noise"
    found.append(first.has_sign(named(what), "positive", CONTRADICTION, cell))
    return found


def _table_2(named: Named, paired: Paired, guess: float, extreme: bool) -> list[Verdict]:
    found = []
    for keep in (keep for keep in paired.thinned if keep >= LIGHT):
        gain = _gain(paired, keep, "moderate", guess)
        what = f"keep {keep:g} costs under {NEUTRAL:g} points at moderate noise"
        found.append(gain.at_least(named(what), -NEUTRAL))
        text = "App. B.2 says improves, the claim as listed says neutral to slightly better"
        found.append(
            gain.has_sign(named(f"keep {keep:g} improves at moderate noise"), "positive", text)
        )
    keep, words = _smallest(paired)
    mild, harsh = (_gain(paired, keep, band, guess) for band in ("moderate", "extreme"))
    found.append(mild.has_sign(named(f"{words} loses at moderate noise"), "negative"))
    if not extreme:
        return found
    found.append(harsh.has_sign(named(f"{words} loses at extreme noise"), "negative"))
    more = Gain(
        harsh.samples - mild.samples,
        "points, difference at extreme minus that at moderate noise, seed by seed",
        joined(mild.premise, harsh.premise),
        None if mild.alike is None or harsh.alike is None else harsh.alike - mild.alike,
    )
    found.append(
        more.has_sign(named(f"{words} loses more at extreme than at moderate noise"), "negative")
    )
    return found


def _gain(paired: Paired, keep: float, band: str, guess: float) -> Gain:
    if not np.isfinite(keep):
        missing = np.full(len(paired.accuracy), np.nan)
        return Gain(missing, f"no keep below {AGGRESSIVE:g} in the grid")
    samples, where = band_gain(paired, keep, band)
    known = np.isfinite(samples)
    if not known.any():
        return Gain(samples, where)
    dense = mean_interval(seed_means(paired.band(band).dense[known])[0])
    premise = ""
    if not dense.low > guess and dense.n > 1:
        premise = f"at {band} noise the dense network is not certainly better than guessing"
    note = f"points, {where}; dense {number(dense.mean, '.1f')} %"
    if 0 < known.sum() < FEWEST:
        note += f"; fewer than {FEWEST} seeds have no interval"
    alike = np.stack([band_gain(paired, each, band)[0] for each in paired.thinned], axis=1)
    return Gain(samples, note, premise, alike)


def _smallest(paired: Paired) -> tuple[float, str]:
    """The most aggressive keep and its name; NaN if none is aggressive."""
    if paired.thinned and paired.thinned[-1] < AGGRESSIVE:
        return paired.thinned[-1], f"keep {paired.thinned[-1]:g}"
    return float("nan"), "aggressive pruning"


def _least_extreme(paired: Paired) -> Paired:
    extreme = paired.band("extreme")
    return Paired(extreme.levels[:1], extreme.keeps, extreme.accuracy[:, :1])
