"""The named settings of ``benign-training``: what differs between them, and from the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STAGE_1_DROP, LONG_DROP = 1 / 40, 1 / 5
"""Share of the loss log K that the first step is to take away (by ``first_loss_drop``): stage 1 in
fine steps, and as far as few steps go."""


@dataclass(frozen=True)
class Case:
    """One way to train. ``drop``: the rate is the one whose first step takes this share of the loss
    away (0: as printed, with the sum over filters); ``uneven``: class sizes grow by factors of 2;
    ``wide``: few samples, many filters, as Condition 1 (b) asks; ``start``: Gaussian initial
    weights, "small" (smaller than PyTorch's) or "large" (as large as (118) asks, on which Lemma 4
    is built)."""

    text: str
    training: str
    drop: float = 0.0
    uneven: bool = False
    wide: bool = False
    start: str = ""

    @property
    def stops(self) -> bool:
        """Whether a run ends when its training loss is small."""
        return self.training in ("trained", "carried on")

    @property
    def is_stage_1(self) -> bool:
        return self.training == "slow"


CASES: Mapping[str, Case] = {
    "slow": Case("small rate", "slow", STAGE_1_DROP),
    "slow uneven": Case("small rate, classes of unequal size", "slow", STAGE_1_DROP, uneven=True),
    "trained": Case("until the loss is small", "trained", LONG_DROP),
    "carried on": Case("the printed recipe with the sum over filters, carried on", "carried on"),
    "wide": Case(
        "few samples, many filters, small initial weights",
        "trained",
        LONG_DROP,
        wide=True,
        start="small",
    ),
    "wide large start": Case(
        "few samples, many filters, large initial weights",
        "trained",
        LONG_DROP,
        wide=True,
        start="large",
    ),
    "long": Case("trained on and on", "long", LONG_DROP),
}

ENDS = ("trained", "carried on", "wide", "wide large start")
"""Settings at whose end Lemmas 3-7 are looked at."""
