"""Published scores of well-known sets, brought into our order and compared with ours.

Memorisation (Feldman and Zhang 2020, arXiv 2008.03703: ``tr_mem``, ``tr_labels`` and for ImageNet
``tr_filenames``) and C-scores (Jiang et al. 2021, arXiv 2002.03206: ``scores``, ``labels``,
``filenames``), from their authors' .npz files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.errors import UsageError, bad_value
from rarefy.data.images.listing import listed
from rarefy.data.restricted_pickle import as_texts, load_object_array
from rarefy.measure.trends import spearman_rho
from rarefy.tools.samples.arrays import open_npz, unreadable
from rarefy.tools.samples.messages import rows_text

Floats = NDArray[np.float64]
LAYOUTS = {
    "memorisation": ("tr_mem", "tr_labels", "tr_filenames"),
    "c-score": ("scores", "labels", "filenames"),
}
"""Under which names a file has scores, labels and file names."""
TOP = 0.1


@dataclass(frozen=True, eq=False)
class PublicScores:
    """One number per training sample, in the order of the file."""

    kind: str
    """``memorisation`` or ``c-score``"""
    scores: Floats
    """High for atypical samples: C-scores, which are high for typical ones, are 1 - score here."""
    labels: NDArray[np.int64]
    files: tuple[str, ...] | None
    source: str


def read_public_scores(path: str | Path) -> PublicScores:
    """Either layout, told by the names of the arrays. Nothing in the file is executed."""
    with open_npz(path) as held:
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
        scores = _array(held, score_key, path, "iuf", "numbers").astype(np.float64)
        labels = _array(held, label_key, path, "iu", "whole numbers").astype(np.int64)
        files = _names(held, file_key, path) if file_key in keys else None
    for key, found in ((label_key, labels), (file_key, files)):
        if found is not None and len(found) != len(scores):
            raise UsageError(f"{path}: {len(found)} {key} for {len(scores)} {score_key}")
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise UsageError(f"{path}: {score_key} is NaN or infinite in {rows_text(bad)}")
    return PublicScores(kind, 1 - scores if kind == "c-score" else scores, labels, files, str(path))


def _array(held: Any, key: str, path: str | Path, kinds: str, what: str) -> NDArray[Any]:
    try:
        values: NDArray[Any] = held[key]
    except Exception as error:
        raise unreadable(f"{path} ({key})", error) from None
    if values.ndim != 1:
        raise UsageError(f"{path}: {key} must have 1 axes, its shape is {values.shape}")
    if values.dtype.kind not in kinds or not values.size:
        raise UsageError(f"{path}: {key} must be {what}, not {values.size} of {values.dtype}")
    return values


def _names(held: Any, key: str, path: str | Path) -> tuple[str, ...]:
    """Text, or the pickled list of text that ImageNet's files have."""
    where = f"{path}: {key}"
    with held.zip.open(f"{key}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(stream)
        if len(shape) != 1:
            raise UsageError(f"{where}: must be one name per sample, not of shape {shape}")
        if dtype.kind not in "SUO":
            raise UsageError(f"{where}: must be names, not {dtype}")
        values = load_object_array(stream, where) if dtype.kind == "O" else held[key].tolist()
    return as_texts(values, where)


def in_our_order(
    public: PublicScores, labels: NDArray[np.int64], files: Sequence[str] | None = None
) -> Floats:
    """Their scores for our samples, NaN where they have none.

    Where both have file names, samples are matched by them; otherwise by place, and the sets must
    be equally long. Either way labels must agree, up to how the classes are numbered: libraries
    hand out the same set in different orders, and then the numbers would mean nothing.
    """
    labels, count = np.asarray(labels), len(public.scores)
    if public.files is not None and files is not None:
        rows = _rows_of(public.files, files, public.source)
    elif count != len(labels):
        raise UsageError(
            f"{public.source}: scores of {count} samples, but there are {len(labels)} here"
        )
    else:
        rows = np.arange(len(labels))
    known = rows >= 0
    ours, theirs = labels[known], public.labels[rows[known]]
    # one number of theirs must always stand for one of ours, and the other way round
    pairs = np.unique(np.stack([ours, theirs]), axis=1)
    if not pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1])):
        share = float((ours == theirs).mean())
        raise UsageError(
            f"{public.source}: only {100 * share:.1f} % of its labels are those of our samples "
            "at the same place: another set, or the same one in another order"
        )
    scores = np.full(len(labels), np.nan)
    scores[known] = public.scores[rows[known]]
    return scores


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


def agreement(
    ours: Floats,
    theirs: Floats,
    labels: NDArray[np.int64],
    classes: Sequence[str] | None = None,
    top: float = TOP,
) -> pd.DataFrame:
    """How far two scores agree: one row for all samples and one per class, with

    n: samples that have both scores (the others do not count); spearman and pearson correlation,
    NaN where there are fewer than 3 samples or a score never changes; k, the ``top`` share of n;
    overlap: the share of the k highest by one score that are among the k highest by the other,
    ties sharing the last places; chance: the overlap of scores that know nothing of each other.
    """
    ours, theirs = np.asarray(ours, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
    labels = np.asarray(labels)
    for name, values in (("theirs", theirs), ("labels", labels)):
        if values.shape != ours.shape or ours.ndim != 1:
            raise bad_value(name, values.shape, f"must be as long as ours, {ours.shape}")
    if not 0 < top <= 1:
        raise bad_value("top", top, "must be above 0 and at most 1")
    both = np.isfinite(ours) & np.isfinite(theirs)
    rows = [{"class": "all", **_compare(ours[both], theirs[both], top)}]
    for label in range(len(classes)) if classes is not None else np.unique(labels).tolist():
        here = both & (labels == label)
        name = str(label) if classes is None else classes[label]
        rows.append({"class": name, **_compare(ours[here], theirs[here], top)})
    table = pd.DataFrame(rows)
    table.attrs["without both scores"] = int((~both).sum())
    return table


def _compare(ours: Floats, theirs: Floats, top: float) -> dict[str, float | int]:
    count = len(ours)
    k = min(count, max(1, round(top * count)))
    found = {"n": count, "spearman": np.nan, "pearson": np.nan, "k": k, "overlap": np.nan}
    if count >= 3 and np.ptp(ours) > 0 and np.ptp(theirs) > 0:
        found["spearman"] = spearman_rho(ours, theirs)
        found["pearson"] = float(np.corrcoef(ours, theirs)[0, 1])
    if count:
        found["overlap"] = float((_in_top(ours, k) * _in_top(theirs, k)).sum() / k)
    return {**found, "chance": k / count if count else np.nan}


def _in_top(values: Floats, k: int) -> Floats:
    """1 for what is above the k-th highest, and equal parts of what is left for its equals."""
    last = np.partition(values, len(values) - k)[len(values) - k]
    above, equal = values > last, values == last
    return above + equal * ((k - above.sum()) / equal.sum())
