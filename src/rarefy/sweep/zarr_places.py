"""How Zarr reaches a place: files of this machine, or objects at an address by fsspec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore

from rarefy.core.place import Place, failure

SMALL = 1 << 16
"""Bytes of a file that is read or written before a thread has begun to."""
HAS_SYNC = hasattr(LocalStore, "set_sync")
"""Whether this Zarr can do without threads (3.1.6 can)."""


def no_guard() -> None:
    """Anybody may write."""


class Files(LocalStore):
    """Small ones are read and written without a thread for each."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        if HAS_SYNC and self._small(key):
            return self.get_sync(key, prototype=prototype, byte_range=byte_range)
        return await super().get(key, prototype, byte_range)

    async def set(self, key: str, value: Buffer) -> None:
        if HAS_SYNC and len(value) <= SMALL:
            return self.set_sync(key, value)
        return await super().set(key, value)

    def _small(self, key: str) -> bool:
        try:
            return (self.root / key).stat().st_size <= SMALL
        except OSError:
            return True  # there is nothing to read


class Objects(FsspecStore):
    """Says what failed in one line, and asks ``guard`` before it changes anything: who has lost the
    lease of a store must not go on in the middle of a batch."""

    guard: Callable[[], None] = staticmethod(no_guard)

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        return await self._told(super().get(key, prototype, byte_range))

    async def set(self, key: str, value: Buffer, byte_range: tuple[int, int] | None = None) -> None:
        self.guard()
        await self._told(super().set(key, value, byte_range))

    async def delete(self, key: str) -> None:
        self.guard()
        await self._told(super().delete(key))

    async def delete_dir(self, prefix: str) -> None:
        self.guard()
        await self._told(super().delete_dir(prefix))

    async def _told(self, doing: Any) -> Any:
        try:
            return await doing
        except Exception as error:
            raise failure(error, self.path) from error


def for_zarr(path: Place, guard: Callable[[], None] = no_guard) -> Files | Objects:
    """What Zarr opens."""
    if isinstance(path, Path):
        return Files(path)
    found = Objects.from_url(path.url, path.options)
    assert isinstance(found, Objects)
    found.guard = guard
    return found
