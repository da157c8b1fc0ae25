"""Decisions about samples, as the gallery exports them: keep, drop, or relabel to a class.

A file of picks is JSON, ``{"format": "rarefy picks 1", "data", "fingerprint", "read", "picks"}``:
what the page was made of, the content's fingerprint, the options it was read with, and one object
per sample (``id``, ``name``, ``label``, ``decision``, ``new_label``, ``why``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.reading import read_json
from rarefy.core.text import one_line, printable
from rarefy.data.images.ids import digest_of, short_hash
from rarefy.data.images.listing import listed
from rarefy.tools.samples.messages import in_a_line
from rarefy.tools.samples.samples import Samples

FORMAT = "rarefy picks 1"
KEEP, DROP, RELABEL = "keep", "drop", "relabel"
DECISIONS = (KEEP, DROP, RELABEL)
READ = ("split", "label", "labels", "columns", "names", "image", "size", "test_share", "skip_bad")
"""Options of reading that a file of picks may bring: those on which ids depend, and names."""


@dataclass(frozen=True)
class Pick:
    """What is to be done to one sample. ``label``: the one it had, where that is known."""

    id: str
    decision: str
    new_label: str = ""
    label: str = ""
    name: str = ""
    why: str = ""

    @property
    def said(self) -> str:
        return repr(self.name or self.id)


@dataclass(frozen=True)
class Picks:
    """All of a file, one per sample; ``where`` it came from, for complaints."""

    picks: tuple[Pick, ...]
    fingerprint: str = ""
    data: str = ""
    read: Mapping[str, Any] = field(default_factory=dict)
    where: str = "picks"

    @property
    def key(self) -> str:
        """The same for the same decisions, in whatever order."""
        return short_hash(sorted(f"{one.id} {one.decision} {one.new_label}" for one in self.picks))


def read_picks(source: Picks | pd.DataFrame | str | Path) -> Picks:
    """A file that a gallery exported, or a table with columns ``id``, ``decision`` and, where
    something is relabelled, ``new_label`` (``label``, ``name``, ``why`` if they are there)."""
    if isinstance(source, Picks):
        return source
    if isinstance(source, pd.DataFrame):
        for column in ("id", "decision"):
            if column not in source:
                raise bad_value("picks", list(map(str, source)), f"must have a column {column!r}")
        used = [name for name in Pick.__dataclass_fields__ if name in source]
        rows = source[used].astype(object)
        return Picks(_each(rows.where(rows.notna(), "").to_dict("records"), "a table"))
    where = str(source)
    try:
        held = read_json(Path(source).expanduser())
    except OSError as error:
        why = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise bad_value("picks", where, f"{why}; give the JSON file of a gallery") from None
    except ValueError as error:
        what = f"is no JSON ({in_a_line(error)}); give the file that a gallery exported"
        raise bad_value("picks", where, what) from None
    kind = held.get("format") if isinstance(held, dict) else None
    if not isinstance(kind, str) or not kind.startswith("rarefy picks"):
        raise bad_value("picks", where, f'has no picks in it (no "format": "{FORMAT}")')
    if kind != FORMAT:
        what = f"is in the format {kind!r}, here {FORMAT!r} is read; write and export the page anew"
        raise bad_value("picks", where, what)
    picks, read = held.get("picks"), held.get("read", {})
    if not isinstance(picks, list) or not isinstance(read, dict):
        raise bad_value("picks", where, 'must have a list "picks" (and an object "read")')
    read = {key: value for key, value in read.items() if key in READ and value is not None}
    for key, value in read.items():
        if key == "columns" and not (isinstance(value, list) and all(map(_is_text, value))):
            raise bad_value("picks", where, 'its "columns" must be a list of names')
        if key != "columns" and not isinstance(value, str | int | float):
            raise bad_value("picks", where, f'its "{key}" must be a text or a number')
    fingerprint, data = str(held.get("fingerprint", "")), str(held.get("data", ""))
    return Picks(_each(picks, where), fingerprint, data, read, where)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _each(records: list[Any], where: str) -> tuple[Pick, ...]:
    found: dict[str, Pick] = {}
    for turn, record in enumerate(records):
        at = f"pick {turn} of {where}"
        if not isinstance(record, dict) or not isinstance(record.get("id"), str):
            raise bad_value("picks", at, "must be an object with an id")
        texts = {key: record.get(key) for key in Pick.__dataclass_fields__}
        pick = Pick(**{key: "" if text is None else str(text) for key, text in texts.items()})
        if pick.decision not in DECISIONS:
            raise bad_value("decision", pick.decision, f"of {at}: must be {', '.join(DECISIONS)}")
        if pick.decision == RELABEL and not pick.new_label:
            raise bad_value("new_label", "", f"of {at}: must name a class")
        before = found.setdefault(pick.id, pick)
        if (before.decision, before.new_label) != (pick.decision, pick.new_label):
            both = " and ".join(f"{p.decision} {p.new_label}".strip() for p in (before, pick))
            raise bad_value("picks", where, f"has two decisions about {pick.said}: {both}")
    return tuple(found.values())


# ------------------------------------------------------------------------------ picks meet samples


@dataclass(frozen=True, eq=False)
class Decisions:
    """Of each sample whether it stays and its label afterwards, (n,); ``picks`` by row."""

    keep: NDArray[np.bool_]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    picks: dict[int, Pick]
    notes: tuple[str, ...] = ()

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Those that stay with another label."""
        return self.keep & (self.before != self.after)

    def sources(self, classes: tuple[str, ...]) -> NDArray[np.int64]:
        """Of each sample that stays a row that has its label from the start: from there a table or
        an array takes the label in its own form (number, text, category)."""
        rows = np.arange(len(self.keep))
        for label in np.unique(self.after[self.moved]):
            there = np.flatnonzero(self.before == label)
            if not len(there):
                what = "no sample has that label, so that its form in the file is not known"
                raise bad_value("new_label", printable(classes[label]), what)
            rows[self.moved & (self.after == label)] = there[0]
        return rows[self.keep]


def decide(samples: Samples, picks: Picks) -> Decisions:
    """Find every picked sample by its content. Picks of other data are refused; data that have
    grown since, or lie in another order, are not other data."""
    rows = _rows(samples, picks)
    places = {one_line(printable(name)): place for place, name in enumerate(samples.classes)}
    keep, after = np.ones(len(samples), dtype=np.bool_), samples.labels.copy()
    by_row: dict[int, Pick] = {}
    for row, pick in zip(rows, picks.picks, strict=True):
        has = one_line(printable(samples.classes[samples.labels[row]]))
        if pick.label and pick.label != has:
            what = f"{pick.said} has the label {pick.label!r} there and {has!r} in {samples.name}"
            raise bad_value("picks", picks.where, f"{what}: its labels were changed since")
        if row in by_row:
            what = f"{pick.said} and {by_row[row].said} are the same sample of {samples.name}"
            raise bad_value("picks", picks.where, what)
        by_row[row] = pick
        if pick.decision == DROP:
            keep[row] = False
        elif pick.decision == RELABEL:
            if pick.new_label not in places:
                raise _no_class(pick, list(places), samples.name)
            after[row] = places[pick.new_label]
    notes = []
    if picks.fingerprint and picks.fingerprint != samples.fingerprint:
        notes.append(f"{samples.name} has changed since the page was made; every pick is in it")
    return Decisions(keep, samples.labels, after, by_row, tuple(notes))


def _rows(samples: Samples, picks: Picks) -> list[int]:
    """Where each picked sample is. Exact copies of one label are told apart by name, where there
    are names: their occurrence numbers depend on their order."""
    other = picks.fingerprint and picks.fingerprint != samples.fingerprint
    if other and not picks.picks:
        raise _other_data(samples, picks, f"they were made of {picks.data!r}")
    wanted = {digest_of(one.id) for one in picks.picks}
    copies: dict[str, list[int]] = {}
    for row, identity in enumerate(samples.ids):
        if (digest := digest_of(identity)) in wanted:
            copies.setdefault(digest, []).append(row)
    found, missing = [], []
    for one in picks.picks:
        same = copies.get(digest_of(one.id), [])
        exact = [row for row in same if samples.ids[row] == one.id]
        if not exact:
            missing.append(one)
            continue
        if len(same) > 1 and one.name and samples.files is not None:
            files = [row for row in same if one_line(samples.files[row]) == one.name]
            label = samples.labels[exact[0]]
            files = [row for row in files if samples.labels[row] == label]
            exact = files if len(files) == 1 else exact
        found.append(exact[0])
    if missing:
        count = f"{len(missing)} of {len(picks.picks)} picked samples"
        raise _other_data(samples, picks, f"{count} are not in it (first {missing[0].said})")
    return found


def _other_data(samples: Samples, picks: Picks, why: str) -> UsageError:
    return bad_value("picks", picks.where, f"are picks of other data than {samples.name}: {why}")


def _no_class(pick: Pick, known: list[str], data: str) -> UsageError:
    near = get_close_matches(pick.new_label, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    what = f"for {pick.said} is no class of {data}{hint} (known: {listed(known)})"
    return bad_value("new_label", pick.new_label, what)
