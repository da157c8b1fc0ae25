"""What turns over along a path, from where to where: "signal 0.5", "feature 0.1", "side 2"."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rarefy.core.errors import bad_value
from rarefy.theory.topk import noise_threshold_order, signal_threshold_order

PATHS = ("signal", "feature", "tail", "side")
FEATURE_ENDS = (-2.0, 2.5)
"""log10 of |S| |u|^4/|A_k^T A_j|_F^2: much smaller than 1, and much larger."""
TAIL_ENDS = (0.0, 2.5)
"""log10 of Gamma: from noise without structure."""


@dataclass(frozen=True)
class Question:
    """number: the share of chance at which the boundary is (signal, feature), or L (tail, side)."""

    path: str
    number: float

    @property
    def by_noise(self) -> bool:
        """Whether classes are told apart by their noise alone."""
        return self.path in ("tail", "side")

    @property
    def world(self) -> str:
        """Questions of one world are asked of the same networks, at the same places."""
        return "noise" if self.by_noise else self.path

    def ends(self, size: int, classes: int) -> tuple[float, float]:
        """Where the path begins and ends, in log10: for the signal at the two thresholds of 002
        Theorems 4.3 and 4.2, constants read as 1, as n SNR^2/T."""
        if self.path != "signal":
            return TAIL_ENDS if self.by_noise else FEATURE_ENDS
        n = size * classes
        low, high = noise_threshold_order(n), signal_threshold_order(classes, n)
        return math.log10(n * float(low) ** 2 / classes), math.log10(n * float(high) ** 2 / classes)


def question_of(word: str) -> Question:
    """From its words."""
    allowed = "must be signal or feature with a share in (0, 1), or tail or side with L in [0, 5]"
    path, _, text = word.partition(" ")
    try:
        found = Question(path, float(text))
    except ValueError:
        raise bad_value("question", word, allowed) from None
    number = found.number
    if path not in PATHS or not (0 <= number <= 5 if found.by_noise else 0 < number < 1):
        raise bad_value("question", word, allowed)
    return found
