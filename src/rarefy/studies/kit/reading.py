"""What a study claims, declared: where to look, what to take, what is expected, its premise.

A ``Reading`` is one family of verdicts: one verdict per value of the axes in ``each``, at the fixed
coordinates in ``at``. ``take`` turns the slice into samples, (seed,) or (seed, point). A claim that
reads better as code calls the judges of ``measure.statistics`` and names verdicts by ``Naming``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
import xarray as xr

from rarefy.core.contracts import Experiment, Verdict
from rarefy.measure import statistics as st
from rarefy.studies.kit.arrays import by_seed, picked
from rarefy.studies.kit.premise import undecided

Expect = Callable[[st.Identity, xr.Dataset, Any, str], Verdict]
"""Judges what was taken: (identity, slice, taken, note)."""
Take = str | Callable[[xr.Dataset], Any]
"""The name of an output, or what is computed from the slice."""


@dataclass(frozen=True)
class Naming:
    """Names the verdicts of a study: ``Naming(study, scale, "trained: ")("B9", "accuracy")``."""

    experiment: Experiment
    scale: str
    before: str = ""
    after: str = ""

    def __call__(self, claim: str, what: str) -> st.Identity:
        return (claim, self.experiment.name, self.scale, f"{self.before}{what}{self.after}")


def rises(along: str, shared: bool = False) -> Expect:
    """The quantity grows along an axis; ``shared``: cells of one seed share their draws."""
    return _trend(along, shared, "increasing")


def falls(along: str, shared: bool = False) -> Expect:
    return _trend(along, shared, "decreasing")


def _trend(along: str, shared: bool, direction: Literal["increasing", "decreasing"]) -> Expect:
    def expect(identity: st.Identity, at: xr.Dataset, taken: Any, note: str) -> Verdict:
        trend = st.spearman_trend(taken[along].values, by_seed(taken, along), within_rows=shared)
        return st.judge_trend(identity, trend, direction, note=note)

    return expect


def at_least(limit: float, worst_along: str | None = None) -> Expect:
    """The mean is at least ``limit``; of an axis ``worst_along``, at the point where it is
    smallest, which the note may name as ``{worst}``."""
    return _bound(limit, "at_least", worst_along)


def at_most(limit: float, worst_along: str | None = None) -> Expect:
    return _bound(limit, "at_most", worst_along)


def _bound(limit: float, side: Literal["at_least", "at_most"], worst_along: str | None) -> Expect:
    def expect(identity: st.Identity, at: xr.Dataset, taken: Any, note: str) -> Verdict:
        if worst_along is not None and taken.size:
            values, axis = by_seed(taken, worst_along), taken[worst_along].values
            margin = st.finite_mean(values) if side == "at_least" else -st.finite_mean(values)
            place = int(np.nan_to_num(margin, nan=np.inf).argmin())
            taken, note = values[:, place], note.format(worst=f"{axis[place]:g}")
        samples = taken if isinstance(taken, st.Interval) else np.asarray(taken)
        return st.judge_bound(identity, samples, limit, side, note=note)

    return expect


def equals(predicted: float, tolerance: float) -> Expect:
    return lambda identity, at, taken, note: st.judge_equal(
        identity, taken, predicted, tolerance, note=note
    )


def exponent(predicted: float, tolerance: float) -> Expect:
    """``take`` gives a slope."""
    return lambda identity, at, taken, note: st.judge_slope(
        identity, taken, predicted, tolerance, note
    )


def share(at_least: float) -> Expect:
    """``take`` gives (hits, total)."""
    return lambda identity, at, taken, note: st.judge_fraction(
        identity, taken[0], taken[1], at_least, note=note
    )


def differs(direction: Literal["positive", "negative"], published: float | None = None) -> Expect:
    """``take`` gives paired differences."""
    return lambda identity, at, taken, note: st.judge_difference(
        identity, taken, direction, note=note, published=published
    )


@dataclass(frozen=True)
class Reading:
    """``claim``: "B6.1", "B6" or "", as in ``Verdict``. ``what`` may name coordinates: ``"step
    {read}, sigma={sigma:g}"``, and ``{setting}``."""

    claim: str
    what: str
    take: Take
    expect: Expect
    each: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    at: Mapping[str, Any] = field(default_factory=dict)
    note: str | Callable[[xr.Dataset, Any], str] = ""
    """a text, or what makes one of the slice and of what was taken"""
    premise: Callable[[xr.Dataset], str] | None = None
    """why the claim says nothing here; empty where it speaks"""

    def verdicts(
        self, experiment: Experiment, results: xr.Dataset, scale: str
    ) -> Iterator[Verdict]:
        named = Naming(experiment, scale)
        for point, at in slices(results.sel(_present(results, self.at)), self.each):
            taken = picked(at, self.take)
            note = self.note(at, taken) if callable(self.note) else self.note
            what = self.what.format(**point, setting=experiment.setting)
            verdict = self.expect(named(self.claim, what), at, taken, note)
            yield undecided(verdict, self.premise(at)) if self.premise else verdict


def judge_all(
    experiment: Experiment, results: xr.Dataset, scale: str, readings: Sequence[Reading]
) -> list[Verdict]:
    return [one for reading in readings for one in reading.verdicts(experiment, results, scale)]


def slices(
    results: xr.Dataset, each: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[dict[str, Any], xr.Dataset]]:
    """Every combination of the values in ``each``, and the results there."""
    for values in product(*each.values()):
        point = dict(zip(each, values, strict=True))
        yield point, results.sel(_present(results, point))


def _present(results: xr.Dataset, at: Mapping[str, Any]) -> dict[str, Any]:
    # a value that is no coordinate only names the verdict
    return {name: value for name, value in at.items() if name in results.dims}
