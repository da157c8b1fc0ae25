"""Samples from Hugging Face data sets, or anything that is read like one, batch by batch.

``datasets`` is imported only to load one by its name (``pip install 'rarefy[hugging-face-data]'``).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import counted, listed
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.messages import in_a_line, no_column, rows_text
from rarefy.tools.samples.pixels import is_picture, pixels_of, side_of
from rarefy.tools.samples.row_store import RowStore
from rarefy.tools.samples.samples import Samples

BATCH = 256
PREFIX = "hf:"
SOURCE = "a Hugging Face data set"


def from_hugging_face(
    dataset: Any,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    image: str | None = None,
    size: int | None = None,
    folder: str | Path | None = None,
    skip_bad: bool = False,
    name: str = "",
) -> Samples:
    """One split of a data set. What is scored are the ``columns`` (numbers, or lists of numbers of
    one length), or the pixels of an ``image`` column; by default the only column of images, or
    else all columns of numbers. label: by default the only column with class names.

    size: side to which images are brought; by default that of the first, if it is a square up to
    64, else 32. folder: where pixels go that are too large for memory. skip_bad: leave out rows
    whose image cannot be read.
    """
    held = _columns_of(dataset)
    if size is not None and (type(size) is not int or size < 1):
        raise bad_value("size", size, "must be a whole number, at least 1")
    if columns is not None and image is not None:
        raise bad_value("image", image, "give either columns or image")
    label = _label_of(dataset, held) if label is None else _known("label", label, held)
    for column in columns or ():
        _known("columns", column, held)
    if image is not None:
        _known("image", image, held)
    if not len(dataset):
        raise UsageError("there are no samples")
    if columns is None and image is None:
        image, columns = _guessed(dataset, [column for column in held if column != label])
    title = name or str(getattr(getattr(dataset, "info", None), "dataset_name", None) or "dataset")
    classes = getattr(_kinds(dataset).get(label), "names", None)
    needed = [label, *(columns or ()), *([] if image is None else [image])]
    # a batch of all columns would decode every image for the sake of a number beside it
    if hasattr(dataset, "select_columns"):
        dataset = dataset.select_columns(needed)
    if image is not None:
        return _pictured(dataset, label, image, size, folder, skip_bad, title, classes)
    parts: dict[str, list[Any]] = {column: [] for column in needed}
    for _, batch in _batches(dataset):
        for column in needed:
            parts[column] += list(batch[column])
    rows = [_numbers(column, parts[column]) for column in columns or ()]
    features = np.concatenate(rows, axis=1) if len(rows) > 1 else rows[0]
    labels = _labels(parts[label], classes is not None)
    return from_arrays(features, labels, None, classes, title, SOURCE)


def load_hugging_face(text: str, split: str | None = None) -> Any:
    """What ``hf:NAME`` names, or ``hf:NAME@CONFIGURATION``; the split is ``train`` by default."""
    name, _, configuration = text.removeprefix(PREFIX).partition("@")
    if not name:
        raise bad_value("data", text, "must be hf:NAME or hf:NAME@CONFIGURATION")
    try:
        datasets = importlib.import_module("datasets")
    except ModuleNotFoundError:
        needs = "needs Hugging Face's datasets: pip install 'rarefy[hugging-face-data]'"
        raise UsageError(f"{text}: {needs}") from None
    try:
        return datasets.load_dataset(name, configuration or None, split=split or "train")
    except Exception as error:  # of many kinds: no network, no such name, no such split
        raise UsageError(f"{text}: cannot be loaded ({in_a_line(error)})") from error


# ------------------------------------------------------------------------------------------ looking


def _columns_of(dataset: Any) -> list[str]:
    held = getattr(dataset, "column_names", None)
    if isinstance(held, dict):
        raise bad_value("dataset", f"splits {listed(sorted(held))}", "give one of them")
    if held is None or not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        kind = type(dataset).__name__
        raise bad_value("dataset", kind, "must have rows by number, and no stream")
    return list(held)


def _kinds(dataset: Any) -> dict[str, Any]:
    return dict(getattr(dataset, "features", None) or {})


def _label_of(dataset: Any, held: list[str]) -> str:
    named = [column for column, kind in _kinds(dataset).items() if hasattr(kind, "names")]
    if len(named) == 1:
        return named[0]
    if "label" in held:
        return "label"
    found = f"{len(named)} columns with class names" if named else "no column with class names"
    raise UsageError(f"label: name its column, there is {found} (columns: {listed(held)})")


def _known(what: str, column: str, held: list[str]) -> str:
    if column in held:
        return column
    raise no_column(what, column, held, "the data set")


def _guessed(dataset: Any, free: list[str]) -> tuple[str | None, list[str] | None]:
    """The column of images, or the columns of numbers, by what the first row holds."""
    first = {column: values[0] for column, values in dataset[0:1].items()}
    images = [column for column in free if is_picture(first[column])]
    if len(images) == 1:
        return images[0], None
    if images:
        raise UsageError(f"several columns hold images ({listed(images)}): name one as image")
    numbers = [column for column in free if _is_numbers(first[column])]
    if not numbers:
        raise UsageError(f"no column holds images or numbers (besides the label: {listed(free)})")
    return None, numbers


def _is_numbers(value: Any) -> bool:
    if isinstance(value, str | bytes) or value is None:
        return False
    try:
        return np.asarray(value).dtype.kind in "iufb"
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------ reading


def _batches(dataset: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    for first in range(0, len(dataset), BATCH):
        yield first, dataset[first : min(first + BATCH, len(dataset))]


def _numbers(column: str, values: list[Any]) -> NDArray[Any]:
    """(n, k) of one column."""
    missing = [row for row, value in enumerate(values) if value is None]
    if missing:
        raise UsageError(f"column {column!r} has no value in {rows_text(missing)}")
    try:
        rows = np.stack([np.asarray(value).reshape(-1) for value in values])
    except ValueError:
        raise bad_value("columns", column, "its lists must all have one length") from None
    if rows.dtype.kind not in "iufb":
        raise bad_value("columns", column, f"must hold numbers, not {rows.dtype}")
    # lists of Python numbers say nothing of their precision: embeddings are float32
    return rows.astype(np.float32) if rows.dtype == np.float64 and rows.shape[1] > 1 else rows


def _labels(values: list[Any], named: bool) -> NDArray[Any]:
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    unlabelled = [row for row, value in enumerate(plain) if value == -1]
    if unlabelled and named:  # where classes have names, this means that nobody said which
        raise UsageError(f"no label (-1) in {rows_text(unlabelled)}: is this a test split?")
    return np.array([*plain, None], dtype=object)[:-1]


def _pictured(
    dataset: Any,
    label: str,
    image: str,
    size: int | None,
    folder: str | Path | None,
    skip_bad: bool,
    name: str,
    classes: Sequence[str] | None,
    channels: int = 1,
) -> Samples:
    """Images as uint8 rows. Grey until a coloured one is met, then from the start in colour."""
    store: RowStore | None = None
    labels: list[Any] = []
    bad: list[str] = []
    for first, batch in _readable(dataset, bad):
        for place, picture in enumerate(batch[image]):
            if picture is None:
                bad.append(f"row {first + place} (no image)")
                continue
            side = side_of(picture, size) if store is None else store.rows.shape[2]
            pixels = pixels_of(picture, side, channels)
            if pixels is None and store is not None:
                store.discard()
                again = (dataset, label, image, size, folder, skip_bad, name, classes, 3)
                return _pictured(*again)
            if pixels is None:
                channels = 3
                pixels = pixels_of(picture, side, channels)
            if store is None:
                spec = {"source": name, "image": image}
                shape = (len(dataset), channels, side, side)
                store = RowStore(shape, np.uint8, folder, spec, f"pixels-{channels}")
            store.rows[len(labels)] = pixels
            labels.append(batch[label][place])
    if bad and not (skip_bad and labels):
        raise UsageError(
            f"{len(bad)} of {len(dataset)} images cannot be read (counting from 0): "
            f"{listed(bad)}; leave them out with skip_bad"
        )
    assert store is not None
    store.advance(len(store.rows))
    pixels = store.finished()[: len(labels)]
    known = _labels(labels, classes is not None)
    found = from_arrays(pixels, known, None, classes, name, SOURCE)
    if not bad:
        return found
    were = "was" if len(bad) == 1 else "were"
    note = f"{counted(len(bad), 'image')} that cannot be read {were} left out"
    return replace(found, notes=(*found.notes, note), left_out=tuple(bad))


def _readable(dataset: Any, bad: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Batches; of one that cannot be decoded, row by row what can."""
    for first in range(0, len(dataset), BATCH):
        last = min(first + BATCH, len(dataset))
        try:
            batch = dataset[first:last]
        except Exception:
            for row in range(first, last):
                try:
                    batch = dataset[row : row + 1]
                except Exception as error:
                    bad.append(f"row {row} ({in_a_line(error)})")
                else:
                    yield row, batch
        else:
            yield first, batch
