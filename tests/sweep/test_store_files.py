"""Files of a store as Zarr reads and writes them, and that the disk has them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from zarr.abc.store import RangeByteRequest
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from rarefy.sweep import chunks, zarr_places
from rarefy.sweep.zarr_places import SMALL, Files

KIND = default_buffer_prototype()


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("size", [0, 3, SMALL, SMALL + 1])
def test_small_and_large_files_are_those_of_zarr(
    size: int, at_once: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zarr_places, "HAS_SYNC", at_once and zarr_places.HAS_SYNC)
    content = os.urandom(size)

    async def used() -> None:
        ours, theirs = Files(tmp_path), LocalStore(tmp_path, read_only=True)
        assert await ours.get("a/b", KIND) is None
        for written in (b"before", content):  # the second in its place
            await ours.set("a/b", KIND.buffer.from_bytes(written))
        for store in (ours, theirs, ours.with_read_only(True)):
            for part in (None, RangeByteRequest(1, 3)):
                found = await store.get("a/b", KIND, part)
                assert found is not None
                assert found.to_bytes() == (content if part is None else content[1:3])
        with pytest.raises(ValueError, match="read-only"):
            await ours.with_read_only(True).set("a/b", KIND.buffer.from_bytes(b""))

    asyncio.run(used())
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["b"]  # nothing half written


def test_a_process_that_was_forked_flushes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The threads that wait for the disk stay behind in the first one."""
    flushed: list[Path] = []
    monkeypatch.setattr(chunks, "flush", flushed.append)
    pools = []
    for process in (1, 1, 2):
        monkeypatch.setattr(os, "getpid", lambda process=process: process)
        chunks.flush_all([tmp_path, tmp_path / "a"])
        pools.append(chunks._flushers(process))
    assert sorted(flushed) == [tmp_path] * 3 + [tmp_path / "a"] * 3
    assert pools[0] is pools[1] is not pools[2]
