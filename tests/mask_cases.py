"""Scores to choose among, most of them equal to some other one."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

# few different values, so that most scores are equal to some other one; both zeros, both infinities
TIED = st.sampled_from([0.0, -0.0, 1.0, 1.0 + 2**-52, -1.0, 1e-308, math.inf, -math.inf])
ANY = st.floats(allow_nan=False, width=64)


@st.composite
def tables(draw: st.DrawFn, values: st.SearchStrategy[float]) -> Tensor:
    runs, candidates = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    flat = draw(st.lists(values, min_size=runs * candidates, max_size=runs * candidates))
    return torch.tensor(flat, dtype=torch.float64).reshape(runs, candidates)


@st.composite
def scores_and_counts(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    scores = draw(tables(draw(st.sampled_from([TIED, ANY]))))
    runs, candidates = scores.shape
    count = draw(st.lists(st.integers(0, candidates), min_size=runs, max_size=runs))
    return scores, torch.tensor(count)


@st.composite
def distinct_scores(draw: st.DrawFn) -> Tensor:
    candidates = draw(st.integers(1, 12))
    row = st.lists(
        st.floats(-1e6, 1e6), min_size=candidates, max_size=candidates, unique_by=lambda v: v + 0.0
    )
    return torch.tensor(draw(st.lists(row, min_size=1, max_size=3)), dtype=torch.float64)
