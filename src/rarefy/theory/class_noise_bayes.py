"""The least error with which the classes of 003 can be told apart by their noise alone.

Setting of 003 Sec. 5.1 with equal classes: all eigenvalues of A_k are ``base`` but one, ratio *
base with ratio >= 1, along a direction of the class's own. Whoever knows every A_k is told by the
special coordinates alone, and names the class whose coordinate is the largest. Of a sample of class
k that is wrong when another class's coordinate, base |zeta'|, exceeds its own, ratio base |zeta|:

    P(error | |zeta| >= L) = E[1 - G(ratio |zeta|)^(K - 1) | |zeta| >= L],  G(s) = P(|zeta'| <= s).

Bayes' rule for Gaussian zeta, since all densities differ by increasing functions of the squared
coordinates, and for uniform zeta along the axes of the noise, where a coordinate larger than any
other class can have decides, and among smaller ones any choice is as good. For uniform zeta along
other axes the special coordinates are sums of many, close to Gaussian; there this is the best that
can be done with second moments, while the sharp edges of the law could in principle tell more.

As ratio^2 >= Gamma, the Gaussian error obeys 003 Theorem 1, 2(b), with c_2 = 1/2 when |zeta| >= L
stands for long-tailed data: P(|zeta'| >= ratio L) <= exp(-Gamma L^2/2) for each of K - 1 classes.

The feature patch itself is free of noise: with any feature at all the least error is 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rarefy.core.errors import bad_value

Array = NDArray[np.float64]
LAWS = ("gaussian", "uniform")
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def special_ratio(gamma: ArrayLike, rank: int) -> Array:
    """Special over common eigenvalue at noise correlation ratio ``gamma``, for equal classes whose
    noise all has ``rank`` directions, the special ones among them (003 Sec. 5.1):

    Gamma = (rank - 1 + x^2)/(rank - 2 + 2 x) with x = ratio^2, solved for the x >= 1.
    """
    wanted = np.asarray(gamma, dtype=np.float64)
    if not (wanted >= 1).all():
        raise bad_value("gamma", gamma, "must be at least 1: no equal classes have less")
    if rank < 2:
        raise bad_value("rank", rank, "must be at least 2")
    return np.sqrt(wanted + np.sqrt((wanted - 1) * (wanted + rank - 1)))


def least_noise_error(
    ratio: ArrayLike, classes: int, law: str = "gaussian", length: ArrayLike = 0.0
) -> Array:
    """Error of the best classifier of equally likely classes by their noise, given that |zeta|
    along the sample's own special direction is at least ``length`` (0: of all samples).

    ratio, special over common eigenvalue, and length broadcast.
    """
    size, least = np.broadcast_arrays(
        np.asarray(ratio, dtype=np.float64), np.asarray(length, dtype=np.float64)
    )
    if classes < 2:
        raise bad_value("classes", classes, "must be at least 2")
    if not (np.isfinite(size) & (size >= 1)).all():
        raise bad_value("ratio", ratio, "must be finite and at least 1")
    if law not in LAWS:
        raise bad_value("law", law, f"must be one of {', '.join(LAWS)}")
    most = np.inf if law == "gaussian" else np.sqrt(3)
    if not ((least >= 0) & (least < most)).all():
        raise bad_value("length", length, f"must be at least 0 and below {most:.4g}")
    return (_gaussian if law == "gaussian" else _uniform)(size, least, classes)


def _gaussian(ratio: Array, length: Array, classes: int) -> Array:
    """By quadrature of P(error | zeta) = 1 - (1 - erfc(ratio zeta/sqrt 2))^(K - 1), which falls
    from ``length`` on like exp(-ratio length t - t^2/2) in t = ratio (zeta - length)."""
    reach = np.minimum(12.0, 60.0 / np.maximum(ratio * length, 1e-9))[..., None]
    t = reach * (_NODES + 1) / 2
    z = length[..., None] + t / ratio[..., None]
    missed = special.erfc(ratio[..., None] * z / np.sqrt(2))
    wrong = -np.expm1((classes - 1) * np.log1p(-np.minimum(missed, 1 - 1e-16)))
    density = np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2)
    total = (wrong * density * _WEIGHTS).sum(axis=-1) * reach[..., 0] / 2 / ratio
    return np.asarray(total / special.erfc(length / np.sqrt(2)))


def _uniform(ratio: Array, length: Array, classes: int) -> Array:
    """In closed form: zeta/sqrt 3 is even on +-1, and decides once it exceeds 1/ratio."""
    start = length / np.sqrt(3)
    undecided = np.maximum(1 / ratio - start, 0)
    right = (1 - np.minimum(ratio * start, 1) ** classes) / (ratio * classes)
    return np.asarray((undecided - right) / (1 - start))
