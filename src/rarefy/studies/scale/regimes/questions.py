"""What turns over along a road, from where to where: "signal 0.5", "feature 0.1", "side 2"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rarefy.core.errors import bad_value
from rarefy.theory.topk import noise_threshold_order, signal_threshold_order

ROADS = ("signal", "feature", "tail", "side")
FEATURE_ENDS = (-2.0, 2.5)
"""log10 of |S| |u|^4/|A_k^T A_j|_F^2: much smaller than 1, and much larger."""
TAIL_ENDS = (0.0, 2.5)
"""log10 of Gamma: from noise without structure."""


@dataclass(frozen=True)
class Question:
    """number: the share of chance at which the boundary is (signal, feature), or L (tail, side)."""

    road: str
    number: float

    @property
    def by_noise(self) -> bool:
        """Whether classes are told apart by their noise alone."""
        return self.road in ("tail", "side")

    @property
    def world(self) -> str:
        """Questions of one world are asked of the same networks, at the same places."""
        return "noise" if self.by_noise else self.road

    def ends(self, size: int, classes: int) -> tuple[float, float]:
        """Where the road begins and ends, in log10: for the signal at the two thresholds of 002
        Theorems 4.3 and 4.2, constants read as 1, as n SNR^2/T."""
        if self.road == "feature":
            return FEATURE_ENDS
        if self.by_noise:
            return TAIL_ENDS
        samples = size * classes
        low, high = (
            math.log10(samples * float(snr) ** 2 / classes)
            for snr in (noise_threshold_order(samples), signal_threshold_order(classes, samples))
        )
        return low, high


def question_of(word: str) -> Question:
    """From its words."""
    allowed = "must be signal or feature with a share in (0, 1), or tail or side with L in [0, 5]"
    road, _, text = word.partition(" ")
    try:
        number = float(text)
    except ValueError:
        raise bad_value("question", word, allowed) from None
    found = Question(road, number)
    if road not in ROADS or not (0 <= number <= 5 if found.by_noise else 0 < number < 1):
        raise bad_value("question", word, allowed)
    return found
