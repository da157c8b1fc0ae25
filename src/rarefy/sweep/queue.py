"""A queue: runs of studies listed in a file, one a line, and how far each of them is.

A line holds the arguments of ``rarefy run`` without the word ``run``; ``#`` begins a comment. All
lines are checked before any is run. Nothing here runs a study or writes a file: where a queue
stands is read from the stores and the committed results alone, so that it can be asked at any time
and nothing has to be kept beside them.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

from rarefy.core.contracts import Study
from rarefy.core.errors import RarefyError, UsageError, bad_value, unknown
from rarefy.core.settings import resolve_dtype
from rarefy.sweep.grid import grid_of
from rarefy.sweep.parse import parse_settings
from rarefy.sweep.results import check_folder, read_pair
from rarefy.sweep.spec import Spec, differences, spec_hash, spec_of
from rarefy.sweep.store import Store

USUAL_DTYPE = "float32"
SHOWN_ERRORS = 3
"""Wrong lines told at once; more would not be read."""


class State(StrEnum):
    """What became of a line so far; the last two only while a queue runs."""

    WRITTEN = "done in results"
    DONE = "done"
    UNWRITTEN = "to be written"
    """The store is full, but the results are not in their folder yet."""
    PARTLY = "partly"
    WAITING = "waiting"
    REFUSED = "refused"
    """What lies in the place of its store or its results was made otherwise."""
    FAILED = "failed"
    BUSY = "busy"
    """Another process is writing this store."""


@dataclass(frozen=True)
class Entry:
    """One line: ``place`` is ``file:line``, ``changes`` all that was said besides study and
    scale."""

    place: str
    line: int
    study: Study
    scale: str
    dtype: str
    jobs: int | None
    changes: str

    @property
    def title(self) -> str:
        return " ".join(filter(None, (self.study.name, self.scale, self.changes)))

    @property
    def spec(self) -> Spec:
        return spec_of(self.study, self.dtype)

    @property
    def stem(self) -> str:
        return f"{self.study.name}-{self.scale}"

    @property
    def store_name(self) -> str:
        """``study-scale`` where the line is what ``rarefy run`` keeps there, else with a hash of
        what it changes. Seeds do not count, they extend a store; nor does the version of the study:
        a store of an older one must be found, and refused with a reason."""
        own = self.spec
        usual = spec_of(type(self.study).at(self.scale), USUAL_DTYPE)["parameters"]
        changed = {
            name: value
            for name, value in own["parameters"].items()
            if name != "seeds" and value != usual[name]
        }
        if not changed and self.dtype == USUAL_DTYPE:
            return self.stem
        return f"{self.stem}-{spec_hash({'dtype': self.dtype, 'parameters': changed})[:8]}"


@dataclass(frozen=True)
class Standing:
    """How far a line is. ``seconds``: spent on its finished cells, over all calls."""

    entry: Entry
    path: Path
    cells: int
    cells_done: int
    state: State
    note: str = ""
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.state in (State.DONE, State.WRITTEN)


# ----------------------------------------------------------------------------------------- the file


def read_queue(path: Path, studies: Mapping[str, type[Study]]) -> list[Entry]:
    """The lines of a file, each checked; an error names all that is wrong by file and line."""
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"cannot read queue {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"cannot read queue {path}: it is no text (UTF-8)") from error
    entries: list[Entry] = []
    seen: dict[tuple[str, str, int], int] = {}
    wrong: list[str] = []
    for line, text in enumerate(lines, 1):
        place = f"{path}:{line}"
        try:
            words = _words(text)
            if words:
                entries.append(_entry(place, line, words, studies))
                _refuse_twice(entries[-1], seen)
        except UsageError as error:
            wrong.append(f"{place}: {error}")
    if wrong:
        more = len(wrong) - SHOWN_ERRORS
        told = "; ".join(wrong[:SHOWN_ERRORS])
        raise UsageError(told + (f" (and {more} more lines are wrong)" if more > 0 else ""))
    if not entries:
        raise UsageError(
            f"queue {path} is empty: write one run a line, as in 'STUDY --scale quick'"
        )
    return entries


def _words(text: str) -> list[str]:
    # a comment begins where a word could, outside quotes, as in a shell (shlex alone would also cut
    # a value such as a#b in two, without a word)
    for found in re.finditer(r"(?:^|\s)#", text):
        with contextlib.suppress(ValueError):  # the quotes are still open here
            return shlex.split(text[: found.start()])
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"cannot be split into words: {error}") from None


class _Options(argparse.ArgumentParser):
    """The options of a line; complaints are ours, and nothing ends the process."""

    def __init__(self) -> None:
        super().__init__(add_help=False, allow_abbrev=False)
        self.add_argument("study", metavar="STUDY")
        self.add_argument("--scale", default="quick")
        self.add_argument("--seeds", type=int)
        self.add_argument("--set", action="append", default=[], dest="settings")
        self.add_argument("--dtype", default=USUAL_DTYPE)
        self.add_argument("--jobs", type=int)

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{message} (a line is STUDY, then any of --scale, --seeds, --set, --dtype, --jobs)"
        )


_OPTIONS = _Options()


def _entry(place: str, line: int, words: list[str], studies: Mapping[str, type[Study]]) -> Entry:
    if words[0] in ("rarefy", "run"):
        raise UsageError(f"leave out {words[0]!r}: a line begins with the name of the study")
    given = _OPTIONS.parse_args(words)
    if given.study not in studies:
        # without the list of all of them: the same slip is often made in many lines
        said = str(unknown("study", given.study, studies)).partition(" (known:")[0]
        raise UsageError(f"{said} (rarefy studies lists them)")
    kind = studies[given.study]
    parameters = parse_settings(kind, given.settings)
    if given.seeds is not None:
        if "seeds" in parameters:
            raise UsageError("seeds is given twice, with --seeds and with --set")
        parameters["seeds"] = given.seeds
    resolve_dtype(given.dtype)
    study = kind.at(given.scale, **parameters)
    grid_of(study)  # an axis with a value twice is found here
    if given.jobs is not None:
        check_jobs(given.jobs)
        if given.jobs > 1 and not study.one_at_a_time:
            why = f"cells of {study.name} run together in one process already; use 1"
            raise bad_value("jobs", given.jobs, why)
    return Entry(place, line, study, given.scale, given.dtype, given.jobs, _changes(given))


def check_jobs(jobs: int) -> None:
    if jobs < 1:
        raise bad_value("jobs", jobs, "must be at least 1")


def _changes(given: argparse.Namespace) -> str:
    words: list[str] = []
    for setting in given.settings:
        words += ["--set", setting]
    if given.seeds is not None:
        words += ["--seeds", str(given.seeds)]
    if given.dtype != USUAL_DTYPE:
        words += ["--dtype", given.dtype]
    return shlex.join(words)


def _refuse_twice(entry: Entry, seen: dict[tuple[str, str, int], int]) -> None:
    """A line that differs from another in its seeds alone is fine: it extends the same store."""
    first = seen.setdefault((entry.scale, spec_hash(entry.spec), entry.study.seeds), entry.line)
    if first != entry.line:
        raise UsageError(f"is the same run as line {first}")


# ---------------------------------------------------------------------------------------- the state


def check_results(entries: Sequence[Entry], folder: Path) -> None:
    """Files are named by study and scale alone: of two lines that differ in more than their seeds
    only one could write its results."""
    if folder.exists() and not folder.is_dir():
        raise bad_value("results", str(folder), "is a file; name a folder")
    first: dict[str, Entry] = {}
    for entry in entries:
        other = first.setdefault(entry.stem, entry)
        if spec_hash(other.spec) != spec_hash(entry.spec):
            raise UsageError(
                f"{entry.place}: its results would replace those of line {other.line}, both are "
                f"{folder / entry.stem}.json; use two queues with a folder each"
            )


def refuse_other_results(entries: Sequence[Entry], folder: Path) -> None:
    """Before a long run: what is in the folder must not have been made with other parameters."""
    for entry in entries:
        try:
            if not _in_results(entry, folder):
                check_folder(entry.study, entry.scale, entry.dtype, folder)
        except RarefyError as error:
            raise UsageError(f"{entry.place}: {error}") from error


def _in_results(entry: Entry, folder: Path) -> bool:
    """The same spec with at least as many seeds, and all cells."""
    path = folder / f"{entry.stem}.json"
    if not path.exists() or not path.with_suffix(".parquet").exists():
        return False
    described, _ = read_pair(path)
    stored, told = described["spec"], described["attributes"]
    return bool(
        not differences(stored, entry.study, entry.dtype)
        and stored["parameters"]["seeds"] >= entry.study.seeds
        and told["cells"] == told["cells_done"]
    )


def standing(entry: Entry, out: Path, results: Path | None = None) -> Standing:
    """Where a line stands now: only looks."""
    path, cells = out / entry.store_name, len(grid_of(entry.study))
    try:
        if results is not None:
            if _in_results(entry, results):
                return Standing(entry, path, cells, cells, State.WRITTEN)
            check_folder(entry.study, entry.scale, entry.dtype, results)
        store = Store(path, entry.study, entry.scale, entry.dtype)
        done, seconds = int(store.done().sum()), store.wall_seconds()
        if done == cells:  # a run of it would look by itself
            store.check_whole()
    except RarefyError as error:
        return Standing(entry, path, cells, 0, State.REFUSED, in_a_queue(str(error)))
    if done == cells:
        state = State.DONE if results is None else State.UNWRITTEN
    else:
        state = State.PARTLY if done else State.WAITING
    return Standing(entry, path, cells, done, state, seconds=seconds)


def in_a_queue(message: str) -> str:
    """A complaint about a store, without advice that only ``rarefy run`` can follow: a queue that
    replaced stores would begin anew each time it is gone on with."""
    message = message.replace("use --overwrite to run it again", "remove it to run it again")
    return message.replace("use --overwrite or another", "remove that store or use another")


def in_words(standings: Sequence[Standing]) -> str:
    """What is done and what remains, as one sentence."""
    count = Counter(each.state for each in standings)
    total, done = len(standings), sum(each.finished for each in standings)
    if done == total:
        return f"all {total} lines are done" if total > 1 else "the line is done"
    rest = {
        State.UNWRITTEN: "to be written into the results",
        State.PARTLY: "partly done",
        State.WAITING: "waiting",
        State.BUSY: "being run by another process",
        State.REFUSED: "refused",
        State.FAILED: "failed",
    }
    parts = [f"{count[state]} {words}" for state, words in rest.items() if count[state]]
    left = sum(each.cells - each.cells_done for each in standings)
    return f"{done} of {total} lines are done, {', '.join(parts)}; {left} cells remain"
