"""Which layout a cleaned set gets: the one its data came in, or the nearest that is read here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rarefy.core.text import file_name
from rarefy.data.images.catalog import SETS
from rarefy.data.images.listing import listed
from rarefy.tools.clean.class_folders import (
    Places,
    can_be_pictures,
    write_class_folders,
    write_pictures,
)
from rarefy.tools.clean.picks import Decisions
from rarefy.tools.clean.rows import write_arrays, write_frame, write_npy, write_npz, write_table
from rarefy.tools.image_data import split_options
from rarefy.tools.samples.hugging_face import PREFIX
from rarefy.tools.samples.samples import Samples
from rarefy.tools.samples.tables import LABEL, ending_of


@dataclass(frozen=True)
class Written:
    """``next``: a verb, the file below the folder (or nothing), and options. ``places``: where a
    sample is now, where samples are files."""

    next: list[str]
    places: Places = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def write_layout(
    data: object,
    read: Mapping[str, Any],
    samples: Samples,
    decisions: Decisions,
    folder: Path,
    copy: bool,
) -> Written:
    """Write into an empty folder. ``read``: the options that the samples were read with."""
    if isinstance(data, str | Path) and not str(data).startswith(PREFIX):
        text = split_options(str(data))[0]
        path, label = Path(text).expanduser(), str(read.get("label", read.get("labels", LABEL)))
        if path.is_dir() and text not in SETS:
            places, notes = write_class_folders(path, samples, decisions, folder, copy)
            return Written(_next(decisions, read), places, notes)
        if ending_of(path) is not None:
            write_table(path, label, samples, decisions, folder / path.name)
            words = ["influence", path.name, "--label", label]
            if "columns" in read:
                words += ["--columns", ",".join(read["columns"])]
            return Written(words)
        if path.suffix.lower() == ".npz":
            cut = write_npz(path, read.get("split"), samples, decisions, folder / path.name)
            notes = [f"arrays with one entry per sample, cut too: {listed(cut)}"] if cut else []
            return Written(["influence", path.name], notes=notes)
        if path.suffix.lower() == ".npy":
            return _npy(path, read.get("labels"), samples, decisions, folder)
    elif hasattr(data, "iloc") and isinstance(read.get("labels", read.get("label")), str):
        label = str(read.get("labels", read.get("label")))
        write_frame(data, label, samples, decisions, folder / "table.parquet")
        return Written(["influence", "table.parquet", "--label", label])
    if can_be_pictures(samples):
        name = str(data) if isinstance(data, str | Path) else ""
        return Written(
            _next(decisions, {}), write_pictures(name, samples, decisions, folder),
            ["written as class folders of PNG files"],
        )  # fmt: skip
    name = f"{file_name(samples.name).strip('.') or 'arrays'}.npz"
    write_arrays(samples, decisions, folder / name)
    return Written(["influence", name], notes=["written as features and labels of an .npz file"])


def _npy(
    path: Path, labels: object, samples: Samples, decisions: Decisions, folder: Path
) -> Written:
    labels = path.with_name("labels.npy") if labels is None else labels
    beside = folder / "labels.npy"  # where it is looked for
    if path.name == beside.name:
        beside = folder / "labels-of-labels.npy"
    write_npy(path, labels, samples, decisions, folder / path.name, beside)
    return Written(["influence", path.name], notes=[f"its labels are in {beside.name}"])


def _next(decisions: Decisions, read: Mapping[str, Any]) -> list[str]:
    """Images can be trained on where each class has some for both parts."""
    counts = np.bincount(decisions.after[decisions.keep])
    size = ["--size", str(read["size"])] if read.get("size") else []
    return ["train" if counts[counts > 0].min() > 1 else "influence", "", *size]
