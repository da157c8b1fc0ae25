"""Published scores of well-known sets, read from their authors' files and brought into our order.

Feldman and Zhang 2020 (arXiv 2008.03703): ``cifar100_infl_matrix.npz`` with ``tr_mem``,
``tr_labels``, ``tt_labels`` and, for every class, ``infl_matrix_classX`` (train x test),
``tr_classidx_X``, ``tt_classidx_X``; ``imagenet_index.npz`` with ``tr_mem``, ``tr_labels``,
``tr_filenames``. C-scores (Jiang et al. 2021, arXiv 2002.03206): ``scores``, ``labels`` and, for
ImageNet, ``filenames``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import listed
from rarefy.tools.influence.pickled_names import names_in
from rarefy.tools.samples.arrays import opened_npz, unreadable
from rarefy.tools.samples.messages import rows_text

LAYOUTS = {
    "memorisation": ("tr_mem", "tr_labels", "tr_filenames"),
    "c-score": ("scores", "labels", "filenames"),
}
"""Under which names a file has scores, labels and file names."""


@dataclass(frozen=True, eq=False)
class PublicScores:
    """One number a training sample, in the order of the file."""

    kind: str
    """``memorisation`` or ``c-score``"""
    scores: NDArray[np.float64]
    """High for atypical samples: C-scores, which are high for typical ones, are 1 - score here."""
    labels: NDArray[np.int64]
    files: tuple[str, ...] | None
    source: str

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class ClassInfluence:
    """How much the training samples of one class help its test samples."""

    train: NDArray[np.int64]
    """(k,) positions in the training set"""
    test: NDArray[np.int64] | None
    """(m,) positions in the test set, where the file has them"""
    influence: NDArray[np.float64]
    """(k, m)"""


def read_public_scores(path: str | Path) -> PublicScores:
    """Either layout, told by the names of the arrays. Nothing in the file is executed."""
    with opened_npz(path) as held:
        keys = set(held.files)
        kind = next((kind for kind, layout in LAYOUTS.items() if layout[0] in keys), None)
        if kind is None:
            raise UsageError(
                f"{path}: neither tr_mem (Feldman and Zhang) nor scores (C-scores) is in it; "
                f"it has {listed(sorted(keys)) or 'nothing'}"
            )
        score_key, label_key, file_key = LAYOUTS[kind]
        if label_key not in keys:
            raise UsageError(
                f"{path}: has no {label_key}, without which nobody can tell whether its order is "
                "that of our samples"
            )
        scores = _numbers(held, score_key, path)
        labels = _whole(held, label_key, path)
    files = names_in(path, file_key) if file_key in keys else None
    for key, found in ((label_key, labels), (file_key, files)):
        if found is not None and len(found) != len(scores):
            raise UsageError(f"{path}: {len(found)} {key} for {len(scores)} {score_key}")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise UsageError(f"{path}: {score_key} is NaN or infinite in {rows_text(bad)}")
    oriented = 1 - scores if kind == "c-score" else scores
    return PublicScores(kind, oriented, labels, files, str(path))


def read_class_influence(path: str | Path, label: int) -> ClassInfluence:
    """The part of Feldman and Zhang's influence matrix that belongs to one class."""
    with opened_npz(path) as held:
        keys = set(held.files)
        names = (f"infl_matrix_class{label}", f"tr_classidx_{label}", f"tt_classidx_{label}")
        for key in names[:2]:
            if key not in keys:
                known = sorted(key for key in keys if key.startswith("infl_matrix_class"))
                raise bad_value("label", label, f"{path} has no {key} ({len(known)} classes in it)")
        matrix = _numbers(held, names[0], path, axes=2)
        train = _whole(held, names[1], path)
        test = _whole(held, names[2], path) if names[2] in keys else None
    columns = matrix.shape[1] if test is None else len(test)
    if matrix.shape != (len(train), columns):
        raise UsageError(
            f"{path}: {names[0]} is {matrix.shape}, but there are {len(train)} training and "
            f"{columns} test samples"
        )
    return ClassInfluence(train, test, matrix)


def in_our_order(
    public: PublicScores, labels: NDArray[np.int64], files: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """Their scores for our samples, NaN where they have none.

    Where both have file names, samples are matched by them; otherwise by place, and the sets must
    be equally long. Either way labels must agree, up to how the classes are numbered: libraries
    hand out the same set in different orders, and then the numbers would mean nothing.
    """
    labels = np.asarray(labels)
    if public.files is not None and files is not None:
        rows = _rows_of(public.files, files, public.source)
    elif len(public) != len(labels):
        raise UsageError(
            f"{public.source}: scores of {len(public)} samples, but there are {len(labels)} here"
        )
    else:
        rows = np.arange(len(labels))
    known = rows >= 0
    ours, theirs = labels[known], public.labels[rows[known]]
    if not _same_classes(ours, theirs):
        share = float((ours == theirs).mean())
        raise UsageError(
            f"{public.source}: only {100 * share:.1f} % of its labels are those of our samples "
            "at the same place: another set, or the same one in another order"
        )
    scores = np.full(len(labels), np.nan)
    scores[known] = public.scores[rows[known]]
    return scores


# ------------------------------------------------------------------------------------------- inside


def _array(held: Any, key: str, path: str | Path, axes: int) -> NDArray[Any]:
    try:
        values: NDArray[Any] = held[key]
    except Exception as error:
        raise unreadable(f"{path} ({key})", error) from None
    if values.ndim != axes:
        raise UsageError(f"{path}: {key} must have {axes} axes, its shape is {values.shape}")
    return values


def _numbers(held: Any, key: str, path: str | Path, axes: int = 1) -> NDArray[np.float64]:
    values = _array(held, key, path, axes)
    if values.dtype.kind not in "iuf" or not values.size:
        raise UsageError(f"{path}: {key} must be numbers, not {values.size} of {values.dtype}")
    return values.astype(np.float64)


def _whole(held: Any, key: str, path: str | Path) -> NDArray[np.int64]:
    values = _array(held, key, path, 1)
    if values.dtype.kind not in "iu":
        raise UsageError(f"{path}: {key} must be whole numbers, not {values.dtype}")
    return values.astype(np.int64)


def _rows_of(theirs: Sequence[str], ours: Sequence[str], source: str) -> NDArray[np.int64]:
    """Where each of our files is in their list, by its last part; -1 if it is not."""
    places: dict[str, int] = {}
    for place, name in enumerate(theirs):
        if places.setdefault(os.path.basename(name), place) != place:
            raise UsageError(f"{source}: has {os.path.basename(name)} twice")
    rows = np.array([places.get(os.path.basename(name), -1) for name in ours], dtype=np.int64)
    if (rows < 0).all():
        raise UsageError(f"{source}: has none of our files, such as {os.path.basename(ours[0])}")
    return rows


def _same_classes(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> bool:
    """Whether one number of theirs always stands for one of ours, and the other way round."""
    pairs = np.unique(np.stack([ours, theirs]), axis=1)
    return bool(pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1])))
