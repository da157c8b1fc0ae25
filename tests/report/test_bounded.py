"""Intervals of shares stay between 0 and 1, and move inwards alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rarefy.report.bounded import bounds, kept_inside

SHARES = st.floats(0, 1)


@given(SHARES, st.floats(0, 2), st.floats(0, 2))
def test_no_end_moves_outwards_and_none_is_outside(mean: float, below: float, above: float) -> None:
    ends = np.array([mean - below]), np.array([mean + above])
    low, high = kept_inside(np.array([mean]), *ends, (0.0, 1.0))
    assert 0 <= low[0] <= mean + 1e-12 and mean - 1e-12 <= high[0] <= 1
    assert low[0] >= ends[0][0] and high[0] <= ends[1][0]
    assert low[0] == ends[0][0] or ends[0][0] < 0
    assert high[0] == ends[1][0] or ends[1][0] > 1


def test_ratios_have_no_upper_end() -> None:
    shown = np.array([0.1, 0.9])
    assert bounds("test error", shown) == (0.0, 1.0)
    assert bounds("test error / guessing", shown) is None
