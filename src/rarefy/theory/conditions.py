"""One assumption of a theorem, checked: what it asks for, what is there, and how far it is away."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rarefy.core.errors import bad_value

SENSES = (">=", "<=")
COLUMNS = ("condition", "asks for", "here", "limit", "holds", "short by")
"""Titles for the rows that ``table_rows`` gives."""


@dataclass(frozen=True)
class Condition:
    """``value`` must be at least (``>=``) or at most (``<=``) ``limit``.

    ``formula`` is the whole inequality as the paper has it, in words a person can compare.
    """

    name: str
    value: float
    sense: str
    limit: float
    formula: str

    def __post_init__(self) -> None:
        if self.sense not in SENSES:
            raise bad_value("sense", self.sense, f"must be one of {', '.join(SENSES)}")
        for name in ("value", "limit"):
            if math.isnan(getattr(self, name)):
                raise bad_value(name, getattr(self, name), f"must be a number ({self.name})")

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.sense == ">=" else self.value <= self.limit

    @property
    def ratio(self) -> float:
        """By what factor it is missed: at most 1 where it holds; infinite where no factor helps
        (a value of the wrong sign)."""
        high, low = (self.limit, self.value) if self.sense == ">=" else (self.value, self.limit)
        if low > 0:
            return max(high, 0.0) / low if math.isfinite(low) else float(not self.holds)
        # nothing to multiply: either the inequality holds anyway or it is out of reach
        return (1.0 if high == low else 0.0) if self.holds else math.inf

    def text(self) -> str:
        """One line: ``violated 40 times: d = 200 >= 8e+03 (d >= T + ...)``."""
        if self.holds:
            state = "holds"
        elif math.isinf(self.ratio):
            state = "violated"
        else:
            state = f"violated {self.ratio:.3g} times"
        return (
            f"{state}: {self.name} = {self.value:.4g} {self.sense} {self.limit:.4g} "
            f"({self.formula})"
        )


def worst(conditions: Iterable[Condition]) -> Condition:
    """The one that is furthest from holding."""
    listed = list(conditions)
    if not listed:
        raise bad_value("conditions", listed, "needs at least one")
    return max(listed, key=lambda condition: condition.ratio)


def table_rows(conditions: Sequence[Condition]) -> list[tuple[str, str, str, str, str, str]]:
    """One row of text per condition, under ``COLUMNS``."""
    return [
        (
            each.name,
            each.formula,
            f"{each.value:.4g}",
            f"{each.sense} {each.limit:.4g}",
            "yes" if each.holds else "no",
            "" if each.holds else f"{each.ratio:.3g} times",
        )
        for each in conditions
    ]
