"""S12: is the keep range that a short probe suggests the right one?

Two questions. Does it contain the keep that turns out best, more often than a keep drawn at random
from the study's list would lie in it (a wide range is right by chance)? And is a network with a
keep from the range better than the dense one, which is what a user has without advice? A range is
read on the study's list: the keeps inside, or the nearest one where none is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from rarefy.core.contracts import Verdict
from rarefy.core.picture import Table
from rarefy.core.text import joined
from rarefy.measure.statistics import (
    Identity,
    judge_difference,
    mean_band,
    mean_interval,
    wilson_interval,
)
from rarefy.studies.sparse.pairs import NONE, number, said, seed_means
from rarefy.studies.sparse.readings import (
    AXES,
    at_test_noise,
    readings,
    setting_of,
    without_noise,
)
from rarefy.tools.sparse_experiment import SparseTraining

FEWEST_KEEPS = 3
"""Dense and two others."""
CONTAINS = "the advised keep range contains the best keep"
BETTER = "a keep from the advised range is better than dense"


@dataclass(frozen=True)
class Case:
    """One setting: what was advised (NaN: no signal was seen) and which keep was best."""

    words: str
    low: float
    high: float
    keeps: tuple[float, ...]
    """those that were trained, largest first"""
    best: float
    alike: tuple[float, ...] | None
    """keeps that cannot be told from the best, itself among them; None: one seed tells nothing"""
    accuracy: NDArray[np.float64]
    """per cent, (seed, keep)"""
    n: int

    @property
    def advised(self) -> bool:
        """False too where the ends are crossed: no keep does well in both."""
        return bool(self.low <= self.high)

    @property
    def advice(self) -> str:
        if np.isnan([self.low, self.high]).any():
            return "no signal seen"
        ends = f"{self.low:.3g} to {self.high:.3g}"
        return ends if self.advised else f"none ({ends} is crossed)"

    @property
    def inside(self) -> tuple[float, ...]:
        """The keeps of the study's list that the advice stands for."""
        if not self.advised:
            return ()
        slack = 1e-9
        found = [keep for keep in self.keeps if self.low - slack <= keep <= self.high + slack]
        if found:
            return tuple(found)
        middle = np.log(np.maximum([self.low, self.high], slack)).mean()
        return (min(self.keeps, key=lambda keep: abs(float(np.log(keep)) - middle)),)

    @property
    def hit(self) -> bool:
        return self.best in self.inside

    @property
    def possible(self) -> bool:
        """The range has a keep that may be the best, as far as seeds tell."""
        if self.alike is None:
            return self.advised
        return self.hit or bool(set(self.inside) & set(self.alike))

    @property
    def gain(self) -> NDArray[np.float64]:
        """Mean accuracy of the range's keeps less dense, in points, (seed,); NaN: no advice."""
        if not self.advised:
            return np.full(len(self.accuracy), np.nan)
        chosen = np.isin(self.keeps, self.inside)
        dense = int(np.argmax(np.isclose(self.keeps, 1)))
        return np.asarray(self.accuracy[:, chosen].mean(axis=1) - self.accuracy[:, dense])

    @property
    def chance(self) -> float:
        """That a keep drawn at random from the list is one of the range's."""
        return len(self.inside) / len(self.keeps)


def cases(results: xr.Dataset, with_noise: bool) -> Iterator[Case]:
    """Every reading and noise level where the dense and another network are there; ``with_noise``:
    asked with the noise of training, else without noise."""
    for words, part in readings(results, AXES):
        level = float(part["noise"]) if with_noise else 0.0
        paired = at_test_noise(part, level) if with_noise else without_noise(part)
        if with_noise and not np.isclose(paired.levels[0], level):
            continue
        accuracy = paired.accuracy[:, 0]
        there = np.isfinite(accuracy).any(axis=0)
        if there.sum() < 2 or not np.isfinite(paired.dense).any():
            continue
        low, high = _range(part)
        keeps = tuple(paired.keeps[there].tolist())
        best, alike, n = _best(keeps, accuracy[:, there])
        yield Case(words or "all", low, high, keeps, best, alike, accuracy[:, there], n)


def _range(part: xr.Dataset) -> tuple[float, float]:
    """Means over the dense networks that were given advice."""
    dense = np.isclose(part["keep"].values.astype(np.float64), 1.0)
    ends = [
        part[name].transpose("keep", "seed").values[dense].ravel()
        for name in ("advised_low", "advised_high")
    ]
    given = np.isfinite(ends[0]) & np.isfinite(ends[1])
    return mean_interval(ends[0][given]).mean, mean_interval(ends[1][given]).mean


def _best(
    keeps: tuple[float, ...], accuracy: NDArray[np.float64]
) -> tuple[float, tuple[float, ...] | None, int]:
    """Keep of the largest mean over seeds that have all keeps (over any, if none has), the largest
    of equals; those that cannot be told from it in pairs; seeds."""
    whole = np.isfinite(accuracy).all(axis=1)
    used = accuracy[whole] if whole.any() else accuracy
    mean = mean_band(used).mean
    best = int(np.nanargmax(mean))
    lead = [mean_interval(used[:, best] - used[:, place]) for place in range(len(keeps))]
    n = int(np.isfinite(used[:, best]).sum())
    if n < 2:
        return keeps[best], None, n
    alike = [keep for keep, each in zip(keeps, lead, strict=True) if not each.low > 0]
    return keeps[best], tuple(alike), n


# ------------------------------------------------------------------------------------------ verdict


def advice_verdicts(
    experiment: SparseTraining, results: xr.Dataset, scale: str, with_noise: bool
) -> list[Verdict]:
    """Of both questions; none where there was nothing to choose from."""
    if len(experiment.keep) < FEWEST_KEEPS:
        return []
    contains, better = (
        ("S12", experiment.name, scale, setting_of(experiment, "", what))
        for what in (CONTAINS, BETTER)
    )
    if "advised_low" not in results or "advised_high" not in results:
        why = "these results are from before there was a probe"
        absent = [_verdict(contains, [], "not-run", why), judge_difference(better, [], "positive")]
        return [dataclasses.replace(each, outcome="not-run", note=why) for each in absent]
    found = list(cases(results, with_noise))
    gains = np.stack([case.gain for case in found], axis=1) if found else np.empty((0, 0))
    gain, used = seed_means(gains)
    note = f"points, mean over {int(used.sum())} of {len(found)} settings"
    return [
        _verdict(contains, found, *_contains(found)),
        judge_difference(better, gain, "positive", note=note),
    ]


def _contains(found: list[Case]) -> tuple[str, str]:
    """Holds: right certainly more often than by chance. Fails: not more often, even if every keep
    that may be the best counts as best, although always right would have shown; or no advice at
    all. A setting without advice is one where it is wrong."""
    if not found:
        return "inconclusive", "no setting has a dense and another network"
    total, chance = len(found), _chance(found)
    if not any(case.advised for case in found):
        return "fails", "no advice was possible anywhere"
    if wilson_interval(sum(case.hit for case in found), total)[0] > chance:
        return "holds", ""
    if not wilson_interval(total, total)[0] > chance:
        return "inconclusive", "even always right would not have been certainly above chance"
    if sum(case.possible for case in found) <= chance * total:
        return "fails", ""
    return "inconclusive", ""


def _chance(found: list[Case]) -> float:
    """Mean over the settings with advice: those without do not make the rest look better."""
    given = [case.chance for case in found if case.advised]
    return float(np.mean(given)) if given else float("nan")


def _verdict(identity: Identity, found: list[Case], outcome: str, why: str) -> Verdict:
    total, hits, chance = len(found), sum(case.hit for case in found), _chance(found)
    low, high = wilson_interval(hits, total)
    ends = f" [{low:.2f}, {high:.2f}]" if total else ""
    silent = sum(not case.advised for case in found)
    notes = [
        f"{sum(case.possible for case in found)} of {total} if every keep that cannot be told "
        "from the best counts as best",
        f"no advice in {silent} of {total}, counted as wrong" if silent else "",
        "the interval takes settings for independent, but they share seeds and their noise "
        "levels are neighbours: it is too narrow",
    ]
    return Verdict(
        *identity,
        predicted=f"share above {number(chance)}, that of a keep drawn at random",
        measured=f"{hits} of {total}{ends}" if total else "nothing to count",
        interval=(low, high) if total else None,
        n=total,
        tolerance="none",
        outcome=outcome,
        note=joined(why, *(notes if total else ())),
    )


# -------------------------------------------------------------------------------------------- table


def advice_table(results: xr.Dataset, with_noise: bool) -> list[Table]:
    """Nothing where there is nothing to say."""
    if "advised_low" not in results or "advised_high" not in results:
        return []
    rows = [
        (
            case.words,
            case.advice,
            _listed(case.inside),
            f"{case.best:g}",
            _listed(case.alike) if case.alike is not None else "one seed",
            "yes" if case.hit else "may be" if case.possible else "no",
            number(case.chance) if case.advised else NONE,
            said(mean_interval(case.gain)),
            case.n,
        )
        for case in cases(results, with_noise)
    ]
    if not rows:
        return []
    asked = "with the noise of training" if with_noise else "without noise"
    caption = (
        "A short probe of the dense network before training suggests a range of keep ratios (mean "
        "of its ends over seeds). Beside it the keep whose test accuracy, asked "
        f"{asked}, is best on average over n seeds, and those whose paired 95 % interval of the "
        "difference from it includes 0. Right: the best keep is in the range; may be: one of the "
        "others is. Chance: of a keep drawn at random from the list. Last: mean accuracy of the "
        "range's keeps less dense, in points (a star: 0 is outside the 95 % interval)."
    )
    columns = (
        *("setting", "advised keep", "of those trained", "best keep", "not told from it"),
        *("right", "chance", "advised less dense", "n"),
    )
    return [Table("advice", "Advised and measured keep", caption, columns, rows)]


def _listed(keeps: tuple[float, ...]) -> str:
    return ", ".join(f"{keep:g}" for keep in keeps) or NONE
