"""Class-dependent noise written out direction by direction, and its least ratio."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from rarefy.data.noise_ratio import spectrum_for
from rarefy.data.noise_spectrum import special_spectrum
from rarefy.data.noise_structure import gram, noise_correlation_ratio


def eigenvalues_for(*given: Any, **named: Any) -> Tensor:
    """``spectrum_for``, direction by direction: (run, classes, d)."""
    return spectrum_for(*given, **named).table()


def special_direction(*given: Any, **named: Any) -> Tensor:
    """``special_spectrum``, direction by direction: (group, classes, d)."""
    return special_spectrum(*given, **named).table()


def least_ratio(eigenvalues: Tensor, sizes: Tensor) -> Tensor:
    """min over j != k of Gamma_kj: (group, classes)."""
    ratio = noise_correlation_ratio(gram(eigenvalues), sizes)
    itself = torch.eye(ratio.shape[-1], dtype=torch.bool)
    return ratio.masked_fill(itself, math.inf).amin(dim=2)
