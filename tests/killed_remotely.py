"""A run that is killed before a write of its own to a store at an address, and then done again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from toy_study import Toy, only

import rarefy
from rarefy.core.errors import UsageError
from rarefy.core.place import Remote
from rarefy.studies import get_study
from rarefy.studies.api import open_store
from rarefy.sweep import arrays, choices, lease
from rarefy.sweep.checking import check, find_things
from rarefy.sweep.zarr_places import Objects

EARLIER: dict[str, dict[str, Any]] = {
    "new": {},
    "replaced": {"lr": 2.0, "seeds": 1},
    "extended": {"seeds": 1},
}
"""How the store came to be that is there before."""


class Killed(BaseException):
    """The process is gone: nothing that it would still do happens."""


def dying(monkeypatch: pytest.MonkeyPatch, after: int) -> Callable[[], int]:
    """Every change of an object counts, and after so many of them nothing works any more. Gives how
    many there were."""
    count = 0

    def changing(kind: type, name: str) -> None:
        original = getattr(kind, name)

        def changed(self: Any, *arguments: Any, **options: Any) -> Any:
            nonlocal count
            if count >= after:
                raise Killed
            count += 1
            return original(self, *arguments, **options)

        monkeypatch.setattr(kind, name, changed)

    for name in ("write_bytes", "unlink", "remove_tree"):
        changing(Remote, name)
    for name in ("set", "delete", "delete_dir"):
        changing(Objects, name)
    return lambda: count


def kill_and_go_on(
    memory: str, monkeypatch: pytest.MonkeyPatch, how: str, every: int = 1, first: int = 0
) -> int:
    """Kill a run before its write number ``first``, another before ``first + every`` and so on, and
    go on with the same command each time. How many kills there were."""
    only(monkeypatch, Toy)
    monkeypatch.setattr(arrays, "CHUNK_RUNS", 8)
    monkeypatch.setattr(choices, "BATCH_CPU", 8)
    monkeypatch.setattr(lease, "SETTLING", 0.0)

    def run(where: str | None, **options: Any) -> Any:
        return rarefy.run(Toy, scale="tiny", device="cpu", out=where, **options)

    expected = run(None, seeds=2)
    options = {"seeds": 2, "overwrite": how == "replaced"}
    if EARLIER[how]:
        run(f"{memory}/earlier", **EARLIER[how])
    after, kills = first, 0
    while True:
        where = f"{memory}/{after}"
        if EARLIER[how]:
            MemoryFileSystem().copy(f"{memory}/earlier", where, recursive=True)
        with monkeypatch.context() as patch:
            changes = dying(patch, after)
            try:
                run(where, **options)
            except Killed:
                kills += 1
            else:
                assert changes() <= after
                return kills
        with monkeypatch.context() as patch:
            patch.setattr(lease, "_is_alive", lambda pid: False)  # this process is not that one
            _check_what_is_left(where, expected)
            assert run(where, **options).equals(expected), after
        after += every


def _check_what_is_left(where: str, expected: Any) -> None:
    """No store, or one whose finished cells are right."""
    try:
        left = open_store(where)
    except UsageError as error:
        assert str(error) == f"no store at {where}"
        with contextlib.suppress(UsageError):  # too little to be seen as one
            for thing in find_things(where):
                assert "was not finished when it was made" in str(check(thing, get_study))
        return
    if left.study.parameters()["lr"] == 1.0:
        found = left.read()["end"]
        there = expected["end"].sel(seed=found["seed"])
        assert ((found == there) | found.isnull()).all()
        assert int(found.notnull().sum()) == int(left.done().sum())
