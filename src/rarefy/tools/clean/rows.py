"""Cleaned tables and arrays: rows left out, labels changed, everything else as it came."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError
from rarefy.core.reading import UTF16
from rarefy.tools.clean.picks import Decisions
from rarefy.tools.samples.arrays import load_npy, npz_keys, open_npz
from rarefy.tools.samples.labels import NUMBER
from rarefy.tools.samples.row_store import new_map
from rarefy.tools.samples.samples import Samples
from rarefy.tools.samples.tables import TEXT, ending_of

PARTS = ("train", "test", "val", "valid", "validation")
"""What stands behind the names of arrays that belong together."""
_AT_ONCE = 1 << 26  # bytes of a memory map that are copied together


def write_table(
    path: Path, label: str, samples: Samples, decisions: Decisions, target: Path
) -> None:
    """The table in its own format; of a text table every line that stays is the same bytes, but for
    the labels that were changed."""
    ending = ending_of(path)
    if ending in TEXT:
        _write_text(path, label, TEXT[ending], samples, decisions, target)
        return
    from pyarrow import feather, parquet

    if ending == ".feather":
        feather.write_feather(
            _changed(feather.read_table(path), label, samples, decisions), str(target)
        )
        return
    table = parquet.read_table(path, partitioning=None)
    parquet.write_table(_changed(table, label, samples, decisions), target)


def write_frame(frame: Any, label: str, samples: Samples, decisions: Decisions, path: Path) -> None:
    """A DataFrame as Parquet."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)
    parquet.write_table(_changed(table, label, samples, decisions), path)


def _changed(table: Any, label: str, samples: Samples, decisions: Decisions) -> Any:
    """Rows chosen, the label column taken from rows that have the label: type, categories and
    metadata stay."""
    if table.num_rows != len(samples):
        raise UsageError(f"{samples.name}: has changed while it was read")
    place = table.column_names.index(label)
    column = table.column(label).take(decisions.sources(samples.classes))
    kept = table.take(np.flatnonzero(decisions.keep))
    return kept.set_column(place, table.schema.field(place), column)


def _write_text(
    path: Path, label: str, delimiter: str, samples: Samples, decisions: Decisions, target: Path
) -> None:
    packed = path.name.lower().endswith(".gz")
    content = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    coding = UTF16.get(content[:2], "utf-8")
    text = content.decode(coding)
    lines, place, row = ["\ufeff" * text.startswith("\ufeff")], -1, 0
    for raw, cells in _records(text.removeprefix("\ufeff"), delimiter):
        if not cells or place < 0:  # an empty line is no row, and the first other one is the header
            place = cells.index(label) if cells else place
            lines.append(raw)
            continue
        had = samples.classes[samples.labels[row]] if row < len(samples) else None
        if place >= len(cells) or cells[place] != had:
            what = f"{path}: row {row} (counting from 0) cannot be told apart from the others here"
            raise UsageError(f"{what}; save the table without line ends in its cells")
        if decisions.moved[row]:
            cells[place] = samples.classes[decisions.after[row]]
            end = raw[len(raw.rstrip("\r\n")) :]
            lines.append(_line(cells, delimiter, end))
        elif decisions.keep[row]:
            lines.append(raw)
        row += 1
    if row != len(samples):
        raise UsageError(f"{path}: has changed while it was read")
    whole = "".join(lines).encode(coding)
    target.write_bytes(gzip.compress(whole, mtime=0) if packed else whole)


def _records(text: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Each record as it stands, and its cells."""
    held: list[str] = []

    def lines() -> Iterator[str]:
        for line in io.StringIO(text, newline=""):
            held.append(line)
            yield line

    try:
        for cells in csv.reader(lines(), delimiter=delimiter):
            raw = "".join(held)
            held.clear()
            yield raw, cells
    except csv.Error as error:
        raise UsageError(f"the table cannot be taken apart line by line ({error})") from None


def _line(cells: list[str], delimiter: str, end: str) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=delimiter, lineterminator=end).writerow(cells)
    return stream.getvalue()


# ------------------------------------------------------------------------------------------ arrays


def write_npy(
    path: Path, labels: object, samples: Samples, decisions: Decisions, target: Path, beside: Path
) -> None:
    """The features and, ``beside`` them, the labels; a memory map is never in memory as a whole."""
    values = load_npy(path, mapped=True)
    y = load_npy(labels) if isinstance(labels, str | Path) else np.asarray(labels)
    rows = np.flatnonzero(decisions.keep)
    shape = (len(rows), *values.shape[1:])
    copy = new_map(target, values.dtype, shape)
    step = max(1, _AT_ONCE // max(1, values[:1].nbytes))
    for first in range(0, len(rows), step):
        copy[first : first + step] = values[rows[first : first + step]]
    copy.flush()
    np.save(beside, y[decisions.sources(samples.classes)], allow_pickle=False)


def write_npz(
    path: Path, split: str | None, samples: Samples, decisions: Decisions, target: Path
) -> list[str]:
    """All arrays of the file; gives the names of those that were cut besides the features and the
    labels: the ones of the same part that have one entry per sample."""
    with open_npz(path) as held:
        features, label = npz_keys(set(held.files), path, split)
        part = _part(features)
        rows, cut = np.flatnonzero(decisions.keep), []
        with zipfile.ZipFile(path) as archive:
            packed = max(one.compress_type for one in archive.infolist())
        with zipfile.ZipFile(target, "w", packed) as archive:
            for key in held.files:
                values = held[key]
                per_sample = values.ndim and len(values) == len(samples) and _part(key) == part
                if key == label:
                    values = values[decisions.sources(samples.classes)]
                elif key == features or per_sample:
                    values = values[rows]
                    cut += [key] if key != features else []
                with archive.open(f"{key}.npy", "w", force_zip64=True) as stream:
                    np.lib.format.write_array(stream, values, allow_pickle=False)
    return cut


def _part(key: str) -> str:
    ending = key.rpartition("_")[2]
    return ending if ending in PARTS else ""


def write_arrays(samples: Samples, decisions: Decisions, target: Path) -> None:
    """What came from memory or from elsewhere, as ``features`` and ``labels`` of an .npz file."""
    rows = np.flatnonzero(decisions.keep)
    features: NDArray[Any] = np.asarray(samples.features[rows])
    if samples.image is not None:
        channels, *sides = samples.image
        shape = (*sides, channels) if samples.channels_last else samples.image
        features = features.reshape(len(rows), *shape)
    labels = np.array(samples.classes)[decisions.after[rows]]
    if all(NUMBER.fullmatch(name) for name in samples.classes):
        labels = labels.astype(np.int64)
    arrays = {"features": features, "labels": labels}
    if samples.files is not None:
        arrays["names"] = np.array(samples.files)[rows]
    with target.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
