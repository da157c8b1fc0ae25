"""The named settings of ``benign-training``: what differs between them, and from the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

STAGE_1_DROP, LONG_DROP = 1 / 40, 1 / 5
"""Share of the loss log K that the first step is to take away (by ``first_loss_drop``), where a
setting's rate is chosen by that: stage 1 in fine steps, stage 2 as far as steps go."""


@dataclass(frozen=True)
class Case:
    """One way to train. ``drop``: the rate is the one whose first step takes this share of the
    loss away (0: the study's rate for ``training``), times ``rate``; ``filters``: factor on m;
    ``uneven``: class sizes grow by factors of 2; ``wide``: few samples, many filters, as Lemma 3
    asks; ``start``: Gaussian initial weights, "small" (smaller than PyTorch's) or "large" (as large
    as (118) asks, on which Lemma 4 is built)."""

    text: str
    training: str
    drop: float = 0.0
    rate: float = 1.0
    filters: float = 1.0
    uneven: bool = False
    wide: bool = False
    start: str = ""

    @property
    def stops(self) -> bool:
        """Whether a run ends when its training loss is small."""
        return self.training == "trained"

    @property
    def is_stage_1(self) -> bool:
        return self.training == "slow"


CASES: Mapping[str, Case] = {
    "slow": Case("small rate", "slow", STAGE_1_DROP),
    "slow m/4": Case("small rate, a quarter of the filters", "slow", STAGE_1_DROP, filters=0.25),
    "slow 2m": Case("small rate, twice the filters", "slow", STAGE_1_DROP, filters=2.0),
    "slow 4eta": Case("four times the small rate", "slow", STAGE_1_DROP, rate=4.0),
    "slow uneven": Case("small rate, classes of unequal size", "slow", STAGE_1_DROP, uneven=True),
    "printed": Case("as printed", "printed"),
    "trained": Case("until the loss is small", "trained"),
    "small start": Case("until the loss is small, small initial weights", "trained", start="small"),
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

STAGE_1 = tuple(name for name, case in CASES.items() if case.is_stage_1)
ENDS = ("printed", "trained", "small start", "wide", "wide large start")
"""Settings at whose end Lemmas 3-7 are looked at."""
