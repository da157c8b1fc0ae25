"""Whether two samples of numbers can come from one law, for tests of forms that draw differently.

The draws are fixed, so a test passes always or never; the levels say how seldom a right form would
have had bad luck: 4 standard errors (1 in 16,000) and 1 in 10,000 for one comparison, or 1 in 1000
for many of them together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

ERRORS = 4.0
LEVEL = 1e-4
TOGETHER = 1e-3


def assert_same_law(
    first: ArrayLike, second: ArrayLike, what: str = "", level: float = LEVEL
) -> None:
    """Means and distribution functions of two samples, one number a run."""
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    assert np.isfinite(x).all() and np.isfinite(y).all(), what
    error = math.sqrt(x.var() / len(x) + y.var() / len(y))
    apart = abs(x.mean() - y.mean())
    most = max(ERRORS, float(stats.norm.isf(level / 2))) * error
    assert apart <= most, f"{what}: means {x.mean():g} and {y.mean():g}, +- {error:g}"
    chance = stats.ks_2samp(x, y, method="asymp").pvalue
    assert chance > level, f"{what}: Kolmogorov-Smirnov p = {chance:g}"


def assert_same_laws(pairs: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> None:
    """Many comparisons, each at the level that leaves all of them 1 in 1000 together."""
    for what, (first, second) in pairs.items():
        assert_same_law(first, second, what, TOGETHER / len(pairs))
