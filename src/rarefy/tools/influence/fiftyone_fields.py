"""Scores as fields of a FiftyOne data set's samples. ``fiftyone`` itself is imported only to open
one by its name."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pandas as pd

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.messages import no_column

COLUMNS = {"": "influence", "_percentile": "percentile", "_triage": "triage", "_id": "id"}
"""What stands behind the field's name, and the column that goes there."""


def write_fiftyone(
    table: pd.DataFrame, dataset: Any, field: str = "influence", match: str = "filepath"
) -> int:
    """Set ``field``, ``field_percentile``, ``field_triage`` and ``field_id`` of the samples that
    the table has, and give how many these are. Others are not touched: tables of disjoint parts
    can be written one after the other.

    dataset: a FiftyOne data set or view, or the name of one. match: ``filepath`` compares with the
    table's ``name``, which may be the end of the path; ``id`` compares FiftyOne's own ids with
    ``name``; any other field is compared with the table's ``id`` (``influence_id`` after a first
    run). Scores that are undefined are written as None.
    """
    if not field.isidentifier():
        raise bad_value("field", field, "must be a name of letters, digits and underscores")
    key = "name" if match in ("filepath", "id") else "id"
    for column in (key, *COLUMNS.values()):
        if column not in table.columns:
            raise no_column("table", column, [str(name) for name in table.columns], "the table")
    if isinstance(dataset, str):
        dataset = _opened(dataset)
    rows = _rows_by(table, key)
    values = {suffix: table[column].tolist() for suffix, column in COLUMNS.items()}
    written: dict[int, str] = {}
    example = None
    for sample in dataset.iter_samples(autosave=True):
        mark = _mark_of(sample, match)
        example = mark if example is None else example
        row = _row_of(mark, rows, match == "filepath")
        if row is None:
            continue
        if row in written:
            raise UsageError(
                f"{written[row]} and {mark} are both {table[key].iloc[row]!r} in the table: its "
                "names must tell them apart"
            )
        written[row] = str(mark)
        for suffix, column in values.items():
            _set(sample, f"{field}{suffix}", column[row])
    if not written:
        ours = next(iter(rows))
        raise UsageError(f"no sample is in the table: it has {ours!r}, the data set {example!r}")
    return len(written)


def _opened(name: str) -> Any:
    try:
        fiftyone = importlib.import_module("fiftyone")
    except ModuleNotFoundError:
        raise UsageError(f"{name}: FiftyOne is needed: pip install fiftyone") from None
    if not fiftyone.dataset_exists(name):
        raise UsageError(f"FiftyOne has no data set {name!r}")
    return fiftyone.load_dataset(name)


def _rows_by(table: pd.DataFrame, key: str) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, mark in enumerate(table[key].tolist()):
        text = str(mark).replace("\\", "/")
        if not text:
            raise bad_value("match", key, f"row {row} of the table has no {key}")
        if text in rows:
            raise bad_value("match", key, f"rows {rows[text]} and {row} have the same, {text!r}")
        rows[text] = row
    if not rows:
        raise UsageError("the table has no rows")
    return rows


def _mark_of(sample: Any, match: str) -> Any:
    if match in ("filepath", "id"):
        return getattr(sample, match)
    return sample[match] if sample.has_field(match) else None


def _row_of(mark: Any, rows: dict[str, int], is_path: bool) -> int | None:
    """The whole of it, or (of a path) the longest end that the table has."""
    if mark is None:
        return None
    text = str(mark).replace("\\", "/")
    while text not in rows:
        _, slash, text = text.partition("/")
        if not is_path or not slash:
            return None
    return rows[text]


def _set(sample: Any, name: str, value: Any) -> None:
    if isinstance(value, float) and math.isnan(value):
        # FiftyOne cannot tell the type of a new field from nothing
        if not sample.has_field(name):
            return
        value = None
    sample[name] = value
