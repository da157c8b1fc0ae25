"""CSV: a parent map of two columns, or label columns whose header names the levels."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace

from rarefy.core.errors import UsageError
from rarefy.data.hierarchy.attaching import FILE, Annotations, put_once
from rarefy.data.hierarchy.levels import CLASS
from rarefy.data.hierarchy.parent_map import chain_levels, one_parent_each
from rarefy.data.images.image_set import ImageData

CHILD_WORDS = frozenset("child class subclass fine label name".split())
PARENT_WORDS = frozenset("parent superclass hypernym".split())
FIRST_WORDS = CHILD_WORDS | frozenset("file filename file_name image path".split())
"""Of the first column of a header, whatever the others are called."""


def read_csv(text: str, where: str, data: ImageData) -> Annotations:
    """Two columns ``child,parent`` (the header may be missing), or ``class,LEVEL,...``, where the
    first column may also have the files of the set."""
    rows = _rows(text, where)
    header = [cell.lower() for cell in rows[0]]
    if len(header) > 2:
        return _columns(rows, where, data)
    if header[0] in CHILD_WORDS and header[1] in PARENT_WORDS:
        rows = rows[1:]
    elif header[0] in PARENT_WORDS and header[1] in CHILD_WORDS:
        rows = [row[::-1] for row in rows[1:]]
    elif header[0] in FIRST_WORDS and rows[0][0] not in data.classes:
        return _columns(rows, where, data)
    elif _is_header(rows, data):
        note = f"{where}: the first row is read as its header: level {rows[0][1]!r}"
        return replace(_columns(rows, where, data), notes=(note,))
    if not rows:
        raise UsageError(f"{where}: has a header, but no rows")
    pairs = ((child, parent) for child, parent in rows)
    return chain_levels(one_parent_each(pairs, where), data.classes, where)


def _is_header(rows: Sequence[Sequence[str]], data: ImageData) -> bool:
    """Whether a first row of two unknown words is one: they name nothing else in the file, and the
    rows below are no chains, which only a parent map has."""
    first, second = rows[0]
    names, labels = {name for name, _ in rows[1:]}, {label for _, label in rows[1:]}
    known = first in data.classes or first in _files(data)
    return not (known or second in names or labels & {first, second, *names})


def _columns(rows: list[list[str]], where: str, data: ImageData) -> Annotations:
    header, *rest = rows
    files = _files(data)
    if header[0] in files or header[0] in data.classes:
        raise UsageError(f"{where}: the first row must name the columns, it is about {header[0]!r}")
    for place, name in enumerate(header[1:], start=2):
        if not name:
            raise UsageError(f"{where}: column {place} has no name in the header")
        if name in header[1 : place - 1]:
            raise UsageError(f"{where}: two columns are called {name!r}")
    if not rest:
        raise UsageError(f"{where}: has a header, but no rows")
    of = FILE if any(row[0] in files for row in rest) else CLASS
    levels: dict[str, dict[str, str]] = {name: {} for name in header[1:]}
    for row in rest:
        for name, label in zip(header[1:], row[1:], strict=True):
            put_once(levels[name], row[0], label, where, name)
    return Annotations(where, levels, of)


def _files(data: ImageData) -> set[str]:
    return {file for split in (data.train, data.test) for file in split.files or ()}


def _rows(text: str, where: str) -> list[list[str]]:
    """All rows that are not empty, stripped, each as long as the first."""
    start = text.lstrip().partition("\n")[0]
    mark = next((mark for mark in ",;\t" if mark in start), None)
    if mark is None:
        raise UsageError(f"{where}: no columns in it (expected child,parent or class,LEVEL,...)")
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    try:
        for found in reader:
            row = [cell.strip() for cell in found]
            if not any(row):
                continue
            if rows and len(row) != len(rows[0]):
                wanted = f"{len(row)} columns, {len(rows[0])} in the first"
                raise UsageError(f"{where}: line {reader.line_num} has {wanted}")
            rows.append(row)
    except csv.Error as error:
        raise UsageError(f"{where}: line {reader.line_num} is no CSV ({error})") from None
    if not rows:
        raise UsageError(f"{where}: no row has anything in it")
    if len(rows[0]) < 2:  # the mark stands in another line, a blank one or one that \r ends
        raise UsageError(f"{where}: no columns in it (expected child,parent or class,LEVEL,...)")
    return rows
