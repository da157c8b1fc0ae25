"""Labels as people have them (names, numbers, tensors) to whole numbers and class names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import counted, listed
from rarefy.tools.samples.messages import rows_text

NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def encode_labels(
    labels: object, count: int, classes: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """int64 (n,) from 0 on, and what they count.

    Without ``classes`` these are the labels that occur, in order (numbers as numbers, else as
    text). With ``classes`` labels are positions in it, or names out of it; a class may stay empty.
    """
    values = flat_labels(labels)
    if len(values) != count:
        raise bad_value("labels", counted(len(values), "label"), f"must be {count}, one per sample")
    if not count:
        raise UsageError("there are no samples")
    names = None if classes is None else tuple(str(name) for name in classes)
    if names is not None and len(set(names)) != len(names):
        raise bad_value("classes", names, "must be different names")
    if values.dtype.kind in "iu" and names is not None:
        codes = values.astype(np.int64)
        outside = np.flatnonzero((codes < 0) | (codes >= len(names)))
        if outside.size:
            found = f"{codes[outside[0]]} in {rows_text(outside)}"
            raise bad_value("labels", found, f"must be from 0 to {len(names) - 1}")
    elif names is not None:
        codes = _places(_texts(values), names)
    elif values.dtype.kind in "iu":
        present, codes = np.unique(values, return_inverse=True)
        names = tuple(str(value) for value in present)
    else:
        texts = _texts(values)
        names = in_order(set(texts))
        codes = _places(texts, names)
    seen = np.unique(codes)
    if len(seen) == 1:
        raise UsageError(
            f"all {count} samples have the label {names[int(seen[0])]!r}: at least 2 classes are "
            "needed, to tell a rare sample of a class from one of another class"
        )
    return codes.astype(np.int64, copy=False), names


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names that are all whole numbers are ordered as numbers (2 before 10), others as text."""
    names = list(names)
    if all(NUMBER.fullmatch(name) for name in names):
        return tuple(sorted(names, key=int))
    return tuple(sorted(names))


def flat_labels(labels: object) -> NDArray[Any]:
    """(n,): whole numbers, text, or objects whose text is the class."""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
        labels = (labels.float() if labels.dtype == torch.bfloat16 else labels).numpy()
    try:
        # numpy would turn a NaN among names into the name "nan"
        values = np.asarray(labels, dtype=object if isinstance(labels, list | tuple) else None)
    except ValueError:
        raise bad_value(
            "labels", "rows of different lengths", "must be one label per sample"
        ) from None
    if values.ndim != 1:
        hint = "; of one-hot rows give the argmax" if values.ndim == 2 else ""
        raise bad_value(
            "labels", f"shape {values.shape}", f"must be (n,), one label per sample{hint}"
        )
    if values.dtype.kind == "b":
        return values.astype(str)
    if values.dtype.kind == "f":
        return _whole(values)
    if values.dtype.kind in "OT":
        return _objects(values)
    if values.dtype.kind == "S":
        return np.array(_decoded(values.tolist()))
    if values.dtype.kind not in "iuU":
        raise bad_value("labels", f"type {values.dtype}", "must be names or whole numbers")
    return values


def _objects(values: NDArray[Any]) -> NDArray[Any]:
    """Columns of tables are objects: text, or numbers among which some may be missing."""
    from pandas import isna  # knows every way in which a table says that nothing is there

    containers = list | tuple | dict | np.ndarray | Tensor
    nested = np.flatnonzero([isinstance(value, containers) for value in values])
    if nested.size:
        kind = type(values[nested[0]]).__name__
        raise bad_value(
            "labels", f"a {kind} in {rows_text(nested)}", "must be one label per sample"
        )
    missing = np.flatnonzero(isna(values))
    if missing.size:
        raise UsageError(f"no label in {rows_text(missing)}")
    if all(isinstance(value, int | float | np.number) for value in values.tolist()):
        numbers = np.array(values.tolist())
        if numbers.dtype != object:  # (whole numbers beyond 64 bits are)
            return flat_labels(numbers)
    if any(isinstance(value, bytes) for value in values.tolist()):
        return np.array([*_decoded(values.tolist()), None], dtype=object)[:-1]
    return values


def _decoded(values: list[Any]) -> list[Any]:
    """Bytes as the text they are."""
    found = []
    for row, value in enumerate(values):
        try:
            found.append(value.decode("utf-8") if isinstance(value, bytes) else value)
        except UnicodeDecodeError:
            where = f"bytes in {rows_text([row])}"
            raise bad_value("labels", where, "must be text in UTF-8") from None
    return found


def _whole(values: NDArray[Any]) -> NDArray[np.int64]:
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise UsageError(f"no label (NaN) in {rows_text(missing)}")
    broken = np.flatnonzero(~np.isfinite(values) | (values != np.round(values)))
    if broken.size:
        found = f"{values[broken[0]]:g} in {rows_text(broken)}"
        raise bad_value("labels", found, "must be classes: names or whole numbers")
    limit = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    large = np.flatnonzero(np.abs(values) >= limit)
    if large.size:
        found = f"{values[large[0]]:g} in {rows_text(large)}"
        what = f"{values.dtype} does not tell whole numbers from {limit:g} on apart"
        raise bad_value("labels", found, f"{what}; give integers or names")
    return values.astype(np.int64)


def _texts(values: NDArray[Any]) -> list[str]:
    texts = [str(value) for value in values.tolist()]
    empty = np.flatnonzero([not text.strip() for text in texts])
    if empty.size:
        raise UsageError(f"no label (empty text) in {rows_text(empty)}")
    return texts


def _places(texts: list[str], names: tuple[str, ...]) -> NDArray[np.int64]:
    places = {name: place for place, name in enumerate(names)}
    strange = sorted({text for text in texts if text not in places})
    if strange:
        raise bad_value("labels", strange[0], f"is no class (known: {listed(names)})")
    return np.array([places[text] for text in texts], dtype=np.int64)
