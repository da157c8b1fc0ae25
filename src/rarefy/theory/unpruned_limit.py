"""What training comes to when d is endless and the initial filters vanish, in closed form.

Then half of a class's filters see its signal, from first to last, and a share b of them a sample's
noise: half at first, and more of them (some 0.8) once the noise of other samples, however nearly
orthogonal, outweighs the initial filters. Residuals of a class are alike, so that gamma over
rho is q = n SNR^2/T exactly (002 Prop. 5.2 with constant 1), scores of other classes stay 0, and a
sample's own score is F = gamma/2 + b rho. A fresh sample has its signal only, gamma/2 =
F q/(q + 2 b).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


def limit_test_loss(
    ratio: ArrayLike, classes: ArrayLike, train_loss: ArrayLike, active: ArrayLike = 0.5
) -> Numbers:
    """log(1 + (T-1) e^(-F q/(q+2b))), F from the training loss; ratio: q = n SNR^2/T; active: b."""
    q, others = np.asarray(ratio, dtype=np.float64), np.asarray(classes, dtype=np.float64) - 1
    kept = np.expm1(np.asarray(train_loss, dtype=np.float64)) / others  # e^-F
    return np.log1p(others * kept ** (q / (q + 2 * np.asarray(active, dtype=np.float64))))


def limit_ratio(classes: ArrayLike, train_loss: ArrayLike, active: ArrayLike = 0.5) -> Numbers:
    """The q at which the test loss is half of log T, for a given training loss; NaN where the
    training loss is not below that itself."""
    number = np.asarray(classes, dtype=np.float64)
    kept = np.expm1(np.asarray(train_loss, dtype=np.float64)) / (number - 1)
    # (T-1) kept^s = sqrt(T) - 1
    wanted = np.log1p(np.sqrt(number))
    own = -np.log(kept)
    share = wanted / np.where(own > wanted, own - wanted, np.nan)
    return share * 2 * np.asarray(active, dtype=np.float64)


def limit_boundary(
    samples: ArrayLike, classes: ArrayLike, train_loss: ArrayLike, active: ArrayLike = 0.5
) -> Numbers:
    """The SNR at which the test loss is half of log T: sqrt(q T/n)."""
    q = limit_ratio(classes, train_loss, active)
    number = np.asarray(classes, dtype=np.float64)
    return np.sqrt(q * number / np.asarray(samples, dtype=np.float64))
