"""The verdicts last measured, as package data.

A verdict is compared only with the one of the same claim, study, scale and setting. Verdicts lie in
``verdicts-<study>.json``, one per line: a commit shows what changed, and no file grows large.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from rarefy.core.errors import RunError
from rarefy.core.reading import read_json
from rarefy.core.verdict import Verdict
from rarefy.core.writing import write_whole

Identity = tuple[str, str, str, str]
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
CLOSE = 1e-4
"""Relative: result files keep five digits, and machines sum in different orders."""
ZERO = 1e-12
"""What rounding leaves of an exact zero: -1.01e-18 on one machine was 0 on another."""


@dataclass(frozen=True)
class Change:
    """One difference between fresh verdicts and the ledger. ``kind``: ``changed`` (another
    outcome), ``numbers`` (the same outcome, with another
    value, interval or n, or asked another way), ``gone``
    (the study no longer judges it), ``new`` (the ledger has none yet)."""

    kind: str
    identity: Identity
    before: str | None
    after: str | None


def ledger_folder() -> Path:
    return Path(str(files("rarefy"))) / "ledger"


def load_verdicts() -> list[Verdict]:
    """The verdicts last committed, sorted by identity."""
    found = [
        verdict for path in ledger_folder().glob("verdicts-*.json") for verdict in _verdicts(path)
    ]
    return sorted(found, key=lambda verdict: verdict.identity)


def _verdicts(path: Path) -> list[Verdict]:
    entries = _read(path)
    try:
        return [verdict_from_json(entry) for entry in entries]
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise RunError(f"cannot read the ledger {path.name}: {reason}") from error


def check_ledger(path: Path) -> str:
    """What is wrong with a file of verdicts, as ``save_verdicts`` writes them, or of claims."""
    if path.suffix == ".toml":
        from rarefy.ledger.claims import read  # (which stands on this file)

        return "" if read(path) else "has no claims"
    verdicts = _verdicts(path)
    identities = [verdict.identity for verdict in verdicts]
    if identities != sorted(set(identities)):
        return "verdicts are not in order, or there twice"
    if any(f"verdicts-{verdict.study}.json" != path.name for verdict in verdicts):
        return "has verdicts of another study"
    if path.read_text("utf-8") != _lines(verdicts):
        return "is not as it was written"
    return ""


def save_verdicts(verdicts: Iterable[Verdict], drop: Iterable[Identity] = ()) -> None:
    """Put verdicts into the ledger, each in the place of the one with its identity; leave out
    those in ``drop``. Files of studies that are not named stay as they are."""
    fresh, drop = {verdict.identity: verdict for verdict in verdicts}, set(drop)
    merged = {verdict.identity: verdict for verdict in load_verdicts()} | fresh
    for study in sorted({identity[1] for identity in drop | fresh.keys()}):
        kept = [i for i in sorted(merged) if i[1] == study and i not in drop]
        path = ledger_folder() / f"verdicts-{study}.json"
        try:
            if kept:
                path.parent.mkdir(exist_ok=True)
                write_whole(path, _lines(merged[i] for i in kept))
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise RunError(f"cannot write the ledger: {error.strerror or error}") from error


def _lines(verdicts: Iterable[Verdict]) -> str:
    """A JSON list with one entry per line."""
    entries = [
        json.dumps(verdict_to_json(verdict), ensure_ascii=False, allow_nan=False)
        for verdict in verdicts
    ]
    return "[\n" + ",\n".join(entries) + "\n]\n"


def compare(fresh: Iterable[Verdict], committed: Iterable[Verdict]) -> list[Change]:
    """How fresh verdicts differ from the committed ones of the same identity."""
    before = {verdict.identity: verdict for verdict in committed}
    after = {verdict.identity: verdict for verdict in fresh}
    changes: list[Change] = []
    for identity, verdict in sorted(after.items(), key=lambda item: item[0]):
        known = before.get(identity)
        if known is None:
            changes.append(Change("new", identity, None, verdict.outcome))
        elif known.outcome != verdict.outcome:
            changes.append(Change("changed", identity, known.outcome, verdict.outcome))
        elif _asked(known) != _asked(verdict):
            changes.append(Change("numbers", identity, _asked(known), _asked(verdict)))
        elif not _same_numbers(known, verdict):
            changes.append(Change("numbers", identity, _numbers(known), _numbers(verdict)))
    # a verdict that silently stops being given must not pass for an unchanged one
    judged = {identity[1:3] for identity in after}
    for identity in sorted(before.keys() - after.keys()):
        if identity[1:3] in judged:
            changes.append(Change("gone", identity, before[identity].outcome, None))
    return changes


def _same_numbers(one: Verdict, other: Verdict) -> bool:
    before, after = _numbers(one), _numbers(other)
    if one.n != other.n or NUMBER.split(before) != NUMBER.split(after):
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=CLOSE, abs_tol=ZERO) for a, b in pairs)


def _numbers(verdict: Verdict) -> str:
    """What was measured, as exactly as the ledger has it: an interval to six digits."""
    entry = verdict_to_json(verdict)
    interval = "" if entry["interval"] is None else " [{}, {}]".format(*entry["interval"])
    return f"{verdict.measured}{interval} (n {verdict.n})"


def _asked(verdict: Verdict) -> str:
    return f"asked {verdict.predicted}, tolerance {verdict.tolerance}"


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    entry = dataclasses.asdict(verdict)
    for name in ("interval", "allowed"):
        if entry[name] is not None:
            entry[name] = [_number(end) for end in entry[name]]
    for name in ("value", "p", "published"):
        if entry[name] is not None:
            entry[name] = _number(entry[name])
    kept = {field.name for field in dataclasses.fields(verdict) if field.default is not None}
    return {name: value for name, value in entry.items() if value is not None or name in kept}


def verdict_from_json(entry: dict[str, Any]) -> Verdict:
    entry = dict(entry)
    for name in ("interval", "allowed"):
        if entry.get(name) is not None:
            low, high = entry[name]
            entry[name] = (float(low), float(high))
    verdict = Verdict(**entry)
    if not all(isinstance(word, str) for word in verdict.identity):
        raise TypeError(f"{verdict.identity} are not all texts")
    return verdict


def _number(value: float) -> float | str:
    # six digits: the same numbers on another machine should not show up as a change. JSON has no
    # infinity, which a one-sided interval needs; float("inf") reads its text
    value = float(f"{value:.6g}")
    return value if abs(value) < float("inf") else str(value)


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        entries = read_json(path)
    except (OSError, ValueError) as error:
        raise RunError(f"cannot read the ledger {path.name}: {error}") from error
    if not isinstance(entries, list):
        raise RunError(f"cannot read the ledger {path.name}: it is not a list")
    return entries
