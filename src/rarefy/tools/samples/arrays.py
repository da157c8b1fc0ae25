"""Samples from arrays, tensors, lists and .npy files; memory maps stay memory maps."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.reading import quietly
from rarefy.data.images.listing import listed
from rarefy.data.images.unpack_limit import check_zip
from rarefy.tools.samples.labels import encode_labels
from rarefy.tools.samples.messages import in_a_line
from rarefy.tools.samples.samples import Picture, Samples, Shape

CHANNELS = (1, 3, 4)
"""How many an image can have: grey, RGB, RGB with transparency."""
FEATURE_KEYS = ("features", "embeddings", "X", "x", "images", "data")
LABEL_KEYS = ("labels", "label", "y", "targets", "target")
"""Under these an .npz file may have its arrays, alone or with ``_train`` or ``_test`` behind."""


def from_arrays(
    X: object,
    y: object,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
    name: str = "arrays",
    source: str = "",
) -> Samples:
    """Features ``X`` of any rank (n, ...), flattened to (n, d), and labels ``y``.

    uint8 of three axes, or of four with 1, 3 or 4 channels first or last, are images, used as
    pixels in [0, 1]; so are floating numbers of such four axes, used as they are. names: file
    names, one per sample. classes: what whole numbers in ``y`` count, or names that ``y`` may have.
    """
    columns = getattr(X, "columns", None)
    values = numbers_of(X)
    labels, known = encode_labels(y, len(values), classes)
    shape, last, notes = _image_shape(values)
    flat = _flat(values)
    return Samples(
        name=name,
        features=flat,
        labels=labels,
        classes=known,
        scale=1 / 255 if shape is not None and flat.dtype == np.uint8 else 1.0,
        files=None if names is None else tuple(map(str, names)),
        images=None if shape is None else pictures(flat, shape, last),
        image=shape,
        channels_last=last,
        feature_names=None if columns is None else tuple(map(str, columns)),
        source=source,
        notes=notes,
    )


def from_npy(
    features: str | Path,
    labels: object,
    names: Sequence[str] | None = None,
    classes: Sequence[str] | None = None,
) -> Samples:
    """A .npy file, never read into memory as a whole, and another with the labels, or these."""
    X = load_npy(features, mapped=True)
    y = load_npy(labels) if isinstance(labels, str | Path) else labels
    path = Path(features)
    with naming(path):
        return from_arrays(X, y, names, classes, path.stem, str(features))


def from_npz(path: str | Path, split: str | None = None) -> Samples:
    """One .npz file with features and labels, under the usual names; see ``FEATURE_KEYS``. A split
    that is asked for must be there; by default ``_train`` is looked for, then names alone."""
    with open_npz(path) as held:
        found = npz_keys(set(held.files), path, split)
        X, y = held[found[0]], held[found[1]]
    with naming(path):
        return from_arrays(X, y, name=Path(path).stem, source=str(path))


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """What is wrong with arrays is told with the file that they came from."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


@contextmanager
def open_npz(path: str | Path) -> Iterator[Any]:
    """Named arrays, each read when it is asked for; whatever is wrong with the file is told in one
    line, and Python objects in it are refused."""
    try:
        # opened here: of a damaged file numpy would forget to close it
        with open(path, "rb") as stream, quietly():
            held = np.load(stream, allow_pickle=False)
            if isinstance(held, np.ndarray):
                raise UsageError(f"{path}: is a single array, an .npz file with names is needed")
            with held:
                check_zip(Path(path))
                yield held
    except UsageError:
        raise
    except Exception as error:
        raise unreadable(path, error) from None


def load_npy(path: str | Path, mapped: bool = False) -> NDArray[Any]:
    """One array; files that hold Python objects are refused."""
    try:
        with quietly():
            held = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except Exception as error:
        raise unreadable(path, error) from None
    if not isinstance(held, np.ndarray):
        held.close()
        raise UsageError(f"{path}: holds several arrays, a .npy file with one is needed")
    return held


def unreadable(path: str | Path, error: Exception) -> UsageError:
    """The one line about a file that numpy cannot load."""
    if isinstance(error, FileNotFoundError):
        return UsageError(f"there is no file {path}")
    if isinstance(error, IsADirectoryError):
        return UsageError(f"{path} is a folder, a file is needed")
    text = in_a_line(error)
    if "pickled (object) data" in text:  # numpy's guess of whatever does not begin as its files do
        return UsageError(f"{path}: no array of numpy, or a pickle, which is not loaded")
    if "allow_pickle" in text or "Python objects" in text:
        return UsageError(f"{path}: holds Python objects, which are not loaded")
    if isinstance(error, zipfile.BadZipFile | EOFError | ValueError):
        return UsageError(f"{path}: damaged, or no file of numpy ({text})")
    return UsageError(f"{path}: cannot be read ({text})")


def pictures(features: NDArray[Any], shape: Shape, channels_last: bool) -> Picture:
    """How to see a row: uint8 as it is; floats in [0, 1] times 255, others stretched to that."""
    channels, height, width = shape

    def picture(index: int) -> NDArray[np.uint8]:
        row = np.asarray(features[index])
        if channels_last:
            pixels = row.reshape(height, width, channels)
        else:
            pixels = row.reshape(channels, height, width).transpose(1, 2, 0)
        if pixels.dtype != np.uint8:
            low, high = float(pixels.min()), float(pixels.max())
            if low >= 0 and high <= 1:
                low, high = 0.0, 1.0
            span = high - low if high > low else 1.0
            with np.errstate(invalid="ignore"):  # a picture with NaN is shown all the same
                grey = np.nan_to_num((pixels.astype(np.float64) - low) / span)
            pixels = np.rint(255 * np.clip(grey, 0, 1)).astype(np.uint8)
        return np.ascontiguousarray(pixels[:, :, 0] if channels == 1 else pixels[:, :, :3])

    return picture


# ------------------------------------------------------------------------------------------ looking


def numbers_of(X: object) -> NDArray[Any]:
    """(n, ...) real numbers, the same memory where that is possible."""
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    if hasattr(X, "toarray"):
        raise bad_value("X", type(X).__name__, "is sparse; give X.toarray(), or an embedding of it")
    try:
        values = X if isinstance(X, np.ndarray) else np.asarray(X)
    except ValueError:
        raise bad_value("X", "rows of different lengths", "must all have the same length") from None
    if values.dtype.kind == "b":
        values = values.view(np.int8)  # yes and no are numbers, but no pixels
    if values.dtype.kind not in "iuf":
        kind = {"O": "Python objects", "c": "complex numbers"}.get(values.dtype.kind, "text")
        raise bad_value("X", f"{kind} ({values.dtype})", "features must be real numbers")
    if values.ndim < 2:
        raise bad_value("X", f"shape {values.shape}", "must be (n, d), one row per sample")
    if not len(values):
        raise UsageError("there are no samples")
    if not values.size:
        raise bad_value("X", f"shape {values.shape}", "has no features")
    return values


def _flat(values: NDArray[Any]) -> NDArray[Any]:
    if values.ndim == 2:
        return values
    if isinstance(values, np.memmap) and not values.flags.c_contiguous:
        raise bad_value("X", f"a memory map of shape {values.shape}", "must be stored in C order")
    return values.reshape(len(values), -1)


def _image_shape(values: NDArray[Any]) -> tuple[Shape | None, bool, tuple[str, ...]]:
    """(channels, height, width), whether channels come last, and what had to be guessed."""
    pixels = values.dtype == np.uint8
    if values.ndim == 3 and pixels:
        return (1, values.shape[1], values.shape[2]), False, ()
    if values.ndim != 4 or not (pixels or values.dtype.kind == "f"):
        return None, False, ()
    _, first, middle, last = values.shape
    if first in CHANNELS[:2] and last in CHANNELS[:2]:
        guessed = f"images of {first} x {middle} x {last}: the first of these is taken for channels"
        return (first, middle, last), False, (guessed,)
    for known in (CHANNELS[:2], CHANNELS):  # four is more often a height than a number of channels
        if first in known:
            return (first, middle, last), False, ()
        if last in known:
            return (last, first, middle), True, ()
    return None, False, ()


def npz_keys(keys: set[str], path: str | Path, split: str | None) -> tuple[str, str]:
    found = []
    for what, usual in (("features", FEATURE_KEYS), ("labels", LABEL_KEYS)):
        tried = [f"{word}_{split or 'train'}" for word in usual]
        told = usual if split is None else tried
        here = [key for key in (*tried, *(usual if split is None else ())) if key in keys]
        if not here:
            of = "" if split is None else f" of the split {split!r}"
            raise UsageError(
                f"{path}: no {what}{of} in it (looked for {', '.join(told)}; it has "
                f"{listed(sorted(keys)) or 'nothing'})"
            )
        found.append(here[0])
    return found[0], found[1]
