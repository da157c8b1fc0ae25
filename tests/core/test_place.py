"""Paths and addresses: which is which, and that an address behaves as a path does."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from rarefy.core.errors import UsageError
from rarefy.core.place import Remote, Unreachable, as_place, failure, refuse_address


@pytest.mark.parametrize(
    "text",
    ["runs/x", "/tmp/x", "./s3://x", "/tmp/s3://x", "C:/x", "C:\\x", "C://x", "a b://x", "://x"],
)
def test_all_that_begins_without_a_protocol_is_a_path(text: str) -> None:
    assert as_place(text) == Path(text)


def test_file_addresses_are_paths() -> None:
    assert as_place("file:///tmp/x") == as_place("local:///tmp/x") == Path("/tmp/x")


def test_what_is_a_place_already_stays() -> None:
    for place in (Path("x"), Remote("memory://a/b")):
        assert as_place(place) is place or as_place(place) == place


def test_parts_of_an_address() -> None:
    place = as_place("memory://a/b/c.tar.json/")
    assert str(place) == "memory://a/b/c.tar.json"
    assert (place.name, place.stem, place.suffix) == ("c.tar.json", "c.tar", ".json")
    assert place.parent / "d" == place.with_name("d") == Remote("memory://a/b/d")
    assert place.with_suffix(".pt").name == "c.tar.pt"
    assert Remote("memory://a").name == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("foo://x/y", "unknown protocol 'foo' (known: az, file, gs, memory, s3)"),
        ("memry://x/y", "unknown protocol 'memry'; did you mean 'memory'?"),
        ("simplecache::s3://x/y", "unknown protocol 'simplecache::s3'"),
        ("memory://x//y", "has a part without a name"),
        ("memory://x/../y", "has a part without a name"),
        ("memory://", "has a part without a name"),
        ("s3://key:PASSWORD@bucket/y", "out='s3://...': has a password in it"),
    ],
)
def test_what_no_address_can_be(text: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        as_place(text)
    assert said in str(told.value)
    assert str(told.value).startswith("out=")
    assert "PASSWORD" not in str(told.value)


@pytest.mark.parametrize(
    ("address", "package", "install"),
    [
        ("s3://b/x", "s3fs", "pip install 'rarefy[object-store]'"),
        ("gs://b/x", "gcsfs", "pip install gcsfs"),
        ("az://b/x", "adlfs", "pip install adlfs"),
    ],
)
def test_a_package_that_is_missing_is_named(
    address: str, package: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(sys.modules["fsspec.registry"], "registry", {})  # of what was imported
    with pytest.raises(UsageError) as told:
        as_place(address, "results")
    assert str(told.value) == f"results={address!r}: needs the package {package}: {install}"


def test_a_path_that_was_meant_as_an_address_is_refused() -> None:
    with pytest.raises(UsageError, match="save='s3:/b/x': must be a folder or file of this mach"):
        refuse_address(Path("s3://b/x"), "save")
    for fine in ("x:/y", "nothing:/y", ".", "/s3:/x"):
        refuse_address(Path(fine), "save")


@pytest.mark.parametrize("where", ["memory", "s3"])
def test_an_address_does_what_a_path_does(where: str, request: pytest.FixtureRequest) -> None:
    top = as_place(f"{request.getfixturevalue(where)}/top")
    assert isinstance(top, Remote)
    assert not top.exists()
    assert list(top.iterdir()) == list(top.glob("*")) == []
    with pytest.raises(FileNotFoundError):
        (top / "a").read_bytes()
    (top / "a").write_bytes(b"1")
    (top / "top" / "b.json").write_bytes(b"{}")
    assert top.is_dir()
    assert (top / "a").is_file()
    assert not (top / "a").is_dir()
    assert [each.name for each in top.iterdir()] == ["a", "top"]
    assert list((top / "top").glob("*.json")) == [top / "top" / "b.json"]
    assert list((top / "a").iterdir()) == []
    with pytest.raises(FileExistsError):
        (top / "a").write_bytes(b"2", new=True)
    assert (top / "a").read_text() == "1"
    assert (top / "a").modified() is not None
    (top / "a").unlink()
    (top / "a").unlink(missing_ok=True)
    (top.with_name("topper") / "c").write_bytes(b"")
    top.remove_tree()
    top.remove_tree()
    assert not top.exists()
    assert (top.with_name("topper") / "c").exists()


def test_an_object_that_has_changed_is_not_replaced(s3: str) -> None:
    place = Remote(f"{s3}/x")
    place.write_bytes(b"1")
    tag = place.tag()
    place.write_bytes(b"2", instead_of=tag)
    with pytest.raises(FileExistsError):
        place.write_bytes(b"3", instead_of=tag)
    assert place.read_bytes() == b"2"


def test_a_service_without_conditions_is_written_to_all_the_same(
    memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = MemoryFileSystem.pipe_file

    def refusing(self: Any, path: str, value: bytes, **options: Any) -> None:
        if options:
            error = RuntimeError("501")
            error.response = {"Error": {"Code": "NotImplemented"}}  # type: ignore[attr-defined]
            raise OSError("not known") from error
        original(self, path, value)

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refusing)
    place = Remote(f"{memory}/x")
    place.write_bytes(b"1", new=True)
    place.write_bytes(b"2", instead_of="tag")
    assert place.read_bytes() == b"2"


def test_what_can_only_be_read_says_so(memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*arguments: Any, **options: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", read_only)
    for new in (False, True):
        with pytest.raises(Unreachable, match="NotImplementedError"):
            Remote(f"{memory}/x").write_bytes(b"", new)


def test_failures_are_one_line_of_one_kind() -> None:
    told = failure(RuntimeError("no\x1b route\nto host"), "s3://b/x")
    assert isinstance(told, Unreachable)
    assert (str(told), told.filename, told.errno) == ("no\\x1b route", "s3://b/x", errno.EIO)
    assert str(failure(RuntimeError(), "s3://b/x")) == "RuntimeError"
    missing = FileNotFoundError("x")
    assert failure(missing, "s3://b/x") is missing
