"""Claims, primaries and verdicts that nobody measured."""

from __future__ import annotations

import datetime
from typing import Any

from rarefy.core.verdict import Verdict
from rarefy.ledger.claims import Claim, Primary


def primary(**given: Any) -> Primary:
    usual: dict[str, Any] = dict.fromkeys(
        ("asks", "expects", "tolerance", "why", "premise", "null"), "x"
    )
    return Primary(
        **{"id": "B1.1", **usual, "study": "toy", "scale": "paper", "least_n": 5, **given}
    )


def claim(name: str = "B1", primaries: int = 1, **given: Any) -> Claim:
    words = ("where", "statement", "setting", "choices", "line", "ran", "saw", "so", "change")
    usual: dict[str, Any] = dict.fromkeys((*words, "not_run", "figure"), "")
    usual |= {"paper": "003", "declared": datetime.date(2026, 11, 17), "seen": "before"}
    usual |= {
        "answer": "supported",
        "primaries": tuple(primary(id=f"{name}.{number}") for number in range(1, primaries + 1)),
    }
    return Claim(id=name, **{**usual, **given})


def verdict(
    name: str = "B1.1",
    value: float = 2.0,
    half: float = 0.5,
    outcome: str = "holds",
    n: int = 20,
    **given: Any,
) -> Verdict:
    """``value`` with an interval of ``half`` to either side; the claim wants it above 1."""
    usual: dict[str, Any] = {
        "study": "toy",
        "scale": "paper",
        "setting": f"{name} as printed",
        "predicted": "at least 1",
        "measured": f"mean {value:g}",
        "interval": (value - half, value + half),
        "tolerance": "none",
        "value": value,
        "allowed": (1.0, float("inf")),
    }
    return Verdict(claim=name, n=n, outcome=outcome, **{**usual, **given})
