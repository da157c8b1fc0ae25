"""Samples from a PyTorch data set of (x, y) pairs, read once from front to back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.tools.samples.arrays import from_arrays
from rarefy.tools.samples.row_store import RowStore
from rarefy.tools.samples.samples import Samples


def from_pairs(
    dataset: Any,
    classes: Sequence[str] | None = None,
    folder: str | Path | None = None,
    name: str = "",
) -> Samples:
    """A map-style data set whose items start with x and y; x is flattened, so that all must have
    one shape. classes: by default the data set's own ``classes``, as torchvision's have.
    folder: where features go that are too large for memory."""
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        kind = type(dataset).__name__
        raise bad_value("dataset", kind, "must have a length and items by number, no stream")
    count = len(dataset)
    if not count:
        raise UsageError("there are no samples")
    title = name or type(dataset).__name__
    store: RowStore | None = None
    labels: list[Any] = []
    for row in range(count):
        x, y = _pair(dataset[row], row)
        if store is None:
            spec = {"source": title, "of": "pairs"}
            store = RowStore((count, *x.shape), x.dtype, folder, spec, "pairs")
        if x.shape != store.rows.shape[1:]:
            shape = store.rows.shape[1:]
            raise UsageError(f"sample {row} has the shape {x.shape}, the first one has {shape}")
        store.rows[row] = x
        labels.append(y)
    assert store is not None
    store.advance(count)
    known = classes if classes is not None else _own_classes(dataset, labels)
    rows = store.finished()
    if rows.ndim == 1:
        rows = rows[:, None]
    return from_arrays(rows, labels, None, known, title, "a PyTorch data set")


def _pair(item: Any, row: int) -> tuple[NDArray[Any], Any]:
    if not isinstance(item, tuple | list) or len(item) < 2:
        kind = type(item).__name__
        raise bad_value("dataset", f"item {row} is of type {kind}", "items must be pairs (x, y)")
    x, y = item[0], item[1]
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        x = (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    elif isinstance(x, Image.Image):
        x = np.asarray(x if x.mode in ("L", "RGB") else x.convert("RGB"))
    values = np.asarray(x)
    if values.dtype.kind not in "iufb":
        raise bad_value("dataset", f"x of item {row}: {values.dtype}", "x must be numbers")
    if isinstance(y, Tensor | np.ndarray | np.generic):
        if getattr(y, "ndim", 0):
            found = f"y of item {row}: shape {tuple(y.shape)}"
            raise bad_value("dataset", found, "y must be one label")
        y = y.item()
    return values, y


def _own_classes(dataset: Any, labels: list[Any]) -> Sequence[str] | None:
    """Torchvision's class names, where whole numbers count them."""
    own = getattr(dataset, "classes", None)
    if not isinstance(own, list | tuple) or not all(type(label) is int for label in labels):
        return None
    return [str(name) for name in own] if max(labels) < len(own) else None
