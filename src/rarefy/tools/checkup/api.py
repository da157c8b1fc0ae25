"""``rarefy.checkup``: all tools once, and the three things to do first."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from rarefy.core.errors import OutOfTime, RunError, UsageError, unknown
from rarefy.core.text import folder_name
from rarefy.core.version import __version__
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images.catalog import SETS
from rarefy.data.images.ids import short_hash
from rarefy.tools.checkup.parts import PARTS, Subject, timed
from rarefy.tools.checkup.ranking import FIRST, ToDo, things_to_do
from rarefy.tools.checkup.sections import FAILED, Section, keep_section, kept_section
from rarefy.tools.image_data import on_device, with_options
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples


@dataclass(frozen=True, eq=False)
class Checkup:
    """``todo`` is what to do, most urgent first; ``sections`` what each part found; ``missing`` the
    parts that time was over for."""

    data: str
    samples: Samples
    sections: tuple[Section, ...]
    todo: tuple[ToDo, ...]
    missing: tuple[str, ...]
    path: Path

    @property
    def finished(self) -> bool:
        return not self.missing

    @property
    def first(self) -> tuple[ToDo, ...]:
        """The three things to do first; fewer where fewer were found."""
        return self.todo[:FIRST]

    @property
    def frame(self) -> pd.DataFrame:
        """All things to do, one row each."""
        return pd.DataFrame([asdict(one) for one in self.todo])

    @property
    def sentence(self) -> str:
        """The decision."""
        if self.todo:
            return f"do first: {self.todo[0].what} ({self.todo[0].command})"
        return "nothing to do first: no rule found anything"

    def described(self) -> dict[str, Any]:
        """What JSON can hold."""
        return {
            "data": self.data,
            "fingerprint": self.samples.fingerprint,
            "finished": self.finished,
            "first": [asdict(one) for one in self.first],
            "todo": [asdict(one) for one in self.todo],
            "sections": [asdict(one) for one in self.sections],
            "missing": list(self.missing),
            "decision": self.sentence,
        }


def checkup(
    data: str | Path,
    *,
    hierarchy: str | Path | None = None,
    label: str | None = None,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    size: int | None = None,
    test_share: float | None = None,
    device: str = "auto",
    out: Path | str | None = None,
    overwrite: bool = False,
    max_seconds: float | None = None,
    say: Callable[[str], None] | None = None,
) -> Checkup:
    """Look at a labelled set once with all tools, and say what to do first.

    Parts run one after the other; what is found is kept in a folder, and the same call goes on
    where it was. A part that fails is told, and the others run.

    Arguments:
        data: digits, mnist, cifar10, cifar100, a folder of class folders, a table or an array file.
        hierarchy: file with parents of the classes, for images.
        label: of a table: the column with the classes.
        only, skip: parts: set, samples, learning, features, finer.
        size, test_share: of a folder: side of the images, share for the test.
        device: auto, cpu or cuda.
        out: folder for what is found; ``runs/checkup-DATA`` if not given.
        overwrite: run parts again that are there.
        max_seconds: stop cleanly after so many seconds.
        say: is told what is going on.

    Returns:
        A check-up: ``first`` has the three things to do first, each with evidence and command,
        ``frame`` all of them, ``sections`` what the parts found. ``rarefy.report.checkup`` makes
        the page.

    Example:
        >>> found = rarefy.checkup("digits", skip=["features"])
        >>> print(found.sentence)
    """
    wanted = _wanted(only, skip)
    if max_seconds is not None and not max_seconds > 0:
        raise UsageError(f"max_seconds={max_seconds}: must be more than 0")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    subject = _subject(str(data), hierarchy, label, size, test_share, device, out, deadline)
    key = short_hash(
        [subject.samples.fingerprint, subject.text, subject.hierarchy, __version__]
        + ([] if subject.images is None else [subject.images.fingerprint])
    )
    sections, missing = [], []
    for part in wanted:
        kept = subject.folder / f"{part}.json"
        found = None if overwrite else kept_section(kept, key)
        if found is None:
            if say is not None:
                say(f"{part} ...")
            try:
                subject.seconds_left()
                found = timed(part, subject)
                keep_section(kept, key, found)
            except OutOfTime:
                missing.append(part)
                continue
            except (UsageError, RunError) as error:  # (it may be mended: run again next time)
                found = Section(part, part, f"failed: {error}", FAILED)
        if say is not None:
            say(f"{part}: {found.answer}")
        sections.append(found)
    todo = tuple(things_to_do(sections, subject.typed))
    return Checkup(
        str(data), subject.samples, tuple(sections), todo, tuple(missing), subject.folder
    )


def _wanted(only: Sequence[str], skip: Sequence[str]) -> list[str]:
    for one in (*only, *skip):
        if one not in PARTS:
            raise unknown("part", one, PARTS)
    found = [part for part in PARTS if (not only or part in only) and part not in skip]
    if not found:
        raise UsageError("only and skip leave no part")
    return found


def _subject(
    data: str,
    hierarchy: str | Path | None,
    label: str | None,
    size: int | None,
    test_share: float | None,
    device: str,
    out: Path | str | None,
    deadline: float | None,
) -> Subject:
    pictured = data in SETS or Path(data).is_dir()
    if hierarchy is not None and not pictured:
        raise UsageError("hierarchy: of images, which a table or an array has none of")
    usual = Path("runs") / folder_name("checkup", Path(data).name, source=data)
    folder = usual if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"out={str(folder)!r}: is a file; name a folder")
    typed = shlex.quote(data)
    if not pictured:
        samples = open_samples(data, label=label)
        return Subject(data, typed, samples, None, "", device, folder, deadline)
    for name, value in (("size", size), ("test_share", test_share)):
        if value is not None and data in SETS:
            raise UsageError(f"{name}={value:g}: is for folders, and {data} is none")
    text = with_options(data, size, test_share, skip_bad=data not in SETS)
    samples = open_samples(text, label=label)
    images = with_hierarchy(on_device(text, torch.device("cpu")), hierarchy or "")
    return Subject(text, typed, samples, images, str(hierarchy or ""), device, folder, deadline)
