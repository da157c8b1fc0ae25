"""Gzip files from strangers: a few kilobytes that unpack to gigabytes are refused on the way."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

from rarefy.core.errors import UsageError
from rarefy.data.images.listing import spell_bytes

LEAST, TIMES = 1 << 28, 100
"""What any file may unpack to, and how many times its own size a large one: images and tables of
measurements become 2 to 20 times as large."""


class LimitedGzip(gzip.GzipFile):
    """The content of a file, to be read a piece at a time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._path, self._most = path, _most(path.stat().st_size)

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if self.tell() > self._most:
            raise _suspicious(self._path)
        return found

    read1 = read


def check_zip(path: Path) -> None:
    """The same for the members of a zip file, by what its directory promises: no more is read."""
    with zipfile.ZipFile(path) as held:
        if sum(member.file_size for member in held.infolist()) > _most(path.stat().st_size):
            raise _suspicious(path)


def _most(size: int) -> int:
    return max(LEAST, TIMES * size)


def _suspicious(path: Path) -> UsageError:
    size = path.stat().st_size
    return UsageError(
        f"{path}: unpacks to more than {spell_bytes(_most(size))} from {spell_bytes(size)}, "
        "suspiciously large; if it is meant so, unpack it (of an .npz: save it uncompressed)"
    )
