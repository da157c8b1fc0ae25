"""The yardstick for errors in a tail, against samples and read backwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rarefy.theory.tail_law import log_error_law, strength

CHANCE = 0.8


@pytest.mark.parametrize(("a", "length"), [(0.3, 0.0), (1.0, 1.0), (2.0, 2.5)])
def test_the_law_is_the_mean_over_the_tail(a: float, length: float) -> None:
    z = np.abs(np.random.default_rng(0).normal(size=2_000_000))
    wrong = np.array([math.erfc(value) for value in a * z[z >= length][:20_000] / math.sqrt(2)])
    found = np.exp(log_error_law(np.array([a]), length, CHANCE))[0]
    spread = CHANCE * wrong.std() / math.sqrt(len(wrong))
    assert found == pytest.approx(CHANCE * wrong.mean(), abs=4.5 * spread)


def test_the_strength_is_the_law_read_backwards() -> None:
    a, length = np.array([0.2, 1.0, 3.0]), np.array([0.5, 1.0, 2.0])
    error = np.exp([log_error_law(a[i : i + 1], length[i], CHANCE)[0] for i in range(3)])
    np.testing.assert_allclose(strength(error, length, CHANCE), a, rtol=1e-3)
    found = strength(np.array([CHANCE, 0.9, 0.0, np.nan]), np.ones(4), CHANCE)
    np.testing.assert_allclose(found[:2], 1e-3)  # nothing learnt counts, no error does not
    assert np.isnan(found[2:]).all()
