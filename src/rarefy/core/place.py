"""Where stores and results lie: a folder of this machine, or an address that fsspec knows.

A ``Remote`` is what a ``Path`` is, as far as stores and results need one. An object is written as a
whole or not at all, and is there for good once that is answered; nothing can be renamed. Whatever a
service says when something fails becomes one ``Unreachable``, or the ``OSError`` of a file.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from rarefy.core.errors import RarefyError, UsageError, bad_value, unknown
from rarefy.core.text import one_line

USUAL = ("az", "file", "gs", "memory", "s3")
"""Protocols that a complaint names; fsspec knows more."""
_PROTOCOL = re.compile(r"[A-Za-z][\w+.:-]+")


class Unreachable(OSError):
    """A service did not do what was asked of it: no connection, no right, no such bucket."""

    def __str__(self) -> str:
        return str(self.strerror)


@dataclass(frozen=True, order=True)
class Remote:
    """Something at an address, ``s3://bucket/name``; made by ``as_place``."""

    url: str

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.url}/{name}")

    @property
    def name(self) -> str:
        """Behind the last slash; a bucket has none."""
        return self.url.partition("://")[2].partition("/")[2].rpartition("/")[2]

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def parent(self) -> Remote:
        return Remote(self.url.rpartition("/")[0])

    def with_name(self, name: str) -> Remote:
        return self.parent / name

    def with_suffix(self, suffix: str) -> Remote:
        return self.with_name(self.stem + suffix)

    def exists(self) -> bool:
        return bool(self._info())

    def is_dir(self) -> bool:
        return self._info().get("type") == "directory"

    def is_file(self) -> bool:
        return self._info().get("type") == "file"

    def iterdir(self) -> Iterator[Remote]:
        """What lies directly below it; nothing if it is not there."""
        with contextlib.suppress(FileNotFoundError), _told(self.url):
            service, path = self._service()
            found = sorted(each.rstrip("/") for each in service.ls(path, detail=False))
            # (a file lists itself, and so does an object that stands for a folder)
            yield from (self / each.rpartition("/")[2] for each in found if each != path)

    def glob(self, pattern: str) -> Iterator[Remote]:
        return (each for each in self.iterdir() if fnmatch.fnmatchcase(each.name, pattern))

    def read_bytes(self) -> bytes:
        with _told(self.url):
            service, path = self._service()
            return bytes(service.cat_file(path))

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, content: bytes, new: bool = False, instead_of: str = "") -> None:
        """Put the whole content there. ``new``: FileExistsError if something is there already, of
        services that can tell; ``instead_of`` the same if that is not the ``tag`` of what is."""
        options = {"mode": "create"} if new else {"IfMatch": instead_of} if instead_of else {}
        with _told(self.url):
            service, path = self._service()
            try:
                service.pipe_file(path, content, **options)
            except Exception as error:
                told = failure(error, self.url)
                if not options or getattr(told, "errno", 0) != errno.ENOSYS:
                    raise
                service.pipe_file(path, content)  # (a service that has no conditions)

    def unlink(self, missing_ok: bool = False) -> None:
        with contextlib.suppress(*[FileNotFoundError] * missing_ok), _told(self.url):
            service, path = self._service()
            service.rm_file(path)

    def remove_tree(self) -> None:
        with contextlib.suppress(FileNotFoundError), _told(self.url):
            service, path = self._service()
            service.rm(path, recursive=True)

    def tag(self) -> str:
        """S3's name for the content that is there now; other services have no use for one."""
        return str(self._info().get("ETag", ""))

    def modified(self) -> datetime | None:
        """When it was written, by the clock of the service, if that tells."""
        with _told(self.url):
            service, path = self._service()
            with contextlib.suppress(NotImplementedError):
                found: datetime = service.modified(path)
                return found
        return None

    def _info(self) -> dict[str, Any]:
        with contextlib.suppress(FileNotFoundError), _told(self.url):
            service, path = self._service()
            return dict(service.info(path))
        return {}

    @property
    def options(self) -> dict[str, Any]:
        """For fsspec. (S3's would ask for the size before it reads, to read large files in parts:
        twice the requests, for chunks that are small.)"""
        return {"max_concurrency": 1} if self.url.startswith(("s3:", "s3a:")) else {}

    def _service(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        service, path = url_to_fs(self.url, **self.options)
        service.invalidate_cache()  # of listings: others write too
        return service, path


Place = Path | Remote
AnyPlace = TypeVar("AnyPlace", Path, Remote)


def as_place(where: Place | str, option: str = "out") -> Place:
    """The place that was named: ``protocol://...`` is an address, ``file://`` and all else a path
    (also ``./s3://name`` and ``C:/name``). Refuses what fsspec cannot reach."""
    if isinstance(where, Remote):
        return where
    if not isinstance(where, str | os.PathLike):
        raise bad_value(option, where, "must be a path or an address")
    protocol, found, rest = str(where).partition("://")
    if isinstance(where, Path) or not found or not _PROTOCOL.fullmatch(protocol):
        return Path(where)
    from fsspec.implementations.local import LocalFileSystem

    if protocol in LocalFileSystem.protocol:
        return Path(LocalFileSystem._strip_protocol(where))
    where = where.rstrip("/")
    if ":" in rest.partition("/")[0].rpartition("@")[0]:
        why = "has a password in it; leave it to the environment, or to files of the service"
        raise bad_value(option, f"{protocol}://...", why)
    _check_protocol(protocol, option, where)
    if {*rest.rstrip("/").split("/")} & {"", ".", ".."}:
        raise bad_value(option, where, "has a part without a name")
    return Remote(where)


def _check_protocol(protocol: str, option: str, where: str) -> None:
    from fsspec import get_filesystem_class
    from fsspec.registry import known_implementations

    try:
        get_filesystem_class(protocol)
    except ImportError:
        package = known_implementations[protocol]["class"].partition(".")[0]
        extra = "'rarefy[object-store]'" if package == "s3fs" else package
        why = f"needs the package {package}: pip install {extra}"
        raise bad_value(option, where, why) from None
    except ValueError:
        raise UsageError(f"{option}={where!r}: {unknown('protocol', protocol, USUAL)}") from None


def refuse_address(path: Path, option: str) -> None:
    """For what lies on this machine only: a path that was meant as an address."""
    protocol, found, _ = (path.parts or ("",))[0].partition(":")
    if found and len(protocol) > 1:
        from fsspec import available_protocols

        if protocol in available_protocols():
            why = "only rarefy run, check, report and verify take an address, as text"
            raise bad_value(option, str(path), f"must be a folder or file of this machine; {why}")


@contextlib.contextmanager
def _told(url: str) -> Iterator[None]:
    """All failures as an OSError; of an unknown kind as one that names the address."""
    try:
        yield
    except Exception as error:
        raise failure(error, url) from error


def failure(error: Exception, url: str) -> Exception:
    """What to raise instead of an error that a service or its package has raised."""
    answer = getattr(error.__cause__, "response", None) or {}
    code = answer.get("Error", {}).get("Code") if isinstance(answer, dict) else None
    if code in ("PreconditionFailed", "ConditionalRequestConflict", "412", "409"):
        return FileExistsError(errno.EEXIST, "has changed meanwhile", url)
    known = (FileNotFoundError, FileExistsError, Unreachable, RarefyError)
    if isinstance(error, known) and code != "NoSuchBucket":
        return error
    text = getattr(error, "strerror", None) or str(error)
    reason = one_line(text.strip().partition("\n")[0])[:200] or type(error).__name__
    kind = errno.ENOENT if code == "NoSuchBucket" else errno.EIO
    if isinstance(error, PermissionError) or "Credentials" in type(error).__name__:
        kind = errno.EACCES
    if isinstance(error, NotImplementedError) or code in ("NotImplemented", "501"):
        kind = errno.ENOSYS
    return Unreachable(kind, reason, url)


def user_cache() -> Path:
    """The user's folder for what can be made again; may begin with ``~``."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):  # the XDG rules: a relative one does not count
        return Path(home)
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) if local else Path("~/AppData/Local")
    return Path("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
