"""File names in .npz files of strangers: text arrays, and pickled lists of text, nothing else.

An array of Python objects is a pickle, which can name any function to call. The ImageNet files of
published scores keep their file names so. Here a pickle may name only what makes an array, each
played by a stand-in that keeps what it is given, so that no code runs for the file's sake.
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rarefy.core.errors import UsageError

MAKERS = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}
"""All that such a pickle needs to name."""


class _Refused(Exception):
    """The text says what the file asks for that it must not."""


class _Kept:
    """Stands for an array or its type: keeps what it was to be made from."""

    __slots__ = ("state",)

    def __init__(self, *_: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class _Maker:
    """Stands for a named function or class."""

    __slots__ = ()

    def __call__(self, *arguments: object) -> _Kept:
        return _Kept(*arguments)

    def __setstate__(self, state: object) -> NoReturn:
        raise _Refused("wants to change a function")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in MAKERS:
            raise _Refused(f"names {module}.{name}")
        return _Maker()

    def persistent_load(self, identity: object) -> NoReturn:
        raise _Refused("refers to objects outside itself")


def names_in(path: str | Path, key: str) -> tuple[str, ...]:
    """The array of names ``key`` in an .npz file."""
    where = f"{path}: {key}"
    try:
        with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as stream:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(stream)
            if len(shape) != 1:
                raise UsageError(f"{where}: must be one name a sample, not of shape {shape}")
            if dtype.kind in "SU":
                content = stream.read(shape[0] * dtype.itemsize)
                return _texts(np.frombuffer(content, dtype=dtype, count=shape[0]).tolist())
            if dtype.kind != "O":
                raise UsageError(f"{where}: must be names, not {dtype}")
            held = _Unpickler(stream, encoding="bytes").load()
        return _texts(_listed(held, shape[0]))
    except UsageError:
        raise
    except _Refused as error:
        raise UsageError(f"{where}: refused, the pickle {error}") from None
    except Exception as error:  # any way in which bytes can fail to be such a file
        reason = str(error) or type(error).__name__
        raise UsageError(f"{where}: damaged ({reason[:80]})") from None


def _listed(held: object, count: int) -> list[object]:
    """numpy keeps an array of objects as (version, shape, type, order, list)."""
    state = held.state if isinstance(held, _Kept) else None
    if not isinstance(state, tuple) or len(state) != 5 or not isinstance(state[4], list):
        raise _Refused("holds no list of names")
    if len(state[4]) != count:
        raise _Refused(f"holds {len(state[4])} names where {count} are announced")
    return state[4]


def _texts(values: list[object]) -> tuple[str, ...]:
    texts = []
    for value in values:
        if isinstance(value, bytes):
            texts.append(value.decode("utf-8", "surrogateescape"))
        elif isinstance(value, str):
            texts.append(value)
        else:
            raise _Refused(f"has a {type(value).__name__} where a name belongs")
    return tuple(texts)
