"""Small data models of 000 for tests, and how far their statistics may be off."""

from __future__ import annotations

import torch
from hypothesis import strategies as st
from torch import Tensor

from rarefy.core.rng import Draws, key
from rarefy.data.sparse_coding import SPREADS, SparseCoding, dictionary

SIGMAS = 5.0
"""Statistical bounds in standard errors; the draws are fixed, so a bound is met always or never."""


def draws_of(runs: int, name: str = "data", dtype: torch.dtype = torch.float32) -> Draws:
    return Draws([key(name, run) for run in range(runs)], dtype=dtype)


def model(
    draws: Draws,
    eps: Tensor,
    *,
    d1: int = 12,
    sigma: float = 0.1,
    activation: float = 0.4,
    tokens: int = 3,
    spread: str = "one",
) -> SparseCoding:
    runs, d = eps.shape
    atoms = dictionary(draws, d1, d)
    noise = torch.full((runs,), sigma, dtype=draws.dtype)
    return SparseCoding(atoms, eps.to(draws.dtype), noise, activation, tokens, spread)


any_model = st.tuples(
    st.sampled_from(SPREADS),
    st.integers(1, 6),  # tokens
    st.integers(1, 8),  # features
    st.floats(0.05, 1.0),  # activation
    st.integers(0, 10**6),  # seed
)
