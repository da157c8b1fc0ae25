"""The front door: whatever a person has, by name, by path or as an object, to samples."""

from __future__ import annotations

from collections.abc import Sequence
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
from rarefy.tools.samples.tables import ENDINGS, ending_of, from_frame, from_table


def open_samples(
    text: str | Path,
    *,
    split: str | None = None,
    label: str | None = None,
    labels: str | Path | None = None,
    columns: Sequence[str] | None = None,
    names: str | None = None,
    image: str | None = None,
    size: int | None = None,
    test_share: float | None = None,
    skip_bad: bool = False,
    standardize: bool = False,
    folder: str | Path | None = None,
) -> Samples:
    """By what the text is: the name of a built-in set, a folder of class folders, a .npy file
    (``labels``: another, by default ``labels.npy`` beside it), an .npz file, a table (``label``,
    ``columns``, ``names``, ``standardize``), or ``hf:NAME`` (``label``, ``columns``, ``image``).
    An option that does not fit the kind of data is an error."""
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
        "standardize": standardize or None,
        "folder": folder,
    }
    options = {key: value for key, value in given.items() if value is not None}
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
        return from_npy(path, _labels_beside(path) if labels is None else labels)
    if suffix == ".npz":
        _fitting(options, ("split",), ".npz files")
        return from_npz(path, split)
    if ending_of(path) is not None:
        _fitting(options, ("label", "columns", "names", "standardize"), "tables")
        if label is None:
            raise bad_value("label", None, f"{word}: name the column that has the classes")
        return from_table(path, label, columns, names, standardize)
    _need_known(word)
    _fitting(options, ("split", "size", "test_share", "skip_bad"), "images")
    return from_images(word, **options)


def as_samples(data: object, labels: object = None, **options: Any) -> Samples:
    """The same for objects: samples as they are, text and paths by ``open_samples``, DataFrames
    (``labels``: a column, or the labels), Hugging Face sets (``labels``: a column), PyTorch data
    sets of pairs, and otherwise arrays with their labels."""
    if isinstance(data, Samples):
        return data
    if isinstance(data, str | Path):
        return open_samples(data, **options)
    if hasattr(data, "column_names"):
        return from_hugging_face(data, labels if isinstance(labels, str) else None, **options)
    if hasattr(data, "columns") and hasattr(data, "iloc") and isinstance(labels, str):
        return from_frame(data, labels, **options)
    if labels is None:
        if isinstance(data, np.ndarray | Tensor | list | tuple) or hasattr(data, "iloc"):
            raise bad_value("labels", None, "must be given: one label a sample")
        return from_pairs(data, **options)
    return from_arrays(data, labels, **options)


def _fitting(options: dict[str, Any], fit: Sequence[str], kind: str) -> None:
    for option, value in options.items():
        if option not in fit:
            raise bad_value(option, value, f"does not fit {kind}, which take {', '.join(fit)}")


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
