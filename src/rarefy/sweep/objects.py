"""How Zarr reaches a place: files of this machine as ever, objects at an address by fsspec."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore

from rarefy.core.place import Place, failure


def no_guard() -> None:
    """Anybody may write."""


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


def for_zarr(path: Place, guard: Callable[[], None] = no_guard) -> Path | Objects:
    """What Zarr opens."""
    if isinstance(path, Path):
        return path
    found = Objects.from_url(path.url, path.options)
    assert isinstance(found, Objects)
    found.guard = guard
    return found
