"""The front door: whatever a person has, by name, by path or as an object, to samples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from rarefy.core.errors import UsageError, bad_value, unknown
from rarefy.data.images.catalog import SETS
from rarefy.tools.image_data import split_options
from rarefy.tools.samples.arrays import from_arrays, from_npy, from_npz
from rarefy.tools.samples.hugging_face import PREFIX, from_hugging_face, load_hugging_face
from rarefy.tools.samples.images import from_images
from rarefy.tools.samples.pairs import from_pairs
from rarefy.tools.samples.samples import Samples
from rarefy.tools.samples.standardizing import standardized
from rarefy.tools.samples.tables import ENDINGS, ending_of, from_frame, from_table


def open_samples(
    text: str | Path,
    *,
    split: str | None = None,
    label: str | None = None,
    labels: object = None,
    columns: Sequence[str] | None = None,
    names: str | None = None,
    image: str | None = None,
    size: int | None = None,
    test_share: float | None = None,
    skip_bad: bool = False,
    standardize: bool | None = None,
    folder: str | Path | None = None,
) -> Samples:
    """By what the text is: the name of a built-in set, a folder of class folders, a .npy file
    (``labels``: another, or the labels; by default ``labels.npy`` beside it), an .npz file, a table
    (``label``, ``columns``, ``names``), or ``hf:NAME`` (``label``, ``columns``, ``image``). An
    option that does not fit the kind of data is an error.

    standardize: features at mean 0 and std 1; by default all but images are."""
    word = str(text)
    given: dict[str, Any] = {
        "split": split,
        "label": label,
        "labels": labels,
        "columns": columns,
        "names": names,
        "image": image,
        "size": size,
        "test_share": test_share,
        "skip_bad": skip_bad or None,
        "folder": folder,
    }
    options = {key: value for key, value in given.items() if value is not None}
    return standardized(_opened(word, options), standardize)


def _opened(word: str, options: dict[str, Any]) -> Samples:
    split, label, labels = (options.get(name) for name in ("split", "label", "labels"))
    if word.startswith(PREFIX):
        fit = ("split", "label", "columns", "image", "size", "skip_bad", "folder")
        _fitting(options, fit, "Hugging Face sets")
        wanted = {key: value for key, value in options.items() if key != "split"}
        name = word.removeprefix(PREFIX)
        return from_hugging_face(load_hugging_face(word, split), name=name, **wanted)
    path = Path(word).expanduser() if word.startswith("~") else Path(word)
    suffix = path.suffix.lower()
    if suffix == ".npy":
        _fitting(options, ("labels",), ".npy files")
        if labels is not None:
            return from_npy(path, labels)
        beside = _labels_beside(path)
        found = from_npy(path, beside)
        note = f"labels: from {beside.name} beside {path.name}"
        return replace(found, notes=(*found.notes, note))
    if suffix == ".npz":
        _fitting(options, ("split",), ".npz files")
        return from_npz(path, split)
    if ending_of(path) is not None:
        _fitting(options, ("label", "columns", "names"), "tables")
        return from_table(path, label, options.get("columns"), options.get("names"))
    _need_known(word)
    _fitting(options, ("split", "size", "test_share", "skip_bad"), "images")
    return from_images(word, **options)


def as_samples(
    data: object, labels: object = None, *, standardize: bool | None = None, **options: Any
) -> Samples:
    """The same for objects: samples as they are, text and paths by ``open_samples`` (``labels``: a
    column, or the labels of an .npy file), DataFrames (``labels``: a column, or the labels),
    Hugging Face sets (``labels``: a column), PyTorch data sets of pairs, and otherwise arrays with
    their labels. ``label`` is another word for a column's name. An option that does not fit is an
    error."""
    if standardize not in (None, True, False):
        raise bad_value("standardize", _shown(standardize), "must be True, False or None")
    _need_options(options)
    options = {key: value for key, value in options.items() if _is_given(value)}
    if isinstance(data, Samples):
        given = {"labels": labels, "standardize": standardize, **options}
        _fitting(given, (), "samples that are made already")
        return data
    if isinstance(data, str | Path):
        given = _with_labels(str(data), labels, options)
        return open_samples(data, standardize=standardize, **given)
    return standardized(_made(data, labels, options), standardize)


def _made(data: object, labels: object, options: dict[str, Any]) -> Samples:
    hugging = hasattr(data, "column_names")
    framed = not hugging and hasattr(data, "columns") and hasattr(data, "iloc")
    if hugging or framed:
        labels = _one_of(labels, options)
    if hugging:
        if labels is not None and not isinstance(labels, str):
            raise bad_value(
                "labels", _shown(labels), "does not fit Hugging Face sets, name the column"
            )
        _fitting(options, _options_of(from_hugging_face), "Hugging Face sets")
        return from_hugging_face(data, labels, **options)
    if framed and isinstance(labels, str):
        _fitting(options, _options_of(from_frame), "tables")
        return from_frame(data, labels, **options)
    if labels is None:
        if isinstance(data, np.ndarray | Tensor | list | tuple) or hasattr(data, "iloc"):
            raise bad_value("labels", None, "must be given: one label per sample")
        _fitting(options, _options_of(from_pairs), "data sets of pairs")
        return from_pairs(data, **options)
    _fitting(options, _options_of(from_arrays), "arrays")
    return from_arrays(data, labels, **options)


# ----------------------------------------------------------------------------------------- options

_GIVEN_ELSEWHERE = ("dataset", "frame", "X", "y", "text", "label", "labels")
"""The data and their labels: parameters, but no options."""


def _options_of(reader: Callable[..., Samples]) -> tuple[str, ...]:
    names = inspect.signature(reader).parameters
    return tuple(name for name in names if name not in _GIVEN_ELSEWHERE)


def _need_options(options: Mapping[str, Any]) -> None:
    """Complain about what is no option of any kind of data."""
    readers = (open_samples, from_arrays, from_frame, from_hugging_face, from_pairs)
    known = {"label", *(name for reader in readers for name in _options_of(reader))}
    for option in options:
        if option not in known:
            raise unknown("option", option, known)


def _with_labels(text: str, labels: object, options: dict[str, Any]) -> dict[str, Any]:
    """Options of ``open_samples``; what it calls ``label`` may have come as ``labels``."""
    taken = inspect.signature(open_samples).parameters
    apart = ("text", "labels", "standardize")
    _fitting(options, [name for name in taken if name not in apart], "files and names")
    if labels is None:
        return options
    tabular = text.startswith(PREFIX) or ending_of(text) is not None
    if tabular and isinstance(labels, str):
        return {**options, "label": _one_of(labels, options)}
    return {**options, "labels": labels}


def _one_of(labels: object, options: dict[str, Any]) -> object:
    """The label column, by whichever word it was given; taken out of the options."""
    label = options.pop("label", None)
    if label is not None and labels is not None:
        raise bad_value("label", _shown(label), "give either label or labels")
    return labels if label is None else label


def _fitting(options: Mapping[str, Any], fit: Sequence[str], kind: str) -> None:
    for option, value in options.items():
        if option not in fit and _is_given(value):
            takes = f", which take {', '.join(fit)}" if fit else ""
            raise bad_value(option, _shown(value), f"does not fit {kind}{takes}")


def _is_given(value: object) -> bool:
    return value is not None and value is not False


def _shown(value: object) -> object:
    """Short: an array would take many lines."""
    plain = isinstance(value, str | int | float | Path) or value is None
    return value if plain else type(value).__name__


def _labels_beside(path: Path) -> Path:
    beside = path.with_name("labels.npy")
    if path.is_file() and (beside == path or not beside.is_file()):
        raise bad_value("labels", None, f"name the .npy file with the labels of {path.name}")
    return beside


def _need_known(word: str) -> None:
    """A folder is taken for images; what is neither set, folder nor file gets the nearest names."""
    name, _ = split_options(word)
    path = Path(name).expanduser() if name.startswith("~") else Path(name)
    if name in SETS or path.is_dir():
        return
    if name and path.exists():
        ends = ", ".join((".npy", ".npz", *ENDINGS))
        raise UsageError(f"{name}: is no kind of file that is read here (they end in {ends})")
    near = unknown("data set", name, SETS)
    raise UsageError(f"{near}, nor is there a file or folder of that name")
