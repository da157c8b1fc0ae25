"""Tables of scores on disk, with what they were made from, and joined with other tables by id."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from rarefy.core.cells import defused, restored, with_texts
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.reading import read_json
from rarefy.core.version import __version__
from rarefy.core.writing import Content, write_output
from rarefy.data.images.ids import short_hash
from rarefy.data.images.listing import listed
from rarefy.tools.samples.messages import in_a_line, no_column, rows_text

FORMAT = "rarefy influence 1"
KEY = b"rarefy"
"""Under this the manifest stands in a Parquet file."""
ENDINGS = (".parquet", ".csv")


def write_table(
    table: pd.DataFrame, path: str | Path, write: Callable[[Path, bytes | str], None] = write_output
) -> Path:
    """Write a table, all at once or not at all, as its ending says: ``.parquet``, which holds its
    manifest inside, or ``.csv``, whose manifest is ``PATH.json``. The table's own index is not
    kept. The manifest has the facts in ``table.attrs``, versions, and a fingerprint of the data."""
    path = _checked(path)
    twice = table.columns[table.columns.duplicated()]
    if len(twice):
        raise UsageError(f"the table has several columns of one name: {listed([*map(str, twice)])}")
    plain, about = _utf8(table.reset_index(drop=True)), manifest_of(table)
    if path.suffix.lower() == ".csv":
        # all text in quotes: pandas would leave a carriage return in a name without
        quotes = {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\n"}
        content = defused(plain).to_csv(index=False, **quotes).encode()
        about["apostrophes"] = True  # (earlier files have none)
        # two files cannot be replaced in one step: this tells whether they belong together
        about["table"] = hashlib.blake2b(content, digest_size=16).hexdigest()
        write(path, content)
        write(_beside(path), json.dumps(about, indent=1) + "\n")
        return path
    plain.attrs = {}  # pandas would write them too
    try:
        columns = pa.Table.from_pandas(plain, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"the table cannot be written as Parquet ({in_a_line(error)})") from None
    metadata = {**(columns.schema.metadata or {}), KEY: json.dumps(about).encode()}
    buffer = BytesIO()
    parquet.write_table(columns.replace_schema_metadata(metadata), buffer, compression="zstd")
    write(path, buffer.getvalue())
    return path


def write_parts(
    parts: Iterable[pd.DataFrame],
    path: Path,
    facts: Mapping[str, Any],
    rows: int,
    write: Callable[[Path, Content], None] = write_output,
) -> None:
    """Write a table that comes in parts, a row group each: as ``write_table`` would the whole."""

    def save(partial: Path) -> None:
        writer: parquet.ParquetWriter | None = None
        for part in parts:
            columns = pa.Table.from_pandas(_utf8(part), preserve_index=False)
            if writer is None:
                part.attrs = dict(facts)
                about = {**manifest_of(part), "rows": rows}
                metadata = {**(columns.schema.metadata or {}), KEY: json.dumps(about).encode()}
                schema = columns.schema.with_metadata(metadata)
                writer = parquet.ParquetWriter(partial, schema, compression="zstd")
            writer.write_table(columns.cast(schema))
        if writer is not None:
            writer.close()

    write(path, save)


def read_table(path: str | Path) -> pd.DataFrame:
    """What ``write_table`` wrote, with its ``attrs``."""
    table, _ = _read(_checked(path))
    return table


def join(table: pd.DataFrame, other: pd.DataFrame, on: str = "id") -> pd.DataFrame:
    """The table with the other's columns beside, row by row where ``on`` is the same; rows that the
    other does not have are left empty. ``attrs["joined"]`` counts the rows that it had."""
    for what, each in (("table", table), ("other", other)):
        if on not in each.columns:
            raise no_column("on", on, [str(name) for name in each.columns], what)
    repeated = other[on].duplicated().to_numpy()
    if repeated.any():
        where = rows_text(np.flatnonzero(repeated))
        raise UsageError(f"other: {on} must be different in each row, but is repeated in {where}")
    both = sorted(str(name) for name in set(table.columns) & set(other.columns) if name != on)
    if both:
        raise UsageError(f"both tables have columns {listed(both)}: rename or drop them first")
    matched = int(table[on].isin(other[on]).sum())
    if not matched:
        raise UsageError(f"none of the {len(table)} rows has its {on} in the other table")
    joined = table.merge(other, on=on, how="left", validate="many_to_one")
    joined.index = table.index
    joined.attrs = {**table.attrs, "joined": matched}
    return joined


def manifest_of(table: pd.DataFrame) -> dict[str, Any]:
    """Facts, versions, and a hash of ids and labels whatever the order of the rows."""
    fingerprint = None
    if {"id", "label"} <= set(table.columns):
        pairs = zip(table["id"], table["label"], strict=True)
        fingerprint = short_hash(sorted(f"{one} {label}" for one, label in pairs))
    return {
        "format": FORMAT,
        "facts": _plain(dict(table.attrs), "attrs"),
        "rows": len(table),
        "columns": {str(name): str(kind) for name, kind in table.dtypes.items()},
        "fingerprint": fingerprint,
        "versions": {
            "rarefy": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "pandas": pd.__version__,
            "pyarrow": pa.__version__,
        },
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


# ------------------------------------------------------------------------------------------- inside


def _plain(value: Any, where: str) -> Any:
    """As JSON has it: lists for tuples, text for keys, nothing for NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(held, f"{where}[{key!r}]") for key, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held, f"{where}[{place}]") for place, held in enumerate(value)]
    raise bad_value(where, type(value).__name__, "facts must be as JSON has them")


def _utf8(table: pd.DataFrame) -> pd.DataFrame:
    """File names may hold bytes that are no text; neither kind of file has room for them."""
    return with_texts(table, _odd, lambda text: text.encode("utf-8", "backslashreplace").decode())


def _odd(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _checked(path: str | Path) -> Path:
    path = Path(path).expanduser()
    if path.suffix.lower() not in ENDINGS:
        raise bad_value("path", str(path), f"must end in one of {', '.join(ENDINGS)}")
    return path


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _read(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    try:
        if path.suffix.lower() == ".csv":
            return _with_facts(*_read_csv(path))
        held = parquet.read_table(path, partitioning=None)
        about = json.loads((held.schema.metadata or {}).get(KEY, b"null"))
        if about is None or about["format"] != FORMAT:
            raise UsageError(f"{path}: was not written by rarefy influence")
        return _with_facts(held.to_pandas(), about)
    except UsageError:
        raise
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise UsageError(f"{path}: cannot be read ({in_a_line(error)})") from None


def _with_facts(table: pd.DataFrame, about: dict[str, Any]) -> tuple[pd.DataFrame, dict[str, Any]]:
    table.attrs = dict(about["facts"])
    return table, about


def _read_csv(path: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    beside = _beside(path)
    if not beside.is_file():
        raise UsageError(f"{path}: {beside.name} is missing beside it")
    try:
        about = read_json(beside)
    except ValueError as error:
        raise UsageError(f"{beside}: cannot be read ({in_a_line(error)})") from None
    if about["format"] != FORMAT:
        raise UsageError(f"{path}: was not written by rarefy influence")
    kinds, content = about["columns"], path.read_bytes()
    if hashlib.blake2b(content, digest_size=16).hexdigest() != about["table"]:
        raise UsageError(f"{path}: was changed since {beside.name} was written")
    table = pd.read_csv(
        BytesIO(content),
        # as text: an empty name is a name, a class may be called "NA", and 07 is not 7
        dtype=str,
        keep_default_na=False,
    )
    found = {name: _typed(table[name], kind) for name, kind in kinds.items()}
    if about.get("apostrophes"):
        found = {
            name: restored(each) if isinstance(each, pd.Series) and kinds[name] != "bool" else each
            for name, each in found.items()
        }
    return pd.DataFrame(found), about


def _typed(texts: pd.Series, kind: str) -> Any:
    """A column of text as the type that it had."""
    if kind == "bool":
        return texts == "True"
    if kind.startswith(("float", "int", "uint")):
        # numpy reads every digit; what pandas does depends on its version
        return np.array([text or "nan" for text in texts.tolist()], dtype=kind)
    return texts
