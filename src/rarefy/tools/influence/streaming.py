"""The score of data that do not fit into memory: read in pieces, written as a Parquet file.

What compares a sample with all others stays out: ids and copies, neighbours, the label check,
triage and the page (``LEFT_OUT``).
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.provenance import provenance
from rarefy.core.settings import resolve_device
from rarefy.core.text import printable
from rarefy.core.writing import OutputFolder, check_place, naming, refuse_input, reserve
from rarefy.measure.influence.mahalanobis import FULL_WIDTH
from rarefy.measure.influence.passes import SCORES
from rarefy.measure.influence.state import Arrays, State
from rarefy.measure.influence.streaming import CHANGED, Source, groups_of, stream_scores
from rarefy.tools.influence.percentiles import BYTES, percentiles
from rarefy.tools.influence.scoring import LEFT_OUT, MEMORY, ScoreSettings
from rarefy.tools.influence.writing import write_parts
from rarefy.tools.samples.chunks import Chunks, Look, ReadCoded, look, open_chunks

VERSION = 2
ROW = np.dtype([("label", "<i4"), *((name, "<f8") for name in SCORES)])
WRITTEN = 1 << 17
"""Rows of a row group of the table."""


@dataclass(frozen=True, eq=False)
class StreamedScores:
    """Where the table is, and what it is about. ``table`` has it where nothing was written.

    Attributes:
        path, table: the file, or the DataFrame where none was asked for.
        classes, counts, highest: names of the classes, their samples, and of each the row with the
            highest score (-1 where none has one).
        notes, seconds: what should be known, and how long it took.

    Example:
        >>> found = rarefy.stream_influence(*load_wine(return_X_y=True))
        >>> len(found), found.counts.tolist()
        (178, [59, 71, 48])
    """

    path: Path | None
    table: pd.DataFrame | None
    classes: tuple[str, ...]
    counts: NDArray[np.int64]
    highest: NDArray[np.int64]
    """Of each class the row with the highest score; -1 where none has one."""
    notes: tuple[str, ...]
    seconds: float

    def __len__(self) -> int:
        return int(self.counts.sum())


def stream_influence(
    data: object,
    labels: object = None,
    *,
    out: str | Path | None = None,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    standardize: bool = True,
    ddof: int = 1,
    memory: int = MEMORY,
    device: str = "auto",
    overwrite: bool = False,
    progress: Callable[[float], None] | None = None,
    deadline: float | None = None,
) -> StreamedScores:
    """``rarefy.influence`` for data of any size, in bounded memory: the same ``influence`` with its
    terms, ``percentile``, ``distance``, ``mahalanobis`` and ``norm``.

    Arguments:
        data: a .npy file, array, memory map or tensor (n, d); a Parquet file or a folder of them,
            read by row groups; a Dask array; or pairs of features and labels, as a list or as a
            function that returns them anew. All are read several times.
        labels: one per row; of a .npy file also another, by default ``labels.npy`` beside it.
        out: a ``.parquet`` file to write, row group by row group. An interrupted call goes on from
            a folder beside it. None: the table is in memory.
        label, columns: of Parquet, the column with the classes and those that are scored.
        standardize: bring features to mean 0 and std 1 over the whole set, one more reading.
        ddof: covariances are divided by n - ddof, 0 or 1.
        memory: bytes for the statistics of classes; where they need more, the data are read more
            often. A chunk of features (64 MB, or as given) and the libraries come on top.
        device: auto, cpu or cuda.
        overwrite: replace a file that is there.
        progress: is told shares of the work as they are done.
        deadline: a time of ``time.monotonic``, after which ``OutOfTime`` is raised.

    Returns:
        Where the table is, the classes with their counts and highest rows, and notes.

    Example:
        >>> X, y = load_wine(return_X_y=True)
        >>> pieces = lambda: ((X[i::4], y[i::4]) for i in range(4))  # e.g. read from 4 files
        >>> found = rarefy.stream_influence(pieces, out="scores.parquet")
        >>> found.path.name, len(found)
        ('scores.parquet', 178)
    """
    began = time.monotonic()
    settings = ScoreSettings(ddof, 0, False, memory, device)
    place = resolve_device(device)
    chunks = open_chunks(data, labels, label=label, columns=columns)
    path = None if out is None else Path(out)
    if path is not None:
        if path.suffix.lower() != ".parquet":
            raise bad_value("out", str(path), "must end in .parquet")
        check_place(path)
        inputs = [Path(each) for each in (data, labels) if isinstance(each, str | Path)]
        refuse_input(path, [*inputs, *(file for each in inputs for file in each.glob("*"))])
    seen = _looked(chunks, standardize)
    mean = np.asarray(seen.moments.mean) if standardize else None
    if mean is not None and not np.isfinite(mean).all():
        raise _endless(chunks, int((~np.isfinite(mean)).argmax()))
    read = ReadCoded(
        chunks.read, seen.classes, mean, seen.moments.divisor() if standardize else None
    )
    about = {
        "version": VERSION,
        "data": seen.fingerprint,
        "samples": sum(seen.sizes),
        "standardize": standardize,
        "ddof": ddof,
        "memory": memory,
    }
    target = None
    if path is not None:
        of = f"stream {seen.fingerprint} {standardize} {ddof}"
        target = OutputFolder(path.parent, of, overwrite)
        target.check([path.name])
    state = None if path is None else path.with_name(f".{path.name}.unfinished")
    if overwrite and state is not None:
        shutil.rmtree(state, ignore_errors=True)
    rows = ScoreRows(sum(seen.sizes), state)
    groups = len(groups_of(len(seen.classes), seen.width, memory))
    source = Source(chunks.pieces, read, seen.sizes, seen.width, len(seen.classes))
    late = None if deadline is None else lambda: time.monotonic() > deadline
    try:
        counts, traces = stream_scores(
            source,
            rows,
            ddof=settings.ddof,
            memory=memory,
            device=place,
            state=State(state, about, late),
            progress=progress,
        )
    except UsageError as error:
        anew = "; overwrite begins anew" if str(error).startswith("state=") else ""
        raise UsageError(f"{chunks.name}: {error}{anew}") from None
    notes = [*chunks.notes, *_notes(len(rows), seen, groups, memory)]
    ranks, highest, squares = _ranked(rows, len(seen.classes), memory)
    if counts.sum() != len(rows) or not np.allclose(squares, traces, rtol=1e-6, atol=0):
        raise UsageError(f"{chunks.name}: {CHANGED}")
    seconds = time.monotonic() - began
    made = provenance(place, "float64", seconds)
    facts = {
        "data": chunks.name,
        "samples": len(rows),
        "features": seen.width,
        "classes": [printable(name) for name in seen.classes],
        "counts": counts.tolist(),
        "ddof": ddof,
        "standardized": standardize,
        "seconds": round(seconds, 2),
        "notes": notes,
        **{name: made[name] for name in ("torch", "numpy", "machine", "date")},
    }
    parts = _tables(rows, ranks, np.array([printable(name) for name in seen.classes]))
    table = None
    if target is None or path is None:
        table = pd.concat(parts, ignore_index=True)
        table.attrs = facts
    else:
        write_parts(parts, path, facts, len(rows), target.write)
        shutil.rmtree(state or path, ignore_errors=True)
    return StreamedScores(path, table, seen.classes, counts, highest, tuple(notes), seconds)


class ScoreRows:
    """A record per row, in memory or in a file of a folder that an interrupted call finds again.
    The file is not mapped: its pages would count as memory of this process."""

    def __init__(self, count: int, folder: Path | None) -> None:
        self._count = count
        self._held = np.zeros(count, ROW) if folder is None else None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = folder / "rows.bin"
            reserve(self._path, count * ROW.itemsize)

    def __len__(self) -> int:
        return self._count

    def put(
        self, first: int, labels: NDArray[np.int64], where: NDArray[np.int64], scores: Arrays
    ) -> None:
        if len(where) == 0:
            return
        last = first + int(where[-1]) + 1
        part = self.part(first, last)  # rows of other classes are there already, or not yet
        part["label"][where] = labels
        for name, values in scores.items():
            part[name][where] = values
        if self._held is None:
            with naming(self._path), self._path.open("r+b") as file:
                file.seek(first * ROW.itemsize)
                file.write(part.tobytes())

    def part(self, first: int, last: int) -> NDArray[Any]:
        if self._held is not None:
            return self._held[first:last]
        last = min(last, self._count)
        return np.fromfile(self._path, ROW, last - first, offset=first * ROW.itemsize)

    def flush(self) -> None:
        if self._held is None:
            with self._path.open("rb") as file:
                os.fsync(file.fileno())


def _looked(chunks: Chunks, moments: bool) -> Look:
    seen = Look()
    try:
        for piece in chunks.pieces:
            seen.add(look(chunks.read, moments, piece))
    except UsageError as error:
        raise UsageError(f"{chunks.name}: after row {sum(seen.sizes)}: {error}") from None
    if not seen.sizes:
        raise UsageError(f"{chunks.name}: there are no samples")
    if len(seen.names) == 1:
        raise UsageError(f"{chunks.name}: all samples have the label {min(seen.names)!r}: at least "
                         "2 classes are needed")  # fmt: skip
    return seen


def _endless(chunks: Chunks, column: int) -> UsageError:
    return UsageError(f"{chunks.name}: column {column} holds NaN or infinite values")


def _notes(count: int, seen: Look, groups: int, memory: int) -> Iterator[str]:
    yield f"in pieces, so without {LEFT_OUT}"
    if seen.width > FULL_WIDTH:
        yield f"mahalanobis is not measured in pieces above {FULL_WIDTH:,} features"
    if groups > 1:
        yield f"classes went in {groups} groups of two readings; more memory needs fewer"
    if count * (BYTES + 12) > memory:
        yield f"percentile needs {count * (BYTES + 12):,} bytes of memory, {memory:,} are allowed"


def _ranked(
    rows: ScoreRows, classes: int, memory: int
) -> tuple[NDArray[np.float64] | None, NDArray[np.int64], NDArray[np.float64]]:
    """Percentiles where there is room for them; of each class the row with the highest score, and
    the sum of squared distances to its mean."""
    highest, squares = np.full(classes, -1), np.zeros(classes)
    room = len(rows) * (BYTES + 12) <= memory
    every = len(rows) if room else 0
    scores, labels = np.empty(every), np.empty(every, np.int32)
    best = np.full(classes, -np.inf)
    for first in range(0, len(rows), WRITTEN):
        part = rows.part(first, first + WRITTEN)
        if room:
            here = slice(first, first + len(part))
            scores[here], labels[here] = part["influence"], part["label"]
        squares += np.bincount(part["label"], np.nan_to_num(part["distance"]) ** 2, classes)
        known = np.flatnonzero(~np.isnan(part["influence"]))
        order = known[np.argsort(part["influence"][known], kind="stable")]
        last = np.full(classes, -1)
        last[part["label"][order]] = order  # the last one stays: the highest
        better = np.flatnonzero(last >= 0)
        better = better[part["influence"][last[better]] > best[better]]
        best[better], highest[better] = part["influence"][last[better]], first + last[better]
    return percentiles(scores, labels) if room else None, highest, squares


def _tables(
    rows: ScoreRows, ranks: NDArray[np.float64] | None, names: NDArray[Any]
) -> Iterator[pd.DataFrame]:
    for first in range(0, len(rows), WRITTEN):
        part = rows.part(first, first + WRITTEN)
        last = first + len(part)
        yield pd.DataFrame(
            {
                "index": np.arange(first, last),
                "label": pd.Series(names[part["label"]], dtype=object),
                "influence": part["influence"],
                "percentile": np.nan if ranks is None else ranks[first:last],
                **{name: part[name] for name in SCORES[1:]},
            }
        )
