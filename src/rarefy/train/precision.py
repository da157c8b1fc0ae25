"""In which numbers a network computes."""

from __future__ import annotations

import contextlib

import torch

from rarefy.core.errors import unknown

PRECISIONS = ("auto", "bf16", "float32")


def resolve_precision(precision: str, device: torch.device, dtype: torch.dtype) -> str:
    """``auto``: bfloat16 products on a GPU, plain arithmetic on a CPU and in float64."""
    if precision not in PRECISIONS:
        raise unknown("precision", precision, PRECISIONS)
    if dtype == torch.float64:
        return "float32"  # no autocast: everything is double then
    if precision == "auto":
        return "bf16" if device.type == "cuda" else "float32"
    return precision


def mixed_precision(
    device: torch.device, precision: str, remember_casts: bool = True
) -> contextlib.AbstractContextManager[None]:
    """bfloat16 products with float32 weights where asked for, else nothing."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16, cache_enabled=remember_casts)
    return contextlib.nullcontext()
