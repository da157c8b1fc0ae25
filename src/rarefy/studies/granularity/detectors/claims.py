"""Verdicts of ``granularity-detectors``: how fast detectors grow (G3), whether they carry the
answer to their feature (G4), and what has been learnt in the end (G5)."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, OMEGA, mean_interval
from rarefy.measure.trends import row_slopes
from rarefy.studies.granularity.detectors import theory as expected
from rarefy.studies.granularity.detectors.experiment import DetectorsExperiment
from rarefy.studies.granularity.detectors.judging import (
    LATE,
    ORDER_ONE,
    RATE,
    Range,
    judge_exponent,
    judge_range,
    near,
)
from rarefy.studies.granularity.detectors.measured import OWN, SMALL_LOSS, Measured
from rarefy.studies.granularity.experiment import AS_CHOSEN
from rarefy.studies.granularity.trial import LABELS
from rarefy.studies.kit.arrays import texts
from rarefy.studies.kit.premise import undecided
from rarefy.studies.kit.reading import Naming
from rarefy.theory.granularity import LEAST_RESIDUAL, coarse_common_order

ALMOST_ALL = 0.9
"""Least share that is "almost all" of a response."""
MOST = Range(ALMOST_ALL, math.inf, "none")
STARTED = "until own scores reach log(3/2)"


def verdicts(experiment: DetectorsExperiment, results: xr.Dataset, scale: str) -> list[Verdict]:
    named = Naming(experiment, scale, f"{experiment.setting}: ")
    read = Measured(experiment, results)
    found = [*_growth(read, named), *_carriers(read, named), *_learnt(read, named)]
    for variation in texts(results, "variation"):
        if variation != AS_CHOSEN:
            varied = Measured(experiment, results, variation)
            where = f"{variation}, k={experiment.main}, {experiment.setting}: "
            found += _varied(varied, Naming(experiment, scale, where))
    return found


# ------------------------------------------------- G3: (9), (12), Theorem D.1, Lemma E.5, Lemma G.2


def _growth(read: Measured, named: Naming) -> list[Verdict]:
    ratio = "growth of common over that of subclass detectors"
    before = {labels: _before_stop(read, labels) for labels in LABELS}
    last = {k: read.growth_ratio(read.experiment.steps, "coarse", k) for k in read.subclasses}
    early = {k: _early_ratio(read, "coarse", k) for k in read.subclasses}
    rates = {
        f"{kind}, k={k}": _rate(read, "coarse", kind, k) for kind in OWN for k in read.subclasses
    }
    within = Range(LEAST_RESIDUAL - RATE, 1 + RATE, f"{LEAST_RESIDUAL:g} to 1, ±{RATE:g}")
    responses = {k: _means(read.response_ratio(read.experiment.steps, "coarse", k)) for k in last}
    end = f"after {read.experiment.steps} updates"
    return [
        judge_exponent(
            named("G3.1", f"coarse labels, {ratio} against k, {end} (Lemma E.5)"), last, 1.0, LATE
        ),
        judge_range(
            named("G3.2", f"fine labels, {ratio} {STARTED} (12)"),
            read.cases(lambda k: _early_ratio(read, "fine", k)),
            ORDER_ONE,
            "of order 1",
            joined(before["fine"], "k/(2k - 1) while all scores are equal"),
        ),
        judge_range(
            named("G3.3", f"coarse labels, growth per update over eta s*/(4P), /k, {STARTED}"),
            rates,
            within,
            "1 (33), (35)",
            before["coarse"],
        ),
        judge_exponent(
            named("G3", f"phase 1, coarse labels, {ratio} against k, {STARTED}"),
            early,
            1.0,
            RATE,
            before["coarse"],
        ),
        judge_exponent(
            named("G3", f"responses, coarse labels, common over subclass against k, {end} (9)"),
            responses,
            1.0,
            LATE,
        ),
        judge_range(
            named("G3", f"to the end, fine labels, {ratio}, {end}"),
            read.cases(lambda k: read.growth_ratio(read.experiment.steps, "fine", k)),
            ORDER_ONE,
            "of order 1",
            "the theorem stops at log(3/2)",
        ),
    ]


def _early_ratio(read: Measured, labels: str, k: int) -> np.ndarray:
    return read.growth_ratio(read.before_stop(labels, k), labels, k)


def _rate(read: Measured, labels: str, kind: str, k: int) -> np.ndarray:
    """Growth per update, over what it is while all scores are equal; NaN if there was none."""
    updates = read.before_stop(labels, k)
    grown = read.at(updates, f"{kind}_growth", labels, k)
    rate = getattr(expected.predicted_rates(read.experiment, labels, k), kind)
    return grown / (updates * rate) if updates else np.full_like(grown, np.nan)


def _before_stop(read: Measured, labels: str) -> str:
    """How many updates that is, in words."""
    counts = ", ".join(f"{read.before_stop(labels, k)} at k={k}" for k in read.subclasses)
    return f"updates: {counts}"


def _means(pairs: np.ndarray) -> np.ndarray:
    """Common over subclass response of every seed."""
    return np.asarray(pairs[:, 0] / np.where(pairs[:, 1] > 0, pairs[:, 1], np.nan))


# ----------------------------------------------------------------------- G4: (7), (8), App. C, G.1


def _carriers(read: Measured, named: Naming) -> list[Verdict]:
    most = read.subclasses[-1]
    same = np.stack([read.of(f"start_{kind}", "fine", most) for kind in OWN], axis=1)
    spread = mean_interval(read.of("start_spread", "fine", most)).mean
    return [
        _share(read, named, "G4.1", "coarse"),
        judge_range(
            named("G4.2", f"fine labels, k={most}, start, mean response common over subclass (8)"),
            {f"k={most}": same},
            near(1, RATE),
            "1",
            f"outputs of a seed together; in one of them features scatter, std {spread:.2g} of it",
        ),
        _share(read, named, "G4", "fine"),
    ]


def _share(read: Measured, named: Naming, claim: str, labels: str) -> Verdict:
    """(7), at the start and at the end, both kinds of features, every k."""

    def cases(members: str) -> dict[str, np.ndarray]:
        return {
            f"{kind} features, {when}, k={k}": read.share(members, kind, labels, k)[:, place]
            for kind in OWN
            for when, place in (("start", 0), ("end", -1))
            for k in read.subclasses
        }

    identity = named(claim, f"{labels} labels, share of the response that S* carries (7)")
    exact = expected.expected_share(read.experiment, labels)
    able = min(mean_interval(one).mean for one in cases("able").values())
    note = f"{exact:.3g} expected at the start by exact probability; all of S: at least {able:.3g}"
    return judge_range(identity, cases("printed"), MOST, f"at least {ALMOST_ALL:g}", note)


# -------------------------------------------------------------- G5: (10), (11), (13), Lemma E.4


def _learnt(read: Measured, named: Naming) -> list[Verdict]:
    steps, s, d = (getattr(read.experiment, n) for n in ("steps", "feature_patches", "d"))
    log, end = coarse_common_order(d), f"after {steps} updates"
    subclass = {k: read.end("subclass_response", "coarse", k) for k in read.subclasses}
    stopped = {
        f"{kind}, k={k}": s * read.at_stop(f"{kind}_response", "fine", k) / expected.STOP
        for kind in OWN
        for k in read.subclasses
    }
    at_least = Range(OMEGA, math.inf, f"at least {OMEGA:g}")
    return [
        undecided(
            judge_range(
                named("G5.1", "coarse labels, late growth of a sample's own score with log t"),
                read.cases(lambda k: _late_slope(read, k)),
                near(1, LATE),
                "1 (10), Lemma E.4",
                _since(read),
            ),
            "" if len(read.late_places()) >= 3 else "the loss is not small at three reads",
        ),
        judge_exponent(
            named("G5.2", f"coarse labels, response to a subclass patch against k, {end} (11)"),
            subclass,
            -1.0,
            LATE,
            "an upper bound; 1/(k + 1) in place of 1/k is what the update gives",
            True,
        ),
        judge_range(
            named("G5.3", "fine labels, score from patches of a kind at T_0 over log(3/2)"),
            stopped,
            at_least,
            "at least of order 1 (13)",
            "s* patches, Corollary G.2.1",
        ),
        judge_range(
            named("G5", f"size, coarse labels, score from common patches over log d, {end}"),
            {f"k={k}": s * read.end("common_response", "coarse", k) / log for k in subclass},
            ORDER_ONE,
            "of order 1 (10), Lemma E.4",
            "one d: how it depends on d is not tested",
        ),
        judge_range(
            named("G5", f"size, coarse labels, score from subclass patches k/log d, {end}"),
            {f"k={k}": s * one * k / log for k, one in subclass.items()},
            Range(-math.inf, BIG_O, f"constant {BIG_O:g}"),
            "at most O(1) (11)",
        ),
        judge_range(
            named("G5", f"to the end, fine labels, score from patches of a kind, {end}"),
            {
                f"{kind}, k={k}": s * read.end(f"{kind}_response", "fine", k)
                for kind in OWN
                for k in read.subclasses
            },
            at_least,
            "at least of order 1 (13)",
            "the theorem stops at log(3/2)",
        ),
    ]


def _late_slope(read: Measured, k: int) -> np.ndarray:
    """In log t once the loss is small, (seed,)."""
    late = read.late_places()
    if len(late) < 3:
        return np.empty(0)
    x = np.log(np.array(read.experiment.reads)[late])
    return row_slopes(x, read.score("coarse", k)[:, late])


def _since(read: Measured) -> str:
    late = read.late_places()
    since = f"from {read.experiment.reads[late[0]]} updates on" if len(late) else "never"
    return f"reads at which the loss is at most {SMALL_LOSS:g}: {since}"


# ----------------------------------------------------------------------------------- other settings


def _varied(read: Measured, named: Naming) -> list[Verdict]:
    """The same at one k."""
    k, steps = read.experiment.main, read.experiment.steps
    ratio = read.growth_ratio(steps, "coarse", k) / k
    return [
        judge_range(
            named("G3", "coarse labels, growth of common over that of subclass detectors, over k"),
            {f"k={k}": ratio},
            ORDER_ONE,
            "of order 1",
            f"after {steps} updates",
        ),
        judge_range(
            named("G4", "coarse labels, share of the response that S* carries (7), end"),
            {kind: read.share("printed", kind, "coarse", k)[:, -1] for kind in OWN},
            MOST,
            f"at least {ALMOST_ALL:g}",
        ),
        judge_range(
            named("G5", "fine labels, score from patches of a kind at T_0 over log(3/2)"),
            {
                kind: read.experiment.feature_patches
                * read.at_stop(f"{kind}_response", "fine", k)
                / expected.STOP
                for kind in OWN
            },
            Range(OMEGA, math.inf, f"at least {OMEGA:g}"),
            "at least of order 1 (13)",
        ),
    ]
