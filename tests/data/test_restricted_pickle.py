"""The restricted unpickler: reads what CIFAR files hold, runs nothing, refuses everything else."""

from __future__ import annotations

import builtins
import io
import os
import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarefy.core.errors import UsageError
from rarefy.data.restricted_pickle import as_texts, load_entries


def _load(content: bytes) -> dict[str, Any]:
    return load_entries(io.BytesIO(content), "some/file")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_and_plain_values_come_through(protocol: int, order: Any) -> None:
    data = np.asarray(np.arange(24, dtype=np.uint8).reshape(4, 6), order=order)
    whole = {b"data": data, "labels": [1, 2], b"names": [b"x", "y"], "more": ({"a": 1.5}, None)}
    found = _load(pickle.dumps(whole, protocol=protocol))
    assert np.array_equal(found["data"], data) and found["data"].dtype == np.uint8
    assert found["labels"] == [1, 2] and found["more"] == ({"a": 1.5}, None)
    assert as_texts(found["names"], "here") == ("x", "y")


def test_a_pickle_of_python_2_is_read() -> None:
    """As Python 2 with numpy 1 wrote the official files: str is bytes, opcodes of protocol 2."""
    written = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x02K\x03\x86cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01"
        b"\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89U\x06abcdef"
        b"tbU\x06labelsq\x08]q\x09(K\x06K\x09eu."
    )
    found = _load(written)
    assert found["data"].tolist() == [[97, 98, 99], [100, 101, 102]]
    assert found["labels"] == [6, 9]
    genuine = pickle.loads(written, encoding="bytes")
    assert np.array_equal(found["data"], genuine[b"data"])


class Evil:
    def __init__(self, *call: Any) -> None:
        self.call = call

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("inside", [True, False])
def test_nothing_is_ever_run(tmp_path: Path, protocol: int, inside: bool) -> None:
    mark = tmp_path / "run"
    calls: list[tuple[Any, tuple[Any, ...], str]] = [
        (os.system, (f"touch {mark}",), f"{os.system.__module__}.system"),
        (builtins.eval, (f"open({str(mark)!r}, 'w')",), "eval"),
        (builtins.exec, (f"open({str(mark)!r}, 'w')",), "exec"),
        (subprocess.Popen, (["touch", str(mark)],), "Popen"),
        (builtins.getattr, ("text", "upper"), "getattr"),
        (np.load, (str(mark),), "load"),
        (np.ones, (3,), "ones"),
        (np.dtype(np.int64).type, (3,), "numpy"),
    ]
    for function, arguments, named in calls:
        evil = Evil(function, arguments)
        content = pickle.dumps({b"data": evil} if inside else evil, protocol=protocol)
        with pytest.raises(UsageError, match="refused, the pickle") as caught:
            _load(content)
        assert named in str(caught.value) and str(caught.value).startswith("some/file: ")
        assert "\n" not in str(caught.value)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("written", "words"),
    [
        # dots in a name (protocol 4) must not reach into what is allowed
        (b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93.", "numpy.dtype.__init__"),
        (b"\x80\x02cnumpy\nndarray\n(tR.", "wants to call ndarray"),
        # setting attributes of a stand-in
        (b"\x80\x02c_codecs\nencode\n}U\x01aK\x01sb.", "change a function"),
        (b"\x80\x02c_codecs\nencode\nN}U\x09__class__K\x01s\x86b.", "change a function"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x04\x00\x00\x00utf8\x86R.", "latin1"),
        (b"\x80\x02c_codecs\nencode\nK\x01K\x02\x86R.", "latin1"),
        (b"\x80\x02c__builtin__\nbytes\nJ\xff\xff\xff\x7f\x85R.", "bytes of something else"),
        (b"Psome id\n.", "outside itself"),
        (b"\x80\x02K\x01Q.", "outside itself"),
        (b"\x80\x02]q\x00.", "holds a list, not a dictionary"),
        (b"\x80\x02}K\x01K\x02s.", "int where a name belongs"),
    ],
)
def test_tricks_are_refused(written: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        _load(written)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.arange(3), "'i8'"),
        (np.array([{}], dtype=object), "'O8'"),
        (np.zeros(2, dtype=[("a", "u1")]), "'V1'"),
    ],
)
def test_only_arrays_of_bytes_are_built(value: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"array of {words}"):
        _load(pickle.dumps({"data": value}, protocol=2))


def test_an_array_whose_parts_differ_is_refused() -> None:
    content = pickle.dumps({"data": np.zeros((2, 3), dtype=np.uint8)}, protocol=2)
    with pytest.raises(UsageError, match="shape and content differ"):
        _load(content.replace(b"K\x02K\x03\x86", b"K\x02K\x09\x86"))


def test_every_truncation_is_one_line() -> None:
    whole = {b"data": np.arange(40, dtype=np.uint8).reshape(4, 10), b"labels": [1, 2, 3, 4]}
    content = pickle.dumps(whole, protocol=2)
    for length in range(len(content)):
        with pytest.raises(UsageError, match="^some/file: [^\n]*$"):
            _load(content[:length])


@given(st.binary(max_size=60))
def test_noise_is_a_dictionary_or_one_line(noise: bytes) -> None:
    for start in (b"", b"\x80\x02", b"\x80\x04"):
        try:
            assert isinstance(_load(start + noise), dict)
        except UsageError as error:
            assert "\n" not in str(error)


def test_names_must_be_names() -> None:
    with pytest.raises(UsageError, match="here: must be a list"):
        as_texts("abc", "here")
    with pytest.raises(UsageError, match="here: has a int"):
        as_texts([1], "here")
