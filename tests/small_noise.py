"""Class-dependent noise written out direction by direction."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rarefy.data.noise_spectrum import special_spectrum, spectrum_for


def eigenvalues_for(*given: Any, **named: Any) -> Tensor:
    """``spectrum_for``, direction by direction: (run, classes, d)."""
    return spectrum_for(*given, **named).table()


def special_direction(*given: Any, **named: Any) -> Tensor:
    """``special_spectrum``, direction by direction: (group, classes, d)."""
    return special_spectrum(*given, **named).table()


def homogeneous(d: int, classes: int, scale: float = 1.0) -> Tensor:
    """Every A_k A_k^T the projection off the features (Remark 5): (1, classes, d)."""
    table = torch.full((1, classes, d), scale, dtype=torch.float64)
    table[:, :, :classes] = 0
    return table
