"""BLAS's symmetric and triangular products, which do half of the work of a general one.

torch has no door to them. scipy's ordinary one (``scipy.linalg.blas``) holds Python's lock while
it computes; the function pointers that it offers to compiled code (``scipy.linalg.cython_blas``)
are called here without it, so that several threads really work at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas

Matrix = NDArray[np.float64]
_LEFT, _LOWER, _PLAIN, _GENERAL = (ctypes.c_char_p(word) for word in (b"L", b"L", b"N", b"N"))


def _pointer(name: str, arguments: int) -> Callable[..., None]:
    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    if signature.count(b"*") != arguments or signature.count(b"int *") not in (4, 5):
        raise ImportError(f"scipy's {name} has the unknown signature {signature!r}")
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return kind(api.PyCapsule_GetPointer(capsule, signature))


_dsyrk = _pointer("dsyrk", 10)
_dtrmm = _pointer("dtrmm", 11)


def add_to_upper(scatter: Matrix, rows: Matrix) -> None:
    """The upper triangle of ``scatter``, (d, d), plus that of rows^T rows, in place."""
    count, width = rows.shape
    _check(scatter, (width, width))
    _check(rows, (count, width))
    # BLAS counts columns first: it sees both matrices transposed, and our upper triangle as lower
    _dsyrk(
        *(_LOWER, _PLAIN, _whole(width), _whole(count)),
        *(_real(1.0), rows.ctypes.data, _whole(width)),
        *(_real(1.0), scatter.ctypes.data, _whole(width)),
    )


def times_upper_in_place(rows: Matrix, upper: Matrix) -> None:
    """``rows`` becomes rows @ triu(upper)."""
    count, width = rows.shape
    _check(upper, (width, width))
    _check(rows, (count, width))
    _dtrmm(
        *(_LEFT, _LOWER, _PLAIN, _GENERAL, _whole(width), _whole(count)),
        *(_real(1.0), upper.ctypes.data, _whole(width), rows.ctypes.data, _whole(width)),
    )


def _check(matrix: Matrix, shape: tuple[int, int]) -> None:
    """A pointer asks no questions."""
    if matrix.shape != shape or matrix.dtype != np.float64 or not matrix.flags.c_contiguous:
        raise ValueError(f"needs a contiguous float64 matrix of shape {shape}")


def _whole(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _real(value: float) -> Any:
    return ctypes.byref(ctypes.c_double(value))
