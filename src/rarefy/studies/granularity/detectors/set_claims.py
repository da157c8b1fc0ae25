"""Verdicts of ``granularity-detectors`` on G4, (7), (8), App. C, G.1: who detects a feature at the
start, and whether they carry the answer to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O, Identity
from rarefy.studies.granularity.detectors.judging import RATE, Range, judge_range, near
from rarefy.studies.granularity.detectors.measured import OWN, Measured
from rarefy.studies.granularity.detectors.theory import expected_share, expected_sizes
from rarefy.studies.granularity.detectors.watch import SETS
from rarefy.studies.granularity.trial import LABELS
from rarefy.theory.granularity import initial_spread

Named = Callable[[str], Identity]
ALMOST_ALL = 0.9
"""Least share that is "almost all" of a response."""
SHARE = 0.05
"""Tolerance of shares that have a closed form."""
STRANGERS = 0.1
"""Most neurons that may be open where the paper says none is, over the size of S: a tenth of those
that may be open on a feature. Over all m it could hardly be exceeded, since S is so few of them."""
SILENT = {
    "woken": (
        "neurons outside S(v) open on v",
        "Theorem F.1, G.1, 1",
        "tested at strength 1 without noise, and S has our margins, which are wider than the "
        "printed: weaker than the theorem",
    ),
    "noise_open": (
        "neurons open on a patch of noise",
        "Theorem F.1, G.1, 2",
        "exact mean chance; the theorem excludes every single one",
    ),
}
"""Outputs that should be 0: what they are, where that is said, how it is read."""


def set_verdicts(read: Measured, named: Named) -> list[Verdict]:
    return [
        *(_size(read, named, name) for name in SETS),
        *(_same_response(read, named, labels) for labels in LABELS),
        _spread(read, named),
        *(_share(read, named, members, labels) for members, labels in product(SETS, LABELS)),
        *(_share_at_start(read, named, members) for members in ("printed", "detector")),
        *(_nobody(read, named, name, labels) for name, labels in product(SILENT, LABELS)),
        *(_others(read, named, labels) for labels in LABELS),
    ]


def _size(read: Measured, named: Named, name: str) -> Verdict:
    def expected(k: int) -> float:
        return expected_sizes(read.experiment, k)[name]

    last = read.subclasses[-1]
    identity = named(f"start, neurons a feature over exact expectation: {SETS[name]}")
    cases = read.cases(lambda k: read.of(f"{name}_size", "fine", k) / expected(k))
    note = f"{expected(last):.3g} expected at k={last}"
    return judge_range(identity, cases, near(1, RATE), "1 (Prop. 1, 2)", note)


def _same_response(read: Measured, named: Named, labels: str) -> Verdict:
    def both(k: int) -> np.ndarray:
        return np.stack([read.of(f"start_{kind}", labels, k) for kind in OWN], axis=1)

    identity = named(f"{labels} labels, start, mean response common/subclass")
    note = "all outputs of all seeds together"
    return judge_range(identity, read.cases(both), near(1, RATE), "1 (8)", note)


def _spread(read: Measured, named: Named) -> Verdict:
    d, m = read.experiment.d, read.experiment.neurons
    limit = BIG_O / math.log(d) ** 5
    expected = initial_spread(d, m, read.experiment.threshold)
    note = f"std over mean; {expected:.3g} expected by exact probability"
    if expected > limit:
        note += f": cannot hold at this size, it takes m = {m * (expected / limit) ** 2:.2g}"
    identity = named("start, spread of responses over features in one network")
    cases = read.cases(lambda k: read.of("start_spread", "fine", k))
    within = Range(-math.inf, limit, f"constant {BIG_O:g}")
    predicted = f"at most O(1/log^5 d) = {limit:.3g} (Prop. 1, 2)"
    return judge_range(identity, cases, within, predicted, note)


def _share(read: Measured, named: Named, members: str, labels: str) -> Verdict:
    cases = {
        f"{kind} features, {when}, k={k}": read.share(members, kind, labels, k)[:, place]
        for kind in OWN
        for when, place in (("start", 0), ("end", -1))
        for k in read.subclasses
    }
    identity = named(f"{labels} labels, share of the response: {SETS[members]}")
    within, predicted = Range(ALMOST_ALL, math.inf, "none"), f"at least {ALMOST_ALL:g} (7)"
    return judge_range(identity, cases, within, predicted, _least_share(read, members))


def _least_share(read: Measured, members: str) -> str:
    """At the start, where it is least, in words; S has all of the response by its margins."""
    if members == "able":
        return ""
    exact = {k: expected_share(read.experiment, members, k) for k in read.subclasses}
    k = min(exact, key=lambda each: exact[each])
    where = f"k={k}" if len(set(exact.values())) > 1 else "every k"
    found = f"at the start {exact[k]:.3g} is expected at {where} by exact probability"
    return found if exact[k] >= ALMOST_ALL else f"{found}: cannot hold at this size"


def _share_at_start(read: Measured, named: Named, members: str) -> Verdict:
    def off(k: int) -> np.ndarray:
        part, whole = (
            np.sum([read.of(f"{kind}_{name}", "fine", k)[:, 0] for kind in OWN], axis=0)
            for name in (f"by_{members}", "response")
        )
        exact = expected_share(read.experiment, members, k)
        return np.stack([part - exact * whole, whole], axis=1)

    identity = named(f"start, share minus its closed form: {SETS[members]}")
    note = "fine labels; all outputs of all seeds together"
    return judge_range(identity, read.cases(off), near(0, SHARE), "0", note)


def _nobody(read: Measured, named: Named, name: str, labels: str) -> Verdict:
    what, where, how = SILENT[name]
    identity = named(f"{labels} labels, {what} over the size of S(v), at every read")
    cases = read.at_every_read(lambda k: read.strangers(name, labels, k))
    within = Range(-math.inf, STRANGERS, f"at most {STRANGERS:g}")
    return judge_range(identity, cases, within, f"none ({where})", how)


def _others(read: Measured, named: Named, labels: str) -> Verdict:
    def grown(k: int) -> np.ndarray:
        values = read.of("other_response", labels, k)
        start = values[:, :1]
        return np.asarray((values - start) / start.mean() if start.any() else values)

    identity = named(f"{labels} labels, response to features of others minus its start")
    predicted, within = "at most 0 at every read (Theorem F.1, G.1, 3)", Range(-math.inf, 0, "none")
    per = "mean over outputs and features, over its mean at the start"
    note = f"{per}; the theorem has it for every neuron"
    return judge_range(identity, read.at_every_read(grown, later=True), within, predicted, note)
