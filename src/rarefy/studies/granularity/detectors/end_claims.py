"""Verdicts of ``granularity-detectors`` on G5, (10), (11), (13), Lemma E.4, Corollary G.2.1: what
has been learnt in the end."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.core.text import joined
from rarefy.measure.statistics import BIG_O, OMEGA, Identity, linear_slope
from rarefy.studies.granularity.detectors import judging
from rarefy.studies.granularity.detectors.judging import NEAR_LATE, ORDER_ONE, Range, judge_range
from rarefy.studies.granularity.detectors.measured import OWN, SMALL_LOSS, Cases, Measured
from rarefy.studies.granularity.detectors.theory import STOP, late_gain_of
from rarefy.theory.granularity import coarse_common_order, coarse_subclass_order, late_slope

Named = Callable[[str], Identity]
GAINS = {"follows from the update": False, "is printed": True}
"""C of (98): which, and whether it is the printed one."""


def end_verdicts(read: Measured, named: Named) -> list[Verdict]:
    parts = (_coarse_common, _late_growth, _late_score, _coarse_subclass, _fine_stop, _fine_end)
    return [verdict for part in parts for verdict in part(read, named)]


# ----------------------------------------------------------------------------------- coarse labels


def _coarse_common(read: Measured, named: Named) -> list[Verdict]:
    d, s = read.experiment.d, read.experiment.feature_patches
    log = coarse_common_order(d)
    order = f"that is anything from {OMEGA * log:.3g} to {BIG_O * log:.3g}"
    one_d = f"at d={d} {order}: how it depends on d is not tested"
    one_patch = "(10) has for one patch what Lemma E.4 has for all s* of a sample"
    found = []
    for what, patches, source, note in (
        ("score from common patches", s, "Lemma E.4", f"s* = {s} patches a sample"),
        ("response to one common patch", 1, "10", one_patch),
    ):
        identity = named(f"coarse labels, final {what} over log d")
        response = {k: read.end("common_response", "coarse", k) for k in read.subclasses}
        cases = {f"k={k}": patches * one / log for k, one in response.items()}
        predicted = f"of order 1 ({source})"
        found.append(judge_range(identity, cases, ORDER_ONE, predicted, f"{note}; {one_d}"))
    return found


def _late_growth(read: Measured, named: Named) -> list[Verdict]:
    """Slopes in log t once the loss is small (Lemma E.4, E.5)."""
    reads, late = np.array(read.experiment.reads), read.late_places()

    def slopes(values: np.ndarray) -> np.ndarray:
        if len(late) < 3:
            return np.empty(0)
        x = np.log(reads[late])
        return np.array([linear_slope(x, row[late], resamples=0).slope for row in values])

    def common(k: int) -> np.ndarray:
        expected = late_slope(k, read.experiment.feature_patches)
        return slopes(read.of("common_response", "coarse", k)) / expected

    score = read.cases(lambda k: slopes(read.score("coarse", k)))
    own = "coarse labels, late growth of a sample's own score with log t"
    shared = "coarse labels, late growth of the common response with log t"
    predicted, since = "1 times k/((k + 1) s*) (Lemma E.4, E.5)", _since(read)
    return [
        judge_range(named(own), score, NEAR_LATE, "1 (Lemma E.4)", since),
        judge_range(named(shared), read.cases(common), NEAR_LATE, predicted, since),
    ]


def _late_score(read: Measured, named: Named) -> list[Verdict]:
    """(98) from the first late read on, with its constant C."""
    experiment, found = read.experiment, []
    error = BIG_O / math.log(experiment.d) ** 4
    for words, printed in GAINS.items():
        cases = {f"k={k}": read.late_growth(k, printed) for k in read.subclasses}
        gains = ", ".join(f"{late_gain_of(experiment, k, printed):.2g}" for k in read.subclasses)
        allowed = f"the error (98) allows, with constant {BIG_O:g}, is ±{error:.2g}"
        identity = named(f"coarse labels, late growth of a sample's own score, C {words}")
        predicted = "1 times log(C (t - T) exp(-A(T)) + 1) (98)"
        note = joined(_since(read), f"C = {gains}", allowed)
        found.append(judge_range(identity, cases, NEAR_LATE, predicted, note))
    return found


def _since(read: Measured) -> str:
    late = read.late_places()
    since = f"from {read.experiment.reads[late[0]]} updates on" if len(late) else "never"
    return f"reads at which the loss is at most {SMALL_LOSS:g}: {since}"


def _coarse_subclass(read: Measured, named: Named) -> list[Verdict]:
    """(11), an upper bound."""
    d, s = read.experiment.d, read.experiment.feature_patches
    response = {k: read.end("subclass_response", "coarse", k) for k in read.subclasses}
    within, found = Range(-math.inf, BIG_O, f"constant {BIG_O:g}"), []
    for what, n, note in (
        ("response to a subclass patch", 1, ""),
        ("score from subclass patches", s, f"s* = {s} patches, as Lemma E.4 counts them"),
    ):
        identity = named(f"coarse labels, final {what} k/log d")
        cases = {f"k={k}": n * one / coarse_subclass_order(d, k) for k, one in response.items()}
        note = joined(note, "one d: how it depends on d is not tested")
        found.append(judge_range(identity, cases, within, "at most O(1) (11)", note))
    identity = named("coarse labels, final response to a subclass patch against k")
    note = "exponent of an upper bound (11); 1/(k + 1) in place of 1/k is what the update gives"
    return [*found, judging.judge_exponent(identity, response, -1.0, judging.LATE, note, True)]


# ------------------------------------------------------------------------------------- fine labels


def _fine_stop(read: Measured, named: Named) -> list[Verdict]:
    """(13) where the theorem stops (Def. G.2): Corollary G.2.1 has it for s* patches."""
    experiment = read.experiment
    stops = {k: read.stop("fine", k) for k in read.subclasses}
    reads = ", ".join(
        f"{experiment.reads[at] if at >= 0 else 'never'} (k={k})" for k, at in stops.items()
    )

    def both(k: int) -> np.ndarray:
        found = read.response_ratio(experiment.reads[stops[k]], "fine", k)
        return found if stops[k] >= 0 else np.full_like(found, np.nan)

    def score(place: int) -> Cases:
        return read.cases(lambda k: experiment.feature_patches / STOP * both(k)[:, place])

    scores = [f"score from {kind} patches over log(3/2)" for kind in OWN]
    judged = {what: score(place) for place, what in enumerate(scores)}
    judged["response ratio common/subclass"] = read.cases(both)
    rest = (ORDER_ONE, "of order 1 (13), Corollary G.2.1", f"updates: {reads}")
    return [
        judge_range(named(f"fine labels, {what} when own scores reach log(3/2)"), cases, *rest)
        for what, cases in judged.items()
    ]


def _fine_end(read: Measured, named: Named) -> list[Verdict]:
    steps, beyond = read.experiment.steps, "at the end, beyond the theorem"
    note = f"after {steps} updates; the theorem stops at log(3/2)"
    identity = named(f"fine labels, response ratio common/subclass {beyond}")
    cases = read.cases(lambda k: read.response_ratio(steps, "fine", k))
    found = [judge_range(identity, cases, ORDER_ONE, "of order 1 (13)", note)]
    within = Range(OMEGA, math.inf, f"at least {OMEGA:g}")
    for kind in OWN:
        identity = named(f"fine labels, response to a {kind} patch {beyond}")
        cases = {f"k={k}": read.end(f"{kind}_response", "fine", k) for k in read.subclasses}
        found.append(judge_range(identity, cases, within, "at least of order 1 (13)", note))
    return found
