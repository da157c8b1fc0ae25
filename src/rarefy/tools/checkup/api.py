"""``rarefy.checkup``: all tools once, and the three things to do first."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from rarefy.core.errors import OutOfTime, RunError, UsageError, bad_value, unknown
from rarefy.core.settings import resolve_device
from rarefy.core.text import folder_name
from rarefy.core.version import __version__
from rarefy.core.writing import RECORDS
from rarefy.data.hierarchy.levels import levels_identity
from rarefy.data.hierarchy.reading import with_hierarchy
from rarefy.data.images.catalog import SETS
from rarefy.data.images.ids import short_hash
from rarefy.tools.checkup.parts import PARTS, Subject, timed
from rarefy.tools.checkup.ranking import FIRST, ToDo, commands_for, things_to_do
from rarefy.tools.checkup.sections import DONE, FAILED, Section, keep_section, kept_section
from rarefy.tools.image_data import on_device, with_options
from rarefy.tools.samples.opening import open_samples
from rarefy.tools.samples.samples import Samples


@dataclass(frozen=True, eq=False)
class Checkup:
    """What all tools found in a set.

    Attributes:
        todo: what to do, most urgent first; ``first`` the first three.
        frame: the same as a DataFrame.
        sentence: the decision.
        sections: what each part found; ``failed`` and ``missing`` those that could not be run, and
            those that time was over for.
        data, samples, path: what was looked at, and the folder that keeps what was found.

    Example:
        >>> found = rarefy.checkup("digits", only=["set"])
        >>> isinstance(found, rarefy.Checkup), found.finished, len(found.sections)
        (True, True, 1)
    """

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
        words = "nothing to do first: no rule found anything"
        if self.todo:
            words = f"do first: {self.todo[0].what} ({self.todo[0].command})"
        return f"{words}; {', '.join(self.failed)} failed" if self.failed else words

    @property
    def failed(self) -> list[str]:
        """Parts that could not be run."""
        return [one.part for one in self.sections if one.status == FAILED]

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
        label: of a table: the column with the classes; ``label`` if not given.
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
        >>> found = rarefy.checkup("digits", only=["set"])
        >>> print(found.sentence)
        nothing to do first: no rule found anything
    """
    wanted = _wanted(only, skip)
    if max_seconds is not None and not max_seconds > 0:
        raise bad_value("max_seconds", max_seconds, "must be more than 0")
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    given = {"label": label, "size": size, "test_share": test_share, "hierarchy": hierarchy}
    subject = _subject(str(data), given, device, out, overwrite, deadline)
    if say is not None:
        for note in subject.samples.notes:
            say(f"note: {note}")
    sections, missing = [], []
    for part in wanted:
        kept = subject.folder / RECORDS / "checkup" / f"{part}.json"
        found = None if overwrite else kept_section(kept, subject.key)
        if found is None:
            if say is not None:
                say(f"{part} ...")
            try:
                subject.seconds_left()
                found = timed(part, subject)
                if found.status == DONE:  # (what was skipped here may be run elsewhere)
                    keep_section(kept, subject.key, found)
            except OutOfTime:
                missing.append(part)
                continue
            except (UsageError, RunError) as error:  # (it may be mended: run again next time)
                found = Section(part, part, f"failed: {error}", FAILED)
        if say is not None:
            say(f"{part}: {found.answer}")
        sections.append(found)
    todo = tuple(things_to_do(sections, subject.commands))
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


def usual_folder(data: str, given: Mapping[str, Any]) -> Path:
    """One for each set and way to read it, so that none replaces another."""
    name = folder_name("checkup", Path(data).name, source=data, choices=[*given.values()])
    return Path("runs") / name


def _subject(
    data: str,
    given: Mapping[str, Any],
    device: str,
    out: Path | str | None,
    overwrite: bool,
    deadline: float | None,
) -> Subject:
    pictured = data in SETS or Path(data).is_dir()
    folder_alone = ("size", "test_share") if not Path(data).is_dir() else ()
    for name in (*folder_alone, *(() if pictured else ("hierarchy",))):
        if given[name] is not None:
            kind = "images" if name == "hierarchy" else "folders"
            raise bad_value(name, str(given[name]), f"is for {kind}, and {data} is none")
    folder = usual_folder(data, given) if out is None else Path(out)
    if folder.exists() and not folder.is_dir():
        raise bad_value("out", str(folder), "is a file; name a folder")
    where = resolve_device(device)
    if not pictured:
        samples = open_samples(data, label=given["label"])
        images, text, broken = None, data, False
    else:
        text = with_options(data, given["size"], given["test_share"], skip_bad=data not in SETS)
        samples = open_samples(text, label=given["label"])
        images = with_hierarchy(on_device(text, torch.device("cpu")), given["hierarchy"] or "")
        broken = bool(images.left_out)
    parts = [samples.fingerprint, text, where.type, __version__]
    if images is not None:
        parts += [images.fingerprint, levels_identity(images)]
    commands = commands_for(data, **given, skip_bad=broken)
    return Subject(
        text, commands, samples, images, device, folder, short_hash(parts), overwrite, deadline
    )
