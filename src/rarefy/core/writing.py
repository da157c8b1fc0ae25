"""Files that rarefy writes: whole or not there, and never in the place of somebody else's.

Verbs write what a person keeps by ``write_output``. It records name, hash and command beside the
file, in the folder ``.rarefy``. Only what is recorded there is ever replaced or removed.
``check_output`` says before the work what would be in the way after it. (Committed results and the
ledger are their own record.)
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rarefy.core.errors import RarefyError, RunError, bad_value
from rarefy.core.place import Place, Remote, refuse_address

RECORDS = ".rarefy"
"""Folder beside the outputs, with a small JSON file for each of them."""
LEFT_SECONDS = 60.0
"""Whatever is half-written for so long by a process that is gone was left by it."""
MOST_PARTS = 200
"""Folders above an output: more are one name after another by mistake."""
Content = bytes | str | Callable[[Path], object]
"""A file's content, or what writes it under the name that it is given."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to. When the block ends well the file takes its place, for
    good: a kill or a power cut leaves the old content or the new one. Else nothing has happened."""
    # (several processes may write the same file: each its own, the last one stays)
    partial = _partial(path)
    try:
        yield partial
        flush(partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)


@contextlib.contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside ``path`` to write into. When the block ends well it gets that name, at
    once with all that is in it; else nothing has happened. What is at ``path`` stays."""
    partial = _partial(path)
    try:
        with naming(path):
            partial.mkdir()
            yield partial
            flush(partial)
            if os.path.lexists(path):  # (a rename would take the place of an empty folder)
                raise RunError(f"cannot write {path}: it has come into being meanwhile")
            os.rename(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    flush(path.parent)


def _partial(path: Path) -> Path:
    """A name of this process beside ``path``. What killed ones have left there goes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        with contextlib.suppress(OSError, ValueError):
            # (other machines may write here too: what they are at is young)
            written = max(each.lstat().st_mtime for each in (left, *left.rglob("*")))
            if written < time.time() - LEFT_SECONDS and not runs(int(left.suffixes[-2][1:])):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def runs(process: int) -> bool:
    """Whether there is a process of this number on this machine."""
    if os.name == "nt":  # (there, asking ends it)
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def remove_folder(path: Path) -> None:
    """Remove a folder: at once out of sight, then file by file. Links in it are not followed."""
    gone = path.with_name(f".{path.name}.{os.getpid()}.partial")
    os.rename(path, gone)
    shutil.rmtree(gone)


def write_whole(path: Place, content: Content) -> None:
    """Put ``content`` in the place of whatever is at ``path``: for files that are ours alone."""
    with naming(path):
        if isinstance(path, Remote):
            assert not callable(content)
            return path.write_bytes(content.encode() if isinstance(content, str) else content)
        with replacing(path) as partial:
            _write(partial, content)


def write_output(path: Path, content: Content, of: str = "", overwrite: bool = False) -> None:
    """Write a file that a person keeps. What rarefy did not write stays, and what was changed
    since too, unless ``overwrite``. ``of``: what it is made of, for ``check_output``."""
    there, known = os.path.lexists(path), record_of(path) or {}
    if there and not (is_intact(path) or (overwrite and known)):
        raise RunError(f"cannot write {path}: it is there, and not as rarefy wrote it")
    with naming(path), replacing(path) as partial:
        _write(partial, content)
        # first the record, then the file: killed in between, either file is known as ours
        # (two of them when another process does the same at this moment)
        before = [known.get("hash"), file_hash(path) if there else None]
        _record(path, {"hash": file_hash(partial), "before": before, "of": of})


def check_output(
    path: Path,
    of: str = "",
    inputs: Iterable[Path | str] = (),
    overwrite: bool | None = None,
    option: str = "out",
) -> None:
    """Before any work: refuse a path that ``write_output`` could not write to, or should not. The
    complaint names what is in the way and what to pass instead. ``overwrite``: None where a verb
    has no such option."""
    name = f"--{option.replace('_', '-')}"
    check_place(path, option, replaced=True)
    refuse_input(path, inputs, option)
    if not os.path.lexists(path):
        return
    if path.is_dir():
        raise bad_value(option, str(path), "is a folder; name a file")
    record, remedy = record_of(path), f"move it away, or name another {name}"
    if record is None:
        why = "is there, and rarefy has no record of writing it (the first versions kept none)"
        raise bad_value(option, str(path), f"{why}; {remedy}")
    if overwrite:
        return
    if overwrite is not None:
        remedy = f"pass --overwrite to replace it, or name another {name}"
    if not is_intact(path):
        raise bad_value(option, str(path), f"was changed after rarefy wrote it; {remedy}")
    if record.get("of", "") != of:
        by = record.get("command") or "another command"
        raise bad_value(option, str(path), f"was written by: {by}; {remedy}")


def refuse_input(path: Path, inputs: Iterable[Path | str], option: str = "out") -> None:
    """What a call reads it neither replaces nor removes, whoever wrote it."""
    for source in inputs:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            name = f"--{option.replace('_', '-')}"
            raise bad_value(option, str(path), f"is what is read; name another {name}")


@dataclass(frozen=True)
class OutputFolder:
    """A folder into which one command writes several files; ``of``: what they are made of."""

    path: Path
    of: str = ""
    overwrite: bool = False

    def write(self, path: Path, content: Content) -> None:
        write_output(path, content, self.of, self.overwrite)

    def check(
        self,
        names: Iterable[str],
        inputs: Iterable[Path | str] = (),
        option: str = "out",
        removed: Iterable[str] = (),
    ) -> None:
        """Before any work, as ``check_output``; ``removed``: names of what may be removed."""
        refuse_address(self.path, option)
        if self.path.exists() and not self.path.is_dir():
            raise bad_value(option, str(self.path), "is a file; name a folder")
        inputs = tuple(inputs)
        for name in removed:
            refuse_input(self.path / name, inputs, option)
        for name in names:
            check_output(self.path / name, self.of, inputs, self.overwrite, option)


def check_place(path: Path, option: str = "out", replaced: bool = False) -> None:
    """Refuse what cannot be made, or replaced: no name, a file above it, or a folder into which
    nothing can be written."""
    check_name(path, option)
    refuse_address(path, option)
    if len(path.parts) > MOST_PARTS or max(len(os.fsencode(part)) for part in path.parts) > 255:
        raise bad_value(option, f"{str(path)[:60]}...", "is too long for a name")
    above = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not above.is_dir():
        raise bad_value(option, str(path), f"{above} is a file, not a folder")
    if (replaced or not os.path.lexists(path)) and not os.access(above, os.W_OK | os.X_OK):
        raise bad_value(option, str(path), f"nothing can be written into {above}")


def check_name(path: Place, option: str = "out") -> None:
    """Refuse what has none of its own, or a very long one."""
    if path.name in ("", ".."):
        raise bad_value(option, str(path), "has no name of its own; name something inside it")
    if len(os.fsencode(path.name)) > 200:  # (names beside it are longer; most systems take 255)
        raise bad_value(option, f"{str(path)[:60]}...", "is too long for a name")


def remove_output(path: Path) -> None:
    """Remove an earlier output that no longer fits what is written beside it. What somebody else
    wrote, or has changed since, stays."""
    if record_of(path) is not None and is_intact(path):
        path.unlink()
        _record_path(path).unlink(missing_ok=True)


def record_of(path: Path) -> dict[str, Any] | None:
    """What is recorded of an output; None where nothing is."""
    try:
        record = json.loads(_record_path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and record.get("name") == path.name else None


def is_intact(path: Path) -> bool:
    """Whether a recorded output is as it was written."""
    record = record_of(path) or {}
    return path.is_file() and file_hash(path) in [record.get("hash"), *record.get("before", [])]


def file_hash(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def command() -> str:
    """What was typed; a script by its name."""
    path = Path(sys.argv[0] if sys.argv else "")
    program = path.parent.name if path.name == "__main__.py" else path.name  # (python -m program)
    return shlex.join(["rarefy", *sys.argv[1:]]) if program == "rarefy" else program


def _record_path(path: Path) -> Path:
    return path.parent / RECORDS / f"{path.name}.json"


def _record(path: Path, about: dict[str, Any]) -> None:
    text = json.dumps({"name": path.name, "command": command(), **about}, indent=1)
    with replacing(_record_path(path)) as partial:
        partial.write_text(text + "\n", "utf-8")


def _write(path: Path, content: Content) -> None:
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def reserve(path: Path, size: int) -> None:
    """Make a file as long as ``size`` bytes, with room for them on the disk: where there is none, a
    process that writes to a map of the file is ended."""
    with naming(path), path.open("ab") as file:
        file.truncate(size)
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), 0, size)


@contextlib.contextmanager
def naming(path: Place) -> Iterator[None]:
    """What fails to be written is one error that names the file and the reason."""
    try:
        yield
    except RarefyError:
        raise
    except (OSError, RuntimeError) as error:
        # (PyTorch reports a full disk as a RuntimeError of its own, raised out of the real one)
        reasons = (getattr(raised, "strerror", None) for raised in (error, error.__context__))
        reason = next(filter(None, reasons), str(error).strip().partition("\n")[0])
        raise RunError(f"cannot write {path}: {reason}") from error


def flush(path: Path) -> None:
    """Wait until the disk has it; a folder holds the names of its files."""
    if os.name == "nt":  # it opens no folders, and flushes nothing that is open for reading
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():  # some file systems cannot flush a folder
            raise
    finally:
        os.close(handle)
