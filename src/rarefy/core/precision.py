"""How exact products of float32 matrices are on a GPU: in one place, and put back afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from rarefy.core.errors import bad_value

PRECISIONS = {"float32": "highest", "tf32": "high"}
"""Our word, and torch's: with "tf32" factors are rounded to 11 bits, sums stay float32."""


def check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise bad_value("precision", precision, f"must be one of {', '.join(PRECISIONS)}")


@contextlib.contextmanager
def matrix_products(precision: str, device: torch.device) -> Iterator[None]:
    """Products inside the block are of this precision. A CPU always multiplies in full."""
    check_precision(precision)
    if device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(PRECISIONS[precision])
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
