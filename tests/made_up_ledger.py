"""A ledger of a few made-up claims about the toy study, in a test's own folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import xarray as xr
from toy_study import Toy

from rarefy.core.contracts import Verdict
from rarefy.ledger import claims, verdicts

PRIMARY = {
    "study": "toy",
    "scale": "quick",
    "asks": "the mean end of the walks with the largest drift",
    "expects": "8",
    "tolerance": "0.5",
    "why": "half a step",
    "least_n": 20,
    "premise": "steps are independent",
    "null": "a walk without drift ends at 0 and fails",
}
SENTENCE = "Walks with drift end where the paper says they end, to half a step, at every sigma."


@dataclass(frozen=True, kw_only=True)
class Declared(Toy):
    """The toy with a primary reading and one under another choice."""

    def verdicts(self, results: xr.Dataset, scale: str) -> list[Verdict]:
        (one,) = super().verdicts(results, scale)
        expected = self.drift[-1] * self.steps * self.lr
        measured = {"value": float(one.measured), "allowed": (expected - 0.5, expected + 0.5)}
        primary = replace(one, claim="T1.1", **measured)  # type: ignore[arg-type]
        return [primary, replace(one, setting="with a choice that nobody else would have " * 3)]


def claim(name: str = "T1", **said: Any) -> str:
    """One claim as TOML; ``primary=None`` leaves its primary reading out."""
    entry = {
        "paper": "003",
        "where": "Fig. 3a, 3b",
        "statement": "A walk with drift ends near drift times steps.",
        "setting": "as in the paper",
        "choices": "",
        "seen": "before",
        "answer": "supported",
        "line": SENTENCE,
        "ran": "the same walk",
        "saw": "7.85 with n 60",
        "so": "walks walk",
        "change": "a walk that does not",
        "not_run": "",
        "figure": "",
    }
    primary = PRIMARY | said.pop("primary", {}) if said.get("primary", {}) is not None else None
    said.pop("primary", None)
    lines = [f"[{name}]", "declared = 2026-11-17"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in (entry | said).items()]
    if primary is not None:
        lines += [f"[[{name}.primary]]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in primary.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def made_up_ledger(folder: Path, *written: str) -> Iterator[Path]:
    """Only these claims are in the ledger, and no verdict yet."""
    (folder / "ledger").mkdir()
    (folder / "ledger" / "003.toml").write_text("\n".join(written), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for module in (claims, verdicts):
            patch.setattr(module, "ledger_folder", lambda: folder / "ledger")
        claims.load_claims.cache_clear()
        yield folder / "ledger"
    claims.load_claims.cache_clear()
