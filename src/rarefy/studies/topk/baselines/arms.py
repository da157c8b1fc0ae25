"""What is compared in one training run: a method and the strength of its only knob."""

from __future__ import annotations

from dataclasses import dataclass

from rarefy.core.errors import bad_value
from rarefy.train.topk_pruning import check_keep

READINGS = ("revive", "revive0", "fixed")
"""Ways to read TopK. 002 Sec. 3 takes ReLU'(0) = 1: a signal coordinate that was pruned sees
exactly 0, still has a gradient, and may come back. "revive0" is the same pruning with ReLU'(0) = 0,
the convention of automatic differentiation."""
PRUNED = (*READINGS, "random")
"""Methods whose knob is K, the coordinates kept of every filter."""
METHODS = ("dense", *PRUNED, "decay")
NAMES = {
    "dense": "dense",
    "early": "early stopping",
    "decay": "weight decay",
    "random": "random mask",
    "fixed": "TopK fixed",
    "revive0": "TopK, ReLU'(0)=0",
    "revive": "TopK revive",
}
"""What the methods are called before readers. Early stopping is the dense run, read earlier."""
SPELLING = "must be dense, revive-K, revive0-K, fixed-K, random-K or decay-LAMBDA"


@dataclass(frozen=True)
class Arm:
    """``keep`` is d, and ``decay`` 0, where the method does not touch them."""

    method: str
    keep: int
    decay: float

    @classmethod
    def parse(cls, word: str, d: int, lr: float) -> Arm:
        """From a word such as "dense", "revive-8" or "decay-0.01"."""
        method, dash, text = word.partition("-")
        if method not in METHODS or bool(dash) == (method == "dense"):
            raise bad_value("arm", word, SPELLING)
        if method == "dense":
            return cls(method, d, 0.0)
        try:
            knob = float(text)
        except ValueError:
            raise bad_value("arm", word, SPELLING) from None
        if method in PRUNED:
            if not knob.is_integer():
                raise bad_value("arm", word, "K must be a whole number")
            check_keep(int(knob), d)
            return cls(method, int(knob), 0.0)
        if not 0 < knob < 1 / lr:  # from 1/lr on a step turns weights round
            raise bad_value("arm", word, f"weight decay must lie between 0 and 1/lr={1 / lr:g}")
        return cls(method, d, knob)

    @property
    def knob(self) -> float:
        """K, or lambda; NaN for dense training, which has none."""
        if self.method in PRUNED:
            return float(self.keep)
        return self.decay if self.method == "decay" else float("nan")

    @property
    def reading(self) -> str:
        """What becomes of pruned coordinates, as ``TopKPruning`` has it."""
        return self.method.removesuffix("0") if self.method in PRUNED else "dense"

    @property
    def slope_at_zero(self) -> int:
        """ReLU'(0)."""
        return 0 if self.method == "revive0" else 1


def arms(keeps: tuple[int, ...], decays: tuple[float, ...]) -> tuple[str, ...]:
    """Dense once, each way of pruning at each K, weight decay at each lambda."""
    pruned = tuple(f"{method}-{keep}" for method in PRUNED for keep in keeps)
    return ("dense", *pruned, *(f"decay-{decay:g}" for decay in decays))
