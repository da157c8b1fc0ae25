"""Verdicts of ``granularity-detectors``; here G3, (9), (12), Theorem D.1, Lemma E.5, G.2: how fast
detectors grow. All tolerances were set before looking."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, Identity, Slope, bootstrap_interval, judge_slope
from rarefy.studies.granularity.detectors import judging
from rarefy.studies.granularity.detectors.end_claims import end_verdicts
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.judging import LATE, ORDER_ONE, RATE, Range, judge_range
from rarefy.studies.granularity.detectors.measured import OWN, Measured
from rarefy.studies.granularity.detectors.set_claims import set_verdicts
from rarefy.studies.granularity.detectors.theory import predicted_rates, predicted_stop
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.reading import Naming
from rarefy.theory.granularity import FINE_COMMON, LEAST_RESIDUAL

Named = Callable[[str], Identity]
FIRST_SLOPE = 0.1
"""Tolerance of the exponent 1 in k of the growth ratio under coarse labels, in phase 1."""
FIRST = "at the first step"
BEFORE = "just before own scores reach log(3/2)"
END = "at the end"
FORMULAS = {
    ("coarse", "common"): "eta s*/(4P) (33)",
    ("coarse", "subclass"): "eta s*/(4 k P) (35)",
    ("fine", "common"): "eta s*/(4 k P), in (202)",
    ("fine", "subclass"): "eta s*/(2 k P) (1 - 1/(2k)), in (205)",
}
"""Growth a step while all scores are equal, by labels and kind of feature."""


def verdicts(experiment: DetectorsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    read = Measured(experiment, results)
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    parts = {"G3": growth_verdicts, "G4": set_verdicts, "G5": end_verdicts}
    return [one for claim, part in parts.items() for one in part(read, partial(named, claim))]


def growth_verdicts(read: Measured, named: Named) -> list[Verdict]:
    ratios = product((FIRST, BEFORE, END), LABELS, (_ratio_slope, _ratio))
    return [
        *(_first_rate(read, named, *which) for which in product(LABELS, OWN)),
        *(_rate(read, named, *which) for which in product(LABELS, OWN)),
        *(_time(read, named, labels) for labels in LABELS),
        *(make(read, named, labels, when) for when, labels, make in ratios),
        *_late_ratio(read, named),
    ]


def _updates(read: Measured, when: str, labels: str, k: int) -> int:
    """How many there have been."""
    if when == BEFORE:
        return read.before_stop(labels, k)
    return read.experiment.first if when == FIRST else read.experiment.steps


def _in_words(read: Measured, labels: str, when: str) -> str:
    """A time, with what the paper says of it."""
    first, steps = read.experiment.first, read.experiment.steps
    if when == FIRST:
        return f"over the first {first} update{'s' if first > 1 else ''}"
    if when == END:
        beyond = "beyond the theorem, which stops at log(3/2)" if labels == "fine" else ""
        return joined(f"after {steps} updates", beyond)
    counts = {k: read.before_stop(labels, k) for k in read.subclasses}
    reads = ", ".join(f"{count} (k={k})" for k, count in counts.items())
    if first in counts.values():
        reads += f", where {first} is the first step again"
    if labels == "fine":
        return f"updates: {reads}"
    start = min(float(read.score(labels, k)[:, 0].mean()) for k in read.subclasses)
    limit = 1 / read.experiment.d
    is_over = "is over at the start, where they are" if start >= limit else "is shorter; at 0:"
    return (
        f"updates: {reads}; phase 1 of Def. D.1, scores below 1/d = {limit:.2g}, {is_over} "
        f"{start:.2g}: read with log(3/2), as Def. G.2 has it for fine labels"
    )


# ------------------------------------------------------------------------------------------ rates


def _grown(read: Measured, labels: str, kind: str, k: int, updates: int) -> np.ndarray:
    """Per step, over the rate while all scores are equal; NaN if there was none."""
    predicted = getattr(predicted_rates(read.experiment, labels, k), kind)
    grown = read.at(updates, f"{kind}_growth", labels, k)
    return grown / (updates * predicted) if updates else np.full_like(grown, np.nan)


def _first_rate(read: Measured, named: Named, labels: str, kind: str) -> Verdict:
    identity = named(f"{labels} labels, growth a step of {kind} detectors {FIRST}")
    cases = read.cases(lambda k: _grown(read, labels, kind, k, read.experiment.first))
    within, predicted = judging.NEAR, f"1 times {FORMULAS[labels, kind]}"
    note = joined(_in_words(read, labels, FIRST), "nearly arithmetic on (16)")
    return judge_range(identity, cases, within, predicted, note)


def _rate(read: Measured, named: Named, labels: str, kind: str) -> Verdict:
    """Theorem D.1 and Lemma G.2 are about every step until T_0."""

    def relative(k: int) -> np.ndarray:
        found = _grown(read, labels, kind, k, read.before_stop(labels, k))
        if labels == "coarse":
            return found
        # in units of eta s*/(2 k P), as (202) and (205)
        found = found * (0.5 if kind == "common" else 1 - 1 / (2 * k))
        return found if kind == "common" else (found - 1) * k

    if labels == "coarse":
        predicted = f"1 times {FORMULAS[labels, kind]}, or down to {LEAST_RESIDUAL:g} of it"
        within = Range(LEAST_RESIDUAL - RATE, 1 + RATE, f"±{RATE:g}{judging.NO_CONSTANT}")
    elif kind == "common":
        predicted = "1/4 to 2/3 times eta s*/(2 k P) (202)"
        within = Range(*FINE_COMMON, "none")
    else:
        predicted = "k times its distance from eta s*/(2 k P), over that: O(1) (205)"
        within = Range(-BIG_O, BIG_O, f"constant {BIG_O:g}")
    what = f"mean growth a step of {kind} detectors until own scores reach log(3/2)"
    identity, note = named(f"{labels} labels, {what}"), _in_words(read, labels, BEFORE)
    return judge_range(identity, read.cases(relative), within, predicted, note)


def _time(read: Measured, named: Named, labels: str) -> Verdict:
    expected = {k: predicted_stop(read.experiment, labels, k) for k in read.subclasses}
    said = ", ".join(f"{steps:.3g}" for steps in expected.values())
    source = "Corollary D.1.1" if labels == "coarse" else "Corollary G.2.1"
    identity = named(f"{labels} labels, updates until own scores reach log(3/2)")
    cases = read.cases(lambda k: read.stop_time(labels, k) / expected[k])
    predicted = f"order 1 times log(3/2)/(s* |S*| (sum of both rates)) ({source})"
    note = f"expected updates: {said}; scores begin above 0, and more than S* grow"
    return judge_range(identity, cases, ORDER_ONE, predicted, note)


# ----------------------------------------------------------------------------------------- ratios


def _ratio_at(read: Measured, labels: str, when: str, k: int) -> np.ndarray:
    return read.growth_ratio(_updates(read, when, labels, k), labels, k)


def _ratio_slope(read: Measured, named: Named, labels: str, when: str) -> Verdict:
    coarse = labels == "coarse"
    identity = named(f"{labels} labels, growth ratio common/subclass against k {when}")
    ratios = {k: _ratio_at(read, labels, when, k) for k in read.subclasses}
    tolerance = FIRST_SLOPE if coarse and when != END else LATE
    note = joined(f"exponent {_source(labels, when)}", _in_words(read, labels, when))
    return judging.judge_exponent(identity, ratios, float(coarse), tolerance, note)


def _ratio(read: Measured, named: Named, labels: str, when: str) -> Verdict:
    coarse = labels == "coarse"
    exact = "k/(2k - 1), nearly 1/2, follows from the update at equal scores"
    over = " over k" if coarse else ""
    identity = named(f"{labels} labels, growth ratio common/subclass{over} {when}")
    cases = read.cases(lambda k: _ratio_at(read, labels, when, k) / (k if coarse else 1))
    note = joined(_in_words(read, labels, when), "" if coarse or when == END else exact)
    return judge_range(identity, cases, ORDER_ONE, f"of order 1 {_source(labels, when)}", note)


def _source(labels: str, when: str) -> str:
    if labels == "fine":
        return "(12)" if when == END else "(12), (202), (205)"
    return "(Lemma E.5)" if when == END else "(33), (35)"


def _late_ratio(read: Measured, named: Named) -> list[Verdict]:
    """(9): responses at the end."""
    steps, many = read.experiment.steps, read.subclasses
    ratios = {k: read.response_ratio(steps, "coarse", k) for k in many}

    def exponent(samples: np.ndarray) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log([judging.ratio_of_means(samples[:, place]) for place in range(len(many))])
        return float(np.polyfit(np.log(many), log, 1)[0]) if len(many) > 1 else np.nan

    found = bootstrap_interval(np.stack(list(ratios.values()), axis=1), exponent)
    slope, what = Slope(*found, len(many)), "coarse labels, final response ratio common/subclass"
    note, over_k = "exponent of the ratio of means (9)", read.cases(lambda k: ratios[k] / [k, 1])
    return [
        judge_slope(named(f"{what} against k"), slope, 1.0, LATE, note=note),
        judge_range(named(f"{what} over k"), over_k, ORDER_ONE, "of order 1 (9)"),
    ]
