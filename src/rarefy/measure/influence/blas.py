"""BLAS's symmetric and triangular products, which do half of the work of a general one, and
LAPACK's factorisation in place.

torch has no door to them. scipy's ordinary ones (``scipy.linalg.blas``, ``lapack``) hold Python's
lock while they compute; the function pointers that it offers to compiled code (``cython_blas``,
``cython_lapack``) are called here without it, so that several threads really work at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

Matrix = NDArray[np.float64] | NDArray[np.float32]
_LEFT, _LOWER, _PLAIN, _GENERAL = (ctypes.c_char_p(word) for word in (b"L", b"L", b"N", b"N"))


def _pointer(module: Any, name: str, arguments: int, whole: int) -> Callable[..., None]:
    """``whole``: how many of the arguments are whole numbers."""
    capsule = module.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    if signature.count(b"*") != arguments or signature.count(b"int *") != whole:
        raise ImportError(f"scipy's {name} has the unknown signature {signature!r}")
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)
    return kind(api.PyCapsule_GetPointer(capsule, signature))


_dsyrk = _pointer(cython_blas, "dsyrk", 10, 4)
_trmm: dict[type, Callable[..., None]] = {
    np.float64: _pointer(cython_blas, "dtrmm", 11, 4),
    np.float32: _pointer(cython_blas, "strmm", 11, 4),
}
_dpotrf = _pointer(cython_lapack, "dpotrf", 5, 3)
_dtrtri = _pointer(cython_lapack, "dtrtri", 6, 3)
_REAL: dict[type, Any] = {np.float64: ctypes.c_double, np.float32: ctypes.c_float}


def add_to_upper(scatter: Matrix, rows: Matrix) -> None:
    """The upper triangle of ``scatter``, (d, d), plus that of rows^T rows, in place."""
    count, width = rows.shape
    _check(scatter, (width, width))
    _check(rows, (count, width))
    # BLAS counts columns first: it sees both matrices transposed, and our upper triangle as lower
    _dsyrk(
        *(_LOWER, _PLAIN, _whole(width), _whole(count)),
        *(_one(np.float64), rows.ctypes.data, _whole(width)),
        *(_one(np.float64), scatter.ctypes.data, _whole(width)),
    )


def times_upper_in_place(rows: Matrix, upper: Matrix) -> None:
    """``rows`` becomes rows @ triu(upper); both float64, or both float32."""
    count, width = rows.shape
    kind = np.float32 if rows.dtype == np.float32 else np.float64
    _check(upper, (width, width), kind)
    _check(rows, (count, width), kind)
    _trmm[kind](
        *(_LEFT, _LOWER, _PLAIN, _GENERAL, _whole(width), _whole(count)),
        *(_one(kind), upper.ctypes.data, _whole(width), rows.ctypes.data, _whole(width)),
    )


def inverse_root_in_place(matrix: Matrix) -> None:
    """The upper triangle of a positive definite C, (d, d), becomes an upper triangular W with
    W W^T = C^-1; what lies below the diagonal is neither read nor changed."""
    width = len(matrix)
    _check(matrix, (width, width))
    order, data, failed = _whole(width), matrix.ctypes.data, ctypes.c_int()
    # lower to LAPACK, as above: C = L L^T, whose L^-1 is our W^T
    _dpotrf(_LOWER, order, data, order, ctypes.byref(failed))
    if failed.value or np.isnan(matrix.diagonal()).any():  # (NaN is no failure to OpenBLAS)
        raise torch.linalg.LinAlgError("the matrix is not positive-definite")
    _dtrtri(_LOWER, _GENERAL, order, data, order, ctypes.byref(failed))


def _check(matrix: Matrix, shape: tuple[int, int], kind: type = np.float64) -> None:
    """A pointer asks no questions."""
    if matrix.shape != shape or matrix.dtype != kind or not matrix.flags.c_contiguous:
        raise ValueError(f"needs a contiguous {kind.__name__} matrix of shape {shape}")


def _whole(value: int) -> Any:
    return ctypes.byref(ctypes.c_int(value))


def _one(kind: type) -> Any:
    return ctypes.byref(_REAL[kind](1.0))
