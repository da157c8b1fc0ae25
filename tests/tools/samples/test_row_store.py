"""Rows in memory and on disk, and what is found there again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rarefy.core.errors import RunError, UsageError
from rarefy.tools.samples.row_store import RowStore, memory_limit


def test_in_memory() -> None:
    store = RowStore((3, 2), np.float32, None, {})
    store.rows[:] = 1
    store.advance(3)
    assert store.finished().tolist() == [[1, 1]] * 3
    store.discard()
    assert memory_limit() > 0


def test_on_disk_and_gone_on(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "place"
    store = RowStore((3, 2), np.float32, folder, {"data": "a"})
    store.rows[:2] = 7
    store.done = 2
    store.flush()
    found = RowStore((3, 2), np.float32, folder, {"data": "a"})
    assert found.done == 2
    assert found.rows[:2].tolist() == [[7, 7]] * 2
    found.rows[2] = 8
    found.advance(3)
    rows = found.finished()
    assert rows[2].tolist() == [8, 8]
    assert json.loads((folder / "features.json").read_text())["done"] == 3
    found.discard()
    assert list(folder.iterdir()) == []


def test_what_is_refused(tmp_path: Path) -> None:
    RowStore((3, 2), np.float32, tmp_path, {"data": "a"})
    with pytest.raises(
        UsageError, match=r"was made from another data \(a, now b\); choose another"
    ):
        RowStore((3, 2), np.float32, tmp_path, {"data": "b"})
    with pytest.raises(UsageError, match=r"was made from another shape \(\[3, 2\], now \[4, 2\]\)"):
        RowStore((4, 2), np.float32, tmp_path, {"data": "a"})
    (tmp_path / "features.npy").unlink()
    with pytest.raises(UsageError, match="features.npy: is missing; remove features.json to start"):
        RowStore((3, 2), np.float32, tmp_path, {"data": "a"})
    (tmp_path / "features.json").write_text("{")
    with pytest.raises(UsageError, match="features.json: damaged; remove it, and features.npy"):
        RowStore((3, 2), np.float32, tmp_path, {"data": "a"})
    with pytest.raises(UsageError, match="features of 3 samples would take 24 bytes of memory, 23"):
        RowStore((3, 2), np.float32, None, {}, limit=23)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write .*features.npy: "):
        RowStore((3, 2), np.float32, tmp_path / "file", {})
