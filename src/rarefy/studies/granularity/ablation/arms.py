"""Learners that ``granularity-ablation`` compares, and what becomes of detectors in fine-tuning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from scipy import stats
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.measure.detectors import Roles, pooled, response, responses, roles
from rarefy.studies.granularity.experiment import GranularityExperiment, Trial
from rarefy.theory.granularity import first_rates
from rarefy.theory.linear_readout import LinearReadout
from rarefy.train.descent import State

KINDS = ("following", "scheduled", "linear", "tuned")
PAPER = "paper"
"""The rate of (18), 1/log^5(d)."""
LINEAR = "linear-1"
"""The linear network in pictures and in the table of sensitivity."""
SAME = 1e-6
"""Rounding of a weight that nothing has moved, over the largest weight."""


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

    def of(self, study: GranularityExperiment, experiment: Trial) -> Trial:
        """The experiment with this learner. A linear network's neurons all respond to a feature,
        not only the share that is awake at the start: its learning rate is multiplied by that
        share, so that at rate 1 scores begin to grow at the same pace."""
        if self.kind == "linear":
            problem = replace(experiment.problem, linear=True, bias="still")
            return replace(
                experiment, problem=problem, lr=study.lr * self.rate * awake_share(study)
            )
        bias = "scheduled" if self.kind == "scheduled" else "following"
        problem = replace(experiment.problem, bias=bias, bias_rate=self.rate)
        return replace(experiment, problem=problem)


def arms(rates: Sequence[str], linear: Sequence[str] = ("1", "4")) -> tuple[str, ...]:
    """Both ways to move biases at every rate, linear networks at theirs, and fine-tuning."""
    moved = (f"{kind}-{rate}" for kind in KINDS[:2] for rate in rates)
    return (*moved, *(f"linear-{rate}" for rate in linear), "tuned")


def rate_of(word: str) -> str:
    """The rate in an arm's name, "" for none."""
    return word.partition("-")[2]


def awake_share(study: GranularityExperiment) -> float:
    """Share of neurons that respond to a given feature at the start, P(g > c_b sqrt(log d))."""
    return float(stats.norm.sf(study.threshold * math.sqrt(math.log(study.d))))


def matched_rate(rate: float, subclasses: int) -> float:
    """Rate at which a bias that follows a detector of the common feature would fall, with fine
    labels and at first, as fast as a hard-coded one at ``rate``: k times as large. The schedule is
    made for coarse labels, with which that detector moves k times as fast."""
    coarse, fine = (
        first_rates(
            lr=1.0,
            feature_patches=1,
            patches=2,
            plus=subclasses,
            minus=subclasses,
            per_side=per_side,
        )
        for per_side in (1, subclasses)
    )
    return rate * coarse.common / fine.common


def linear_readout(study: GranularityExperiment, subclasses: int) -> LinearReadout | None:
    """The best readout without ReLU of a study's samples; none where patch counts are drawn, for
    which there is no closed form."""
    if study.counts != "fixed":
        return None
    return LinearReadout(
        subclasses=subclasses,
        patches=study.patches,
        feature_patches=study.feature_patches,
        sigma=study.sigma,
        spread=study.spread,
        distractors=study.distractors,
        distraction=study.distraction,
        strong=study.strong,
    )


# ---------------------------------------------------------------------------------------- detectors

DETECTORS = {
    "own_weight": "<w, v> of the neurons of S(v), v a subclass's feature, own output, mean",
    "own_response": "response of its own output to a subclass's feature, mean",
    "common_weight": "<w, v> of the neurons of S(v), v a side's common feature, its outputs, mean",
    "common_response": "response of a side's outputs to its common feature, mean",
}


@dataclass(frozen=True)
class Detectors:
    """sets: neurons that a feature wakes at the start, S(v) of 004 Def. C.1, 3 and G.1, 3 without
    its margin, (run, output, m, feature). (Those that nothing else wakes, S*(v), are rare at such
    sizes.) Subclass features are looked at in their own output, common features in all outputs of
    their side."""

    sets: Tensor
    role: Roles

    @classmethod
    def of(cls, experiment: Trial) -> Detectors:
        initial, features = experiment.initial, 2 + experiment.data.subclasses
        awake = responses(initial["weights"], initial["bias"], features) > 0
        return cls(awake, roles(experiment.labels))

    def look(self, state: State) -> Tensor:
        """A tracker of ``DETECTORS``, (run, measure)."""
        weights, bias = state.parameters["weights"], state.parameters["bias"]
        features = self.sets.shape[3]
        along = (weights[..., :features] * self.sets).sum(dim=2) / self.sets.sum(dim=2)
        answer = response(weights, bias, features)
        found = [
            pooled(values, where)
            for where in (self.role.subclass, self.role.common)
            for values in (along, answer)
        ]
        return torch.stack(found, dim=1)

    def kept(self, before: dict[str, Tensor], after: dict[str, Tensor]) -> Tensor:
        """Share of the detectors of subclass features whose <w, v> is not smaller than before,
        (run,). Only those that were still awake then count."""
        features = self.sets.shape[3]
        old, new = (state["weights"][..., :features] for state in (before, after))
        own = self.role.subclass.to(old.device)[None, :, None]
        awake = self.sets & own & (old + before["bias"][..., None] > 0)
        slack = SAME * old.abs().amax(dim=(1, 2, 3), keepdim=True)
        total = awake.sum(dim=(1, 2, 3))
        return ((new >= old - slack) & awake).sum(dim=(1, 2, 3)) / total
