"""Class-dependent noise written out direction by direction."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rarefy.data.noise_spectrum import special_spectrum, spectrum_for


def eigenvalues_for(*given: Any, **named: Any) -> Tensor:
    """``spectrum_for``, direction by direction: (run, classes, d)."""
    return spectrum_for(*given, **named).table()


def special_direction(*given: Any, **named: Any) -> Tensor:
    """``special_spectrum``, direction by direction: (group, classes, d)."""
    return special_spectrum(*given, **named).table()
