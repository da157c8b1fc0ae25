"""Pickles from strangers: plain containers, text, numbers and byte arrays, and nothing else.

A pickle names functions and classes to call. CIFAR files need three of numpy and, where Python 3
wrote them, two that make bytes. Each of these is played here by a stand-in that only keeps what it
is given, so that no code runs for the file's sake, not even numpy's; arrays are built at the end,
from checked parts.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from rarefy.core.errors import UsageError


class _Refused(Exception):
    """What the file asks for is not allowed; the text says what."""


class _StandIn:
    """Called in place of a named function. No attributes: a pickle may try to set some."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        raise _Refused(f"wants to call {type(self).__name__.strip('_').lower()}")

    def __setstate__(self, state: object) -> NoReturn:
        raise _Refused("wants to change a function")


class _NdArray(_StandIn):
    """Stands for the class ``numpy.ndarray``, which is only passed on to ``_reconstruct``."""

    __slots__ = ()


class _Reconstruct(_StandIn):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        return _Array()


class _DType(_StandIn):
    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        return _Kind(_text(arguments[0]) if arguments else "")


class _Encode(_StandIn):
    """Bytes in pickles that Python 3 wrote for Python 2: text that is encoded on reading."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        if len(arguments) == 2 and isinstance(arguments[0], str):
            if _text(arguments[1]) in ("latin1", "latin-1"):
                return arguments[0].encode("latin-1")
        raise _Refused("wants an encoding other than latin1")


class _Bytes(_StandIn):
    """Empty bytes, in those same pickles."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> Any:
        if arguments:
            raise _Refused("wants to make bytes of something else")
        return b""


class _Kind:
    """The element type of an array. Its state (byte order, alignment) says nothing of bytes."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __setstate__(self, state: object) -> None:
        pass


class _Array:
    """An array's parts: shape, kind, order and bytes."""

    __slots__ = ("state",)

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def parts(self) -> tuple[Any, ...]:
        state = getattr(self, "state", None)
        if not isinstance(state, tuple) or len(state) != 5:
            raise _Refused("holds an array without content")
        return state

    def bytes_array(self) -> NDArray[np.uint8]:
        _, shape, kind, fortran, content = self.parts()
        if not isinstance(kind, _Kind) or kind.name not in ("u1", "uint8", "B"):
            name = kind.name if isinstance(kind, _Kind) else "unknown type"
            raise _Refused(f"holds an array of {name[:20]!r} (only bytes, 'u1', are read)")
        if not (
            isinstance(content, bytes)
            and isinstance(shape, tuple)
            and all(type(side) is int and side >= 0 for side in shape)
            and math.prod(shape) == len(content)
        ):
            raise _Refused("holds an array whose shape and content differ")
        flat = np.frombuffer(content, dtype=np.uint8)
        return flat.reshape(shape, order="F" if fortran else "C")


STAND_INS: dict[tuple[str, str], _StandIn] = {
    ("numpy.core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy._core.multiarray", "_reconstruct"): _Reconstruct(),
    ("numpy", "ndarray"): _NdArray(),
    ("numpy", "dtype"): _DType(),
    ("_codecs", "encode"): _Encode(),
    ("__builtin__", "bytes"): _Bytes(),
}
"""All that a file may name."""


class _Unpickler(pickle._Unpickler):
    """In Python, not in C, because only so it shows what it has memorised."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]

    def once(self) -> None:
        """Names may come again, containers not: lists of two lists of two lists ... take a few
        bytes each, and to look at all of them takes for ever."""
        if isinstance(self.stack[-1], list | tuple | dict | set | frozenset):
            raise _Refused("holds one list several times")

    def find_class(self, module: str, name: str) -> Any:
        try:
            return STAND_INS[module, name]
        except KeyError:
            raise _Refused(f"names {module}.{name}, which plain data do not need") from None

    def persistent_load(self, identity: object) -> NoReturn:
        raise _Refused("refers to objects outside itself")


def _then_checked(load: Callable[[_Unpickler], None]) -> Callable[[_Unpickler], None]:
    def checked(unpickler: _Unpickler) -> None:
        load(unpickler)
        unpickler.once()

    return checked


for _recalling in (pickle.GET, pickle.BINGET, pickle.LONG_BINGET, pickle.DUP):
    _Unpickler.dispatch[_recalling[0]] = _then_checked(_Unpickler.dispatch[_recalling[0]])


def load_entries(stream: BinaryIO, where: str) -> dict[str, Any]:
    """The dictionary in a pickle, of Python 2 or 3, its keys as text. ``where`` names it in errors.

    Values may be lists, tuples, numbers, text, bytes, and byte arrays (only as values of the
    dictionary itself; read-only).
    """
    with _one_line(where):
        found = _load(stream)
        if not isinstance(found, dict):
            raise _Refused(f"holds a {type(found).__name__}, not a dictionary")
        return {
            _text(key): value.bytes_array() if isinstance(value, _Array) else value
            for key, value in found.items()
        }


def _load(stream: BinaryIO) -> Any:
    # Python 2 had no text of its own: what it calls str is bytes
    return _Unpickler(stream, encoding="bytes").load()


@contextmanager
def _one_line(where: str) -> Iterator[None]:
    try:
        yield
    except _Refused as error:
        raise UsageError(f"{where}: refused, the pickle {error}") from None
    except (EOFError, OSError) as error:
        raise UsageError(f"{where}: truncated or unreadable ({error})") from None
    except Exception as error:  # any other way in which bytes can fail to be a pickle
        reason = str(error) or type(error).__name__
        raise UsageError(f"{where}: not a readable pickle ({reason[:80]})") from None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    raise _Refused(f"has a {type(value).__name__} where a name belongs")


def as_texts(values: object, where: str) -> tuple[str, ...]:
    """A list of names, each bytes or text."""
    if not isinstance(values, list | tuple):
        raise UsageError(f"{where}: must be a list of names, not {type(values).__name__}")
    try:
        return tuple(_text(value) for value in values)
    except _Refused as error:
        raise UsageError(f"{where}: {error}") from None
