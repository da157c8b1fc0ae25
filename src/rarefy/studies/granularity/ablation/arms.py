"""Learners that ``granularity-ablation`` compares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import special

from rarefy.core.errors import bad_value
from rarefy.studies.granularity.experiment import GranularityExperiment
from rarefy.studies.granularity.trial import Trial
from rarefy.theory.linear_readout import LinearReadout

KINDS = ("following", "scheduled", "linear", "tuned")
PAPER = "paper"
"""The rate of (18), 1/log^5(d)."""
LINEAR = "linear-1"
"""The linear network in pictures and in the table of sensitivity."""


@dataclass(frozen=True)
class Arm:
    """kind: "following", biases fall by ``rate`` times their own neuron's movement (18);
    "scheduled": all biases fall alike, by ``rate`` times what a detector of the common feature
    moves in phase 1 of coarse training, eta s*/(4P) (004 Theorem D.1); "linear": no ReLU, biases
    stand still, learning ``rate`` times as fast; "tuned": following at the paper's rate, then
    fine-tuned on the coarse question."""

    kind: str
    rate: float

    @classmethod
    def parse(cls, word: str, d: int) -> Arm:
        """ "following-0.1", "scheduled-paper", "linear-1", "tuned"."""
        kind, _, text = word.partition("-")
        if kind not in KINDS or bool(text) != (kind != "tuned"):
            raise bad_value("arm", word, f"must be {', '.join(arms(('RATE',), ('RATE',)))}")
        if text == "" or (text == PAPER and kind != "linear"):
            return cls(kind, 1 / math.log(d) ** 5)
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 <= rate < math.inf:
            raise bad_value("arm", word, f"its rate must be {PAPER} or a number, at least 0")
        return cls(kind, rate)

    def of(self, setting: GranularityExperiment, trial: Trial) -> Trial:
        """The trial with this learner. A linear network's neurons all respond to a feature, not
        only the share that is awake at the start: its learning rate is multiplied by that share,
        so that at rate 1 scores begin to grow at the same pace."""
        if self.kind == "linear":
            problem = replace(trial.problem, linear=True, bias="still")
            return replace(trial, problem=problem, lr=setting.lr * self.rate * awake_share(setting))
        bias = "scheduled" if self.kind == "scheduled" else "following"
        return replace(trial, problem=replace(trial.problem, bias=bias, bias_rate=self.rate))


def arms(rates: Sequence[str], linear: Sequence[str] = ("1", "4")) -> tuple[str, ...]:
    """Both ways to move biases at every rate, linear networks at theirs, and fine-tuning."""
    moved = (f"{kind}-{rate}" for kind in KINDS[:2] for rate in rates)
    return (*moved, *(f"linear-{rate}" for rate in linear), "tuned")


def rate_of(word: str) -> str:
    """The rate in an arm's name, "" for none."""
    return word.partition("-")[2]


def awake_share(setting: GranularityExperiment) -> float:
    """Share of neurons that respond to a given feature at the start, P(g > c_b sqrt(log d))."""
    return float(special.ndtr(-setting.threshold * math.sqrt(math.log(setting.d))))


def linear_readout(setting: GranularityExperiment) -> LinearReadout | None:
    """The best readout without ReLU of a setting's samples; none where patch counts are drawn, for
    which there is no closed form."""
    if setting.counts != "fixed":
        return None
    names = ("patches", "feature_patches", "sigma", "spread", "distractors", "distraction")
    return LinearReadout(**setting.some("subclasses", *names, "strong"))
