"""``rarefy.clean``: a data set without what was dropped and with the labels that were chosen."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from rarefy.core.cells import defused
from rarefy.core.errors import UsageError, bad_value
from rarefy.core.text import as_argument, one_line, printable
from rarefy.core.writing import check_place, new_folder
from rarefy.data.images.listing import listed
from rarefy.tools.clean.layouts import write_layout
from rarefy.tools.clean.picks import DROP, KEEP, RELABEL, Decisions, Picks, decide, read_picks
from rarefy.tools.clean.recording import changed_since, record, recorded
from rarefy.tools.samples.opening import as_samples
from rarefy.tools.samples.samples import Samples

LOG = "clean-log.csv"
LOGGED = ["id", "index", "name", "label", "decision", "new_label", "new_name", "why"]


@dataclass(frozen=True, eq=False)
class Cleaned:
    """What was done to a set.

    Attributes:
        kept, dropped, relabelled: samples; those that are kept stay as they were.
        log, classes: DataFrames with a row per pick, and per class before and after.
        path, log_path: the folder, and the log in it.
        next, undo: the command that comes next, and the one that takes it back.
        again: it had been done before, and nothing was written now.
        notes: what should be known.

    Example:
        >>> X, y = load_wine(return_X_y=True)
        >>> table = rarefy.influence(X, y, check_labels=False)
        >>> done = rarefy.clean(X, table.head(1).assign(decision="drop", new_label=""), "out", y)
        >>> done.kept, done.dropped
        (177, 1)
    """

    path: Path
    kept: int
    dropped: int
    relabelled: int
    classes: pd.DataFrame
    log: pd.DataFrame
    notes: tuple[str, ...]
    next: str
    again: bool = False

    @property
    def log_path(self) -> Path:
        return self.path / LOG

    @property
    def undo(self) -> str:
        """The command that takes it back."""
        return shlex.join(["rarefy", "clean", "--undo", str(self.path)])

    def __str__(self) -> str:
        said = f"kept {self.kept:,}, dropped {self.dropped:,}, relabelled {self.relabelled:,}"
        return f"{said} of {self.kept + self.dropped + self.relabelled:,} samples"


def clean(
    data: object,
    picks: Picks | pd.DataFrame | str | Path,
    out: str | Path,
    labels: object = None,
    *,
    copy: bool = False,
    allow_empty: bool = False,
    **options: Any,
) -> Cleaned:
    """Write a data set anew as the picks say, in the layout it came in; the data stay untouched.

    Samples are found by their content, so that data in another order are fine; picks of other data
    are refused. Everything is checked first, and ``out`` is there with all that is in it or not at
    all. The same call again does nothing. ``rarefy.tools.clean.recording.undo(out)`` takes it back.

    Arguments:
        data: what ``rarefy.influence`` takes: a folder of class folders, a table, an array file, a
            named set (written as class folders of PNG files), arrays or a DataFrame.
        picks: the file that a gallery exported, or a DataFrame with columns ``id``, ``decision``
            (keep, drop or relabel) and ``new_label``.
        out: a folder that is not there yet.
        labels: as for ``rarefy.influence``; by default what the picks say.
        copy: of a folder of images: copy files instead of linking to them.
        allow_empty: write the set even if a class loses its last sample.
        options: how the data are read (``label``, ``size``, ``split`` ...); by default as the
            page's were.

    Returns:
        What was done: counts, per class before and after, a log, the next command.

    Example:
        >>> frame = load_wine(as_frame=True).frame
        >>> frame.loc[0, "target"] = 2  # a wrong label
        >>> frame.to_csv("wine.csv", index=False)
        >>> table = rarefy.influence("wine.csv", label="target")
        >>> wrong = table[table["label_issue"]]
        >>> picks = wrong.assign(decision="relabel", new_label=wrong["suggested_label"])
        >>> print(rarefy.clean("wine.csv", picks, "wine-clean", label="target"))
        kept 177, dropped 0, relabelled 1 of 178 samples
    """
    found, target = read_picks(picks), Path(out).expanduser()
    told = _check_out(target, data)
    given = {"labels": labels, **options}
    given = {k: value for k, value in given.items() if value is not None and value is not False}
    read = _read(data, found, given)
    samples = _samples(data, read, found, given)
    decisions = decide(samples, found)
    _check_classes(samples, decisions, allow_empty)
    key = {"fingerprint": samples.fingerprint, "picks": found.key, "copy": copy}
    if told is not None:
        _check_same(target, told, key)
        return _cleaned(target, samples, decisions, told, again=True)
    with new_folder(target) as partial:
        written = write_layout(data, read, samples, decisions, partial, copy)
        log = _log(samples, decisions, written.places)
        text = defused(log).to_csv(index=False, lineterminator="\n")
        (partial / LOG).write_text(text, "utf-8")
        told = {**key, "data": _said(data), "notes": written.notes}
        told |= {"next": written.next, "log": log.to_dict("records")}
        record(partial, told)
    return _cleaned(target, samples, decisions, told)


# ------------------------------------------------------------------------------------------ checks


def _read(data: object, picks: Picks, given: dict[str, Any]) -> dict[str, Any]:
    """How the data are read: as the page's were, but for what is given."""
    if not isinstance(data, str | Path):
        return given
    named = {"label", "labels"} & set(given)  # two words for one thing
    told = {k: v for k, v in picks.read.items() if not (named and k in ("label", "labels"))}
    return {**told, **given}


def _samples(data: object, read: dict[str, Any], picks: Picks, given: dict[str, Any]) -> Samples:
    # as they are: units that scores brought to one scale stay in what is written
    apart = {"labels": read.get("labels"), "standardize": False}
    try:
        return as_samples(data, **{**read, **apart})
    except UsageError as error:
        if str(error).partition("=")[0] in set(picks.read) - set(given):
            what = f"are picks of {picks.data!r}, and {_said(data)} cannot be read as that was"
            raise bad_value("picks", picks.where, f"{what}: {error}") from None
        raise


def _check_out(target: Path, data: object) -> dict[str, Any] | None:
    """Refuse what is there, unless it is an earlier result: then what is recorded of it."""
    check_place(target)
    if isinstance(data, str | Path) and os.path.isdir(data):
        if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(data)):
            raise bad_value("out", str(target), f"lies inside {data}, which stays as it is")
    if not os.path.lexists(target):
        return None
    told = recorded(target) if target.is_dir() and not target.is_symlink() else None
    if told is None:
        raise bad_value("out", str(target), "is there already; name a folder that is not")
    return told


def _check_same(target: Path, told: dict[str, Any], key: dict[str, Any]) -> None:
    if any(told.get(name) != value for name, value in key.items()):
        what = f"was made of other picks or data; rarefy clean --undo {target} removes it"
        raise bad_value("out", str(target), f"{what}, or name another --out")
    changed = changed_since(target, told)
    if changed:
        what = f"was changed since rarefy wrote it ({listed(changed, 5)}); name another --out"
        raise bad_value("out", str(target), what)


def _check_classes(samples: Samples, decisions: Decisions, allow_empty: bool) -> None:
    before, after = _counts(samples, decisions)
    gone = [shown(samples.classes[place]) for place in np.flatnonzero((before > 0) & (after == 0))]
    if gone and not allow_empty:
        what = f"no sample of {listed(gone)} would be left; keep one of each"
        raise UsageError(f"{what}, or pass --allow-empty (allow_empty=True) to lose the class")
    if (after > 0).sum() < 2:
        raise UsageError(f"{samples.name}: samples of at least 2 classes must be left")


def _counts(samples: Samples, decisions: Decisions) -> tuple[NDArray[Any], NDArray[Any]]:
    after = decisions.after[decisions.keep]
    return samples.counts, np.bincount(after, minlength=len(samples.classes))


# ---------------------------------------------------------------------------------- what is told


def shown(name: str) -> str:
    """The name of a class as tables and pages have it."""
    return one_line(printable(name))


def _said(data: object) -> str:
    return str(data) if isinstance(data, str | Path) else "what was given"


def _log(samples: Samples, decisions: Decisions, places: dict[int, str]) -> pd.DataFrame:
    """One row per pick, in the order of the data."""
    rows = []
    for row in sorted(decisions.picks):
        after = shown(samples.classes[decisions.after[row]])
        done = RELABEL if decisions.moved[row] else KEEP if decisions.keep[row] else DROP
        rows.append(
            {
                "id": samples.ids[row],
                "index": row,
                "name": "" if samples.files is None else one_line(samples.files[row]),
                "label": shown(samples.classes[decisions.before[row]]),
                "decision": done,
                "new_label": after if done == RELABEL else "",
                "new_name": one_line(places.get(row, "")),
                "why": decisions.picks[row].why,
            }
        )
    return pd.DataFrame(rows, columns=LOGGED)


def _cleaned(
    target: Path,
    samples: Samples,
    decisions: Decisions,
    told: dict[str, Any],
    again: bool = False,
) -> Cleaned:
    before, after = _counts(samples, decisions)
    names = [shown(name) for name in samples.classes]
    verb, file, *options = told["next"]
    where = target / file if file else target
    return Cleaned(
        path=target,
        kept=int((decisions.keep & ~decisions.moved).sum()),
        dropped=int((~decisions.keep).sum()),
        relabelled=int(decisions.moved.sum()),
        classes=pd.DataFrame({"class": names, "before": before, "after": after}),
        log=pd.DataFrame(told["log"], columns=LOGGED),
        notes=(*decisions.notes, *told["notes"]),
        next=" ".join(["rarefy", verb, as_argument(where), *map(shlex.quote, options)]),
        again=again,
    )
