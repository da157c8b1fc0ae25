"""Samples from tables: Parquet, CSV, TSV and Feather files, and pandas DataFrames."""

from __future__ import annotations

import csv
import io
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.reading import UTF16
from rarefy.core.settings import free_memory
from rarefy.data.images.listing import counted, listed, spell_bytes
from rarefy.data.images.unpack_limit import LimitedGzip
from rarefy.tools.samples.labels import encode_labels
from rarefy.tools.samples.messages import in_a_line, no_column, rows_text
from rarefy.tools.samples.samples import Samples

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
"""Endings of text tables, and what stands between their cells."""
LABEL = "label"
"""The column with the classes where nobody names one, as features files have it."""
ENDINGS = (".parquet", ".pq", ".feather", *TEXT)


def from_table(
    path: str | Path,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    names: str | None = None,
    classes: Sequence[str] | None = None,
) -> Samples:
    """A table file with one row per sample.

    label: the column with the classes; ``label`` if not given. columns: what is scored; by default
    the one column that holds lists of numbers of one length (embeddings), or else all columns of
    numbers, but for one that only counts the rows. names: a column of file names or other names.
    """
    table = _read(Path(path), label, columns, names)
    about = Path(path).name
    found = _samples(table, label or LABEL, columns, names, classes, about, str(path))
    if label is not None:
        return found
    return replace(found, notes=(f"labels: column {LABEL!r} of {about}", *found.notes))


def from_frame(
    frame: pd.DataFrame,
    label: str,
    columns: Sequence[str] | None = None,
    names: str | None = None,
    classes: Sequence[str] | None = None,
) -> Samples:
    """The same of a DataFrame."""
    import pyarrow as pa

    texts = frame.rename(columns=str)
    _check_columns(list(texts.columns), label, columns, names, "the table")
    try:
        table = pa.Table.from_pandas(texts, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"the table cannot be read ({in_a_line(error)})") from None
    return _samples(table, label, columns, names, classes, "table", "a DataFrame")


def ending_of(path: str | Path) -> str | None:
    """The ending that says that this is a table, if it has one."""
    lower = Path(path).name.lower()
    return next((ending for ending in ENDINGS if lower.endswith(ending)), None)


# ------------------------------------------------------------------------------------------ reading


def _read(
    path: Path, label: str | None, columns: Sequence[str] | None, names: str | None
) -> pa.Table:
    import pyarrow as pa
    from pyarrow import feather, parquet

    ending = ending_of(path)
    if ending is None:
        raise bad_value("path", str(path), f"must end in one of {', '.join(ENDINGS)}")
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    labelled = LABEL if label is None else label
    wanted = None if columns is None else [*columns, labelled, *([] if names is None else [names])]
    try:
        if ending in TEXT:
            table = _read_text(path, TEXT[ending], label, columns, names)
        elif ending == ".feather":
            table = feather.read_table(path)
        else:
            opened = parquet.read_metadata(path)
            _check_columns(opened.schema.to_arrow_schema().names, label, columns, names, path.name)
            _check_room(path, opened, wanted)
            table = parquet.read_table(path, columns=wanted, partitioning=None)
        # Arrow looks at places and numbers of categories when they are used, or never: one that
        # leads outside of the table ends the process
        table.validate(full=True)
    except UsageError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, csv.Error, zlib.error) as error:
        raise UsageError(f"{path}: cannot be read as a table ({in_a_line(error)})") from None
    _check_columns(table.column_names, label, columns, names, path.name)
    return table


def _read_text(
    path: Path,
    delimiter: str,
    label: str | None,
    columns: Sequence[str] | None,
    names: str | None,
) -> pa.Table:
    """By pandas: Arrow's reader of CSV has threads that may end the process when it exits. Labels
    and names stay text: "NA" may be a class, and 07 another one than 7."""
    import pandas as pd
    import pyarrow as pa

    with _open_text(path) as stream:
        rows = csv.reader(stream, delimiter=delimiter)
        header = next(filter(None, rows), [])
        if not header:
            raise UsageError(f"{path}: has no rows")
        _check_columns(header, label, columns, names, path.name)
        kept = [name for name in (label or LABEL, names) if name is not None]
        texts: dict[str, list[str]] = {name: [] for name in kept}
        places = [(header.index(name), cells) for name, cells in texts.items()]
        for row in filter(None, rows):
            if len(row) != len(header):  # pandas would fill up short ones
                what = f"line {rows.line_num} has {counted(len(row), 'cell')}, not {len(header)}"
                raise UsageError(f"{path}: cannot be read as a table ({what})")
            for place, cells in places:
                cells.append(row[place])
        stream.seek(0)
        older = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        exact: Any = {"float_precision": "round_trip"} if older else {}  # (as newer ones read)
        frame = pd.read_csv(
            stream,
            sep=delimiter,
            header=0,
            names=header,
            index_col=False,
            usecols=[name for name in columns or header if name not in texts],
            low_memory=False,  # a column has one type, however long it is
            **exact,
        )
    # (a column that is empty throughout is none of numbers)
    empty = frame.isna().all()
    held = {
        name: pa.nulls(len(frame)) if none else pa.array(_numbers(values), from_pandas=True)
        for (name, values), none in zip(frame.items(), empty, strict=True)
    }
    return pa.table({**held, **{name: pa.array(cells) for name, cells in texts.items()}})


def _numbers(values: pd.Series) -> pd.Series:
    """Also of whole numbers beyond 64 bits, which pandas leaves as they stand in the file."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(values):
        return values
    try:
        return pd.to_numeric(values).astype(float)
    except (TypeError, ValueError):
        return values


@contextmanager
def _open_text(path: Path) -> Iterator[io.TextIOWrapper]:
    """A text table, its line ends as they are; a mark at its beginning is no part of it."""
    packed = path.name.lower().endswith(".gz")
    with LimitedGzip(path) if packed else path.open("rb") as stream:
        start = stream.read(4096)
        stream.seek(0)
        wide = start.startswith(tuple(UTF16))
        if b"\0" in start and not wide:
            raise UsageError(f"{path}: holds zero bytes, as no text in UTF-8 does")
        with io.TextIOWrapper(stream, "utf-16" if wide else "utf-8-sig", newline="") as text:
            try:
                yield text
            except UnicodeError as error:
                what = f"is no text in {'UTF-16' if wide else 'UTF-8'} ({in_a_line(error)})"
                raise UsageError(f"{path}: {what}") from None


def _check_room(path: Path, told: Any, wanted: Sequence[str] | None) -> None:
    """One number a billion times takes kilobytes in a Parquet file, and here 8 bytes each."""
    leaves = [told.schema.column(place) for place in range(told.num_columns)]
    of = {leaf.path: leaf.path.partition(".")[0] for leaf in leaves}
    asked = [leaf for leaf in leaves if wanted is None or of[leaf.path] in wanted]
    lists = {leaf.path for leaf in asked if leaf.max_repetition_level}
    values = told.num_rows * (len(asked) - len(lists))
    if lists:
        from pyarrow import parquet

        # Arrow's Python ends the process where the note of a column is damaged, its reader does not
        with parquet.ParquetFile(path) as held:
            held.scan_contents([place for place, leaf in enumerate(leaves) if leaf.path in lists])
        groups = [told.row_group(number) for number in range(told.num_row_groups)]
        values += sum(
            group.column(place).num_values
            for group in groups
            for place, leaf in enumerate(leaves)
            if leaf.path in lists
        )
    free = free_memory(torch.device("cpu"))
    if 8 * values > free:
        raise UsageError(
            f"{path}: its {values:,} values take {spell_bytes(8 * values)} of memory, of which "
            f"{spell_bytes(free)} are free; rarefy influence --stream reads Parquet in pieces"
        )


def _check_columns(
    held: list[str], label: str | None, columns: Sequence[str] | None, names: str | None, where: str
) -> None:
    times = Counter(held)
    if label is None:
        if LABEL not in times:
            raise bad_value("label", None, f"{where}: name the column that has the classes")
        label = LABEL
    for what, each in (("label", [label]), ("columns", columns or ()), ("names", [names])):
        for column in each:
            if column is not None and column not in times:
                raise no_column(what, column, held, where)
    twice = sorted(column for column, count in times.items() if count > 1)
    if twice:
        raise UsageError(f"{where}: several columns are named {listed(twice)}")
    if columns is not None and (label in columns or not columns):
        found = "nothing" if not columns else f"the label column {label!r}"
        raise bad_value("columns", found, "must be columns of numbers")


# ------------------------------------------------------------------------------- columns to numbers


def _samples(
    table: pa.Table,
    label: str,
    columns: Sequence[str] | None,
    names: str | None,
    classes: Sequence[str] | None,
    about: str,
    source: str,
) -> Samples:
    if not table.num_rows:
        raise UsageError(f"{about}: has no rows")
    chosen, notes = chosen_columns(table, label, columns, names, about)
    features, feature_names = features_of(table, chosen, about)
    values = table.column(label)
    try:
        labels, known = encode_labels(labels_of(values), table.num_rows, classes)
    except UsageError as error:
        raise UsageError(f"{about}: column {label!r}: {error}") from None
    if len(known) == table.num_rows:
        notes.append(f"column {label!r} names samples, not classes: no value occurs twice")
    files = None
    if names is not None:
        files = tuple("" if text is None else str(text) for text in table.column(names).to_pylist())
    return Samples(
        name=about,
        features=features,
        labels=labels,
        classes=known,
        files=files,
        feature_names=feature_names,
        source=source,
        notes=tuple(notes),
    )


def labels_of(values: Any) -> object:
    """Text stays text; numbers stay numbers, with NaN where there is none."""
    import pyarrow as pa

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_integer(kind) and not values.null_count:
        return values.to_numpy()
    try:
        return np.array([*values.to_pylist(), None], dtype=object)[:-1]
    except (OverflowError, ValueError) as error:  # a date after the year 9999, say
        raise UsageError(f"{values.type} that Python has no value for ({error})") from None


def chosen_columns(
    table: pa.Table, label: str, columns: Sequence[str] | None, names: str | None, about: str
) -> tuple[list[str], list[str]]:
    """Which columns are features, and notes on those that are not."""
    if columns is not None:
        for column in columns:
            kind = table.column(column).type
            if not (_is_number(kind) or _is_list(kind)):
                found = f"{column!r} of {kind}"
                raise bad_value("columns", found, "must be numbers or lists of numbers")
        return list(columns), []
    free = [name for name in table.column_names if name not in (label, names)]
    kinds = dict(zip(table.column_names, table.schema.types, strict=True))
    lists = [name for name in free if _is_list(kinds[name])]
    numbers = [name for name in free if _is_number(kinds[name])]
    if len(lists) > 1:
        raise UsageError(f"{about}: several columns hold lists ({listed(lists)}): name one of them")
    if lists:
        return lists, [f"only {lists[0]!r} is scored, not {listed(numbers)}"] if numbers else []
    counts = {name: _counts_rows(table.column(name)) for name in numbers}
    counting = [name for name in numbers if counts[name]]
    chosen = [name for name in numbers if not counts[name]]
    if not chosen:
        raise UsageError(f"{about}: no column of numbers besides the label (it has {listed(free)})")
    notes = [f"column {name!r} only counts the rows and is not scored" for name in counting]
    others = [name for name in free if not _is_number(kinds[name])]
    if others:
        notes.append(f"columns that are no numbers are not scored: {listed(others)}")
    return chosen, notes


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = pa.types
    return kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = pa.types
    nested = kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind)
    return nested and _is_number(kind.value_type)


def _counts_rows(values: Any) -> bool:
    """Whether a column is 0, 1, 2 ... from anywhere on: an index that became a column."""
    import pyarrow as pa

    if not pa.types.is_integer(values.type) or values.null_count or len(values) < 3:
        return False
    return bool((np.diff(values.to_numpy().astype(np.int64)) == 1).all())


def features_of(
    table: pa.Table, chosen: Iterable[str], about: str
) -> tuple[NDArray[Any], tuple[str, ...]]:
    parts, names = [], []
    for column in chosen:
        values = table.column(column)
        missing = _rows_without(values)
        if missing.size:
            raise UsageError(f"{about}: column {column!r} has no value in {rows_text(missing)}")
        if _is_list(values.type):
            parts.append(_rows_of_lists(values, column, about))
            names += [f"{column}[{place}]" for place in range(parts[-1].shape[1])]
        else:
            parts.append(np.asarray(values.to_numpy())[:, None])
            names.append(column)
    if len(parts) == 1:
        features = parts[0]
    else:
        features = np.concatenate(parts, axis=1)
    return features.view(np.int8) if features.dtype == np.bool_ else features, tuple(names)


def _rows_without(values: Any) -> NDArray[np.int64]:
    """Where a column is empty, in either way in which a table says so."""
    import pyarrow as pa
    from pyarrow import compute

    lacking = compute.is_null(values, nan_is_null=pa.types.is_floating(values.type))
    return np.flatnonzero(lacking.to_numpy())


def _rows_of_lists(values: Any, column: str, about: str) -> NDArray[Any]:
    from pyarrow import compute

    lengths = compute.list_value_length(values).to_numpy()
    other = np.flatnonzero(lengths != lengths[0])
    if not lengths[0]:
        raise UsageError(f"{about}: column {column!r} has an empty list in {rows_text([0])}")
    if other.size:
        raise UsageError(
            f"{about}: column {column!r} has lists of {counted(lengths[0], 'number')} in row 0, "
            f"but of {lengths[other[0]]} in {rows_text(other)}; all must have one length"
        )
    flat = compute.list_flatten(values)
    if flat.null_count:
        missing = np.flatnonzero(compute.is_null(flat).to_numpy()) // lengths[0]
        raise UsageError(f"{about}: column {column!r} has gaps in {rows_text(np.unique(missing))}")
    return np.asarray(flat.to_numpy()).reshape(len(values), -1)
