"""The claims as declared: one TOML file per paper, written by hand.

Per claim: what the paper says and where, its primary readings (at most three; the first of B6 is
``B6.1``), and the answer in a person's words. ``ledger.answers`` computes the answer; a test
compares the two, and every number that the words quote (``ledger.quotes``).
"""

from __future__ import annotations

import dataclasses
import datetime
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rarefy.core.errors import RunError
from rarefy.core.papers import PAPERS
from rarefy.ledger.verdicts import ledger_folder

STATES = (
    "supported",
    "contradicted",
    "smaller than published",
    "premise not met",
    "undecided",
    "not run",
)
SIGNS = dict(zip(STATES, "✓✗<∅?–", strict=True))
"""In front of an answer, so that it can be read without its colour."""
OWN = "own"
"""Instead of a paper's key: a question of our own."""
MOST_PRIMARIES = 3
LINE = 88
"""Characters of an answer's line; with mark and id a hundred at most."""
ID = re.compile(r"[A-Z]\d+")


@dataclass(frozen=True)
class Primary:
    """A reading that decides, ``B6.1``: ``expects`` and ``tolerance`` as its verdicts have them."""

    id: str
    study: str
    scale: str
    asks: str
    expects: str
    tolerance: str
    why: str
    least_n: int
    premise: str
    null: str


@dataclass(frozen=True)
class Claim:
    """A statement of a paper, and our answer in words. ``seen``: were results known when the
    primaries were declared, "before" or "after" them. ``picture``: which of the first study's
    pictures to show with ``figure``; empty: the first. ``review``: why a referee calls the answer
    unfair, until it is decided afresh."""

    id: str
    paper: str
    where: str
    statement: str
    setting: str
    choices: str
    declared: datetime.date
    seen: str
    answer: str
    line: str
    ran: str
    saw: str
    so: str
    change: str
    not_run: str
    figure: str
    picture: str = ""
    review: str = ""
    primaries: tuple[Primary, ...] = ()

    @property
    def sentence(self) -> str:
        """The line, which says if it is under review."""
        return f"Under review: {self.line}" if self.review else self.line

    @property
    def papers(self) -> tuple[str, ...]:
        return tuple(self.paper.split(", "))


@cache
def load_claims() -> tuple[Claim, ...]:
    """All claims, paper by paper, in the order of the files."""
    found = [claim for path in sorted(ledger_folder().glob("*.toml")) for claim in read(path)]
    names = [claim.id for claim in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RunError(f"the ledger answers {', '.join(twice)} twice")
    return tuple(found)


def read(path: Path) -> list[Claim]:
    """The claims of one file; what is wrong with it is named with its claim."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"cannot read the ledger {path.name}: {error}") from error
    found = []
    for name, entry in entries.items():
        try:
            found.append(_claim(name, dict(entry)))
        except (ValueError, TypeError) as error:
            raise RunError(f"the ledger {path.name}, claim {name}: {error}") from error
    return found


def _claim(name: str, entry: dict[str, Any]) -> Claim:
    listed = enumerate(entry.pop("primary", []), 1)
    primaries = tuple(_primary(f"{name}.{number}", one) for number, one in listed)
    _check_fields(Claim, entry, {"id", "primaries"})
    claim = Claim(id=name, primaries=primaries, **entry)
    wrong = {
        "an id is a letter and a number": not ID.fullmatch(name),
        f"paper must be keys of {', '.join(PAPERS)}, or {OWN}": not (
            claim.paper == OWN or set(claim.papers) <= PAPERS.keys()
        ),
        f"answer must be one of {', '.join(STATES)}": claim.answer not in STATES,
        "seen must be before or after": claim.seen not in ("before", "after"),
        f"line has more than {LINE} characters": len(claim.line) > LINE,
        f"more than {MOST_PRIMARIES} primary readings": len(primaries) > MOST_PRIMARIES,
        "not run needs its reason in not_run": claim.answer == "not run" and not claim.not_run,
        "an answer needs a primary reading": claim.answer != "not run" and not primaries,
    }
    for said, is_wrong in wrong.items():
        if is_wrong:
            raise ValueError(said)
    for text in ("where", "statement", "line"):
        if not getattr(claim, text):
            raise ValueError(f"{text} is empty")
    return claim


def _primary(name: str, entry: dict[str, Any]) -> Primary:
    _check_fields(Primary, entry, {"id"})
    primary = Primary(id=name, **entry)
    if not primary.why:
        raise ValueError("a tolerance without a reason: why is empty")
    if not primary.null:
        raise ValueError("null is empty: what would a trivial model score?")
    if primary.least_n < 5:
        raise ValueError(f"least_n={primary.least_n}: fewer than 5 decide nothing")
    return primary


def _check_fields(kind: type, entry: dict[str, Any], ours: set[str]) -> None:
    fields = [field for field in dataclasses.fields(kind) if field.name not in ours]
    known = {field.name for field in fields}
    needed = {field.name for field in fields if field.default is dataclasses.MISSING}
    for word, names in (("lacks", needed - entry.keys()), ("does not know", entry.keys() - known)):
        if names:
            raise ValueError(f"{word} {', '.join(sorted(names))}")
