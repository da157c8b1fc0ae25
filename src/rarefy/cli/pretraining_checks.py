"""What ``pretrain`` looks at before anything is trained: the set, its split, files in the way."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rarefy.core.errors import UsageError, bad_value
from rarefy.core.writing import check_output

if TYPE_CHECKING:
    from rarefy.data.longtail.split import LongTailSplit


def check_before(study: Any, save_split: Path | None, overwrite: bool) -> None:
    """Before anything is trained or written."""
    import torch

    from rarefy.tools.longtail.pretraining import check_task
    from rarefy.tools.longtail.sets import tail_notes

    if save_split is not None and save_split.suffix != ".json":
        raise bad_value("save_split", str(save_split), "must end in .json, as --split reads it")
    for task in study.tasks():
        parts = check_task(task, torch.device("cpu"), study.seeds)
        if task.tail.balanced:
            continue
        for note in tail_notes(task.tail, parts):
            typer.echo(f"note: {note}", err=True)
        if save_split is not None:
            _write_split(parts.split, save_split, overwrite)


def _write_split(split: LongTailSplit | None, path: Path, overwrite: bool) -> None:
    from rarefy.data.longtail.split_file import load_split, save_split

    if split is None:
        raise UsageError("save_split: all images are used; there is no split to save")
    with contextlib.suppress(UsageError):  # (no split, or none at all)
        if load_split(path).fingerprint == split.fingerprint:
            return  # it may come from another machine, without a record
    check_output(path, split.fingerprint, overwrite=overwrite, option="save_split")
    save_split(split, path, overwrite)
