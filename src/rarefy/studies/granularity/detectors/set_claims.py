"""Verdicts of ``granularity-detectors`` on G4: who detects a feature at the start, and whether they
carry the answer to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rarefy.core.contracts import Verdict
from rarefy.measure.statistics import BIG_O
from rarefy.studies.granularity.common import LABELS
from rarefy.studies.granularity.detectors.judging import (
    OWN,
    RATE,
    Judge,
    Readings,
    expected_sets,
    judge_range,
    margin_noise,
)
from rarefy.studies.granularity.detectors.watch import SETS
from rarefy.theory.granularity import initial_share, initial_spread

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


def strangers(read: Readings, name: str, labels: str, subclasses: int) -> np.ndarray:
    """An output of ``SILENT`` as a number of neurons over the size of S, (seed, read)."""
    able = read.of("able_size", labels, subclasses)[:, None]
    everybody = read.study.changed(read.variation).neurons
    asked = everybody - able if name == "woken" else everybody
    return np.asarray(read.of(name, labels, subclasses) * asked / np.where(able > 0, able, np.nan))


@dataclass(frozen=True)
class SetJudge(Judge):
    """(7), (8), App. C, G.1."""

    claim: ClassVar[str] = "G4"

    def verdicts(self) -> list[Verdict]:
        return [*self.start(), *self.carriers()]

    def start(self) -> list[Verdict]:
        study, read = self.read.study, self.read
        printed, wide = expected_sets(study, True), expected_sets(study, False)
        sizes: dict[str, Callable[[int], float]] = {
            "printed": lambda k: printed.detectors,
            "detector": lambda k: study.neurons * wide.detector_among(2 + 2 * k),
            "able": lambda k: wide.able,
        }

        def relative(name: str) -> Callable[[int], np.ndarray]:
            return lambda k: read.of(f"{name}_size", "fine", k) / sizes[name](k)

        last = read.subclasses[-1]
        found = [
            judge_range(
                self.identity(f"start, neurons a feature over exact expectation: {words}"),
                self.cases(relative(name)),
                1 - RATE,
                1 + RATE,
                "1 (Prop. 1, 2)",
                f"±{RATE:g}",
                note=f"{sizes[name](last):.3g} expected at k={last}",
            )
            for name, words in SETS.items()
        ]
        found += [self._same_response(labels) for labels in LABELS]
        limit = BIG_O / math.log(study.d) ** 5
        expected = initial_spread(study.d, study.neurons, study.threshold)
        note = f"std over mean; {expected:.3g} expected by exact probability"
        if expected > limit:
            needed = study.neurons * (expected / limit) ** 2
            note += f": cannot hold at this size, it takes m = {needed:.2g}"
        found.append(
            judge_range(
                self.identity("start, spread of responses over features in one network"),
                self.cases(lambda k: read.of("start_spread", "fine", k)),
                -math.inf,
                limit,
                f"at most O(1/log^5 d) = {limit:.3g} (Prop. 1, 2)",
                f"constant {BIG_O:g}",
                note=note,
            )
        )
        return found

    def _same_response(self, labels: str) -> Verdict:
        def both(k: int) -> np.ndarray:
            return np.stack([self.read.of(f"start_{kind}", labels, k) for kind in OWN], axis=1)

        return judge_range(
            self.identity(f"{labels} labels, start, mean response common/subclass"),
            self.cases(both),
            1 - RATE,
            1 + RATE,
            "1 (8)",
            f"±{RATE:g}",
            note="all outputs of all seeds together",
        )

    def carriers(self) -> list[Verdict]:
        return [
            *(self._share(members, labels) for members in SETS for labels in LABELS),
            *(self._share_at_start(members) for members in ("printed", "detector")),
            *(self._nobody(name, labels) for name in SILENT for labels in LABELS),
            *(self._others(labels) for labels in LABELS),
        ]

    def _share(self, members: str, labels: str) -> Verdict:
        times = {"start": 0, "end": -1}
        cases = {
            f"{kind} features, {when}, k={k}": self.read.share(members, kind, labels, k)[:, place]
            for kind in OWN
            for when, place in times.items()
            for k in self.read.subclasses
        }
        return judge_range(
            self.identity(f"{labels} labels, share of the response: {SETS[members]}"),
            cases,
            ALMOST_ALL,
            math.inf,
            f"at least {ALMOST_ALL:g} (7)",
            "none",
            note=self._expected_share(members),
        )

    def _expected_share(self, members: str) -> str:
        """At the start, where it is least, in words; S has all of the response by its margins."""
        if members == "able":
            return ""
        exact = {k: self._exact_share(members, k) for k in self.read.subclasses}
        k = min(exact, key=lambda each: exact[each])
        where = f"k={k}" if len(set(exact.values())) > 1 else "every k"
        found = f"at the start {exact[k]:.3g} is expected at {where} by exact probability"
        return found if exact[k] >= ALMOST_ALL else f"{found}: cannot hold at this size"

    def _exact_share(self, members: str, subclasses: int) -> float:
        study = self.read.study
        if members == "printed":
            return initial_share(study.d, study.threshold)
        noise = margin_noise(study)
        return initial_share(study.d, study.threshold, 2 + 2 * subclasses, study.spread, noise)

    def _share_at_start(self, members: str) -> Verdict:
        def off(k: int) -> np.ndarray:
            part, whole = (
                np.sum([self.read.of(f"{kind}_{name}", "fine", k)[:, 0] for kind in OWN], axis=0)
                for name in (f"by_{members}", "response")
            )
            return np.stack([part - self._exact_share(members, k) * whole, whole], axis=1)

        return judge_range(
            self.identity(f"start, share minus its closed form: {SETS[members]}"),
            self.cases(off),
            -SHARE,
            SHARE,
            "0",
            f"±{SHARE:g}",
            note="fine labels; all outputs of all seeds together",
        )

    def _nobody(self, name: str, labels: str) -> Verdict:
        what, where, how = SILENT[name]
        return judge_range(
            self.identity(f"{labels} labels, {what} over the size of S(v), at every read"),
            self.at_every_read(lambda k: strangers(self.read, name, labels, k)),
            -math.inf,
            STRANGERS,
            f"none ({where})",
            f"at most {STRANGERS:g}",
            note=how,
        )

    def _others(self, labels: str) -> Verdict:
        def grown(k: int) -> np.ndarray:
            values = self.read.of("other_response", labels, k)
            start = values[:, :1]
            return np.asarray((values - start) / start.mean() if start.any() else values)

        return judge_range(
            self.identity(f"{labels} labels, response to features of others minus its start"),
            self.at_every_read(grown, later=True),
            -math.inf,
            0.0,
            "at most 0 at every read (Theorem F.1, G.1, 3)",
            "none",
            note="mean over outputs and features, over its mean at the start; the theorem has it "
            "for every neuron",
        )
