"""Exact law of how a random direction is shared out among d orthonormal features.

For Gaussian w the shares s_j = <w, M_j>^2 / |M M^T w|^2 are Dirichlet(1/2, ..., 1/2), whatever the
variance. Unnormalised, d independent densities u^(-1/2) are convolved and read at u = 1, so the
probability that some shares lie above and others below given thresholds is an inverse Laplace
transform of a product:

    Gamma(d/2) / (2 pi i)  integral of  e^p p^(-d/2)  prod erfc(sqrt(p t))  prod erf(sqrt(p t))  dp,

one erfc for each share that must be at least t, one erf for each that must be at most t, nothing
for a share that is free. Both routes below are exact up to rounding: from d = 8 on a vertical line
through the saddle point, which keeps the *relative* accuracy of very small probabilities; below,
where the integrand falls too slowly along a line, inclusion and exclusion with a contour that
bends around the negative axis.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rarefy.core.errors import bad_value

LEAST_FOR_LINE = 8
_NEGLIGIBLE = 1e-14
_NEGLIGIBLE_COUNTS = 1e-12
_MOST_POINTS = 4_000_000
_PARABOLA = 40
"""Points on the bent contour: its error is about 2.85^-40."""


@lru_cache(maxsize=4096)
def joint_probability(
    d: int, above: tuple[float, ...] = (), below: float = 1.0, bounded: int = 0
) -> float:
    """P(s_1 >= above[0], s_2 >= above[1], ... and the next ``bounded`` shares are <= ``below``)."""
    check_features(d)
    if bounded < 0 or len(above) + bounded > d:
        raise bad_value("bounded", bounded, f"together with {len(above)} above, at most d={d}")
    for threshold in above:
        _check_threshold("above", threshold)
    _check_threshold("below", below)
    above = tuple(threshold for threshold in above if threshold > 0)
    if below >= 1:
        bounded = 0
    if sum(above) >= 1 or (bounded and below <= 0):
        return 0.0
    if not above and bounded in (0, d):
        return float(count_law(d, below)[0]) if bounded else 1.0
    if not bounded and len(above) == 1:
        return float(special.betaincc(0.5, (d - 1) / 2, above[0]))
    if d < LEAST_FOR_LINE:
        return _inclusion_exclusion(d, above, below, bounded)
    return _on_a_line(d, above, below, bounded)


@lru_cache(maxsize=512)
def count_law(d: int, threshold: float) -> NDArray[np.float64]:
    """P(exactly k of the d shares are at least ``threshold``) for k = 0 .. d, to 1e-11 absolute."""
    check_features(d)
    _check_threshold("threshold", threshold)
    law = np.zeros(d + 1)
    if threshold >= 1 or threshold <= 0:
        law[0 if threshold >= 1 else d] = 1.0
    elif d < LEAST_FOR_LINE:
        # S_l = C(d, l) P(l given shares are above); P(k) = sum over l of (-1)^(l-k) C(l, k) S_l
        several = [math.comb(d, k) * _joint_tail(d, (threshold,) * k) for k in range(d + 1)]
        for k in range(d + 1):
            law[k] = sum((-1) ** (j - k) * math.comb(j, k) * several[j] for j in range(k, d + 1))
    else:
        law = _counts_on_a_line(d, threshold)
    law = np.clip(law, 0.0, 1.0)
    law.flags.writeable = False  # it is cached
    return law


def check_features(d: int) -> None:
    if isinstance(d, bool) or d != int(d) or d < 2:
        raise bad_value("d", d, "must be a whole number, at least 2")


def _check_threshold(name: str, value: float) -> None:
    """Beyond 0 and 1 a threshold has a meaning (all, none); NaN compares as neither."""
    if math.isnan(value):
        raise bad_value(name, value, "must be a number")


# ------------------------------------------------------------------------------ d of at least eight


def _on_a_line(d: int, above: tuple[float, ...], below: float, bounded: int) -> float:
    def exponent(p: NDArray[Any]) -> NDArray[Any]:
        """Logarithm of the integrand."""
        found = p - d / 2 * np.log(p)
        for threshold in above:  # erfc(z) = exp(-z^2) wofz(iz) does not underflow
            found += np.log(special.wofz(1j * np.sqrt(p * threshold))) - p * threshold
        return found + bounded * np.log(special.erf(np.sqrt(p * below)))

    def on_the_axis(log_p: float) -> float:
        return float(exponent(np.array([math.exp(log_p) + 0j]))[0].real)

    from scipy import optimize  # (takes half a second)

    # convex in p: the integrand on the real axis is the Laplace transform of a positive density
    start = math.log(d / (1 - sum(above)))
    saddle = math.exp(optimize.minimize_scalar(on_the_axis, bracket=(start - 1, start)).x)
    step = _step(d, saddle, 1 - sum(above))
    peak = on_the_axis(math.log(saddle))
    log_scale = math.lgamma(d / 2) + peak + math.log(step / math.pi)
    if log_scale < -760:
        return 0.0  # smaller than any float64
    total, first, points = 0.5, 1, 512
    while first < _MOST_POINTS:
        height = step * np.arange(first, first + points)
        values = np.exp(exponent(saddle + 1j * height) - peak)
        total += float(values.real.sum())
        first += points
        if abs(values[-1]) * first < _NEGLIGIBLE * abs(total):
            break
        points = min(2 * points, 1 << 17)
    return min(1.0, math.exp(log_scale) * max(total, 0.0))


def _step(d: int, saddle: float, rest: float = 1.0) -> float:
    """Trapezoid step. Its error is the density read at 1 + S, 1 + 2 S, ... with S = 2 pi/step, each
    damped by exp(-saddle S); from 1 on, where ``rest`` is left to share out after the thresholds
    above, the density grows at most like (1 + S/rest)^(d/2)."""
    far = rest
    for _ in range(60):
        far = (40 + d / 2 * math.log1p(far / rest)) / saddle
    return 2 * math.pi / far


def _counts_on_a_line(d: int, threshold: float) -> NDArray[np.float64]:
    """One line, through the saddle point without any threshold, serves all counts."""
    saddle = d / 2
    step = _step(d, saddle)
    count = np.arange(d + 1)
    log_choose = (
        special.gammaln(d + 1) - special.gammaln(count + 1) - special.gammaln(d - count + 1)
    )
    log_scale = math.lgamma(d / 2) + saddle - d / 2 * math.log(saddle) + math.log(step / math.pi)
    law = np.zeros(d + 1)
    first, points = 0, 256
    while first < _MOST_POINTS:
        p = saddle + 1j * step * np.arange(first, first + points)
        root = np.sqrt(p * threshold)
        common = log_scale + p - saddle - d / 2 * np.log(p / saddle)
        high = np.log(special.wofz(1j * root)) - p * threshold
        low = np.log(special.erf(root))
        terms = np.exp(
            common[:, None] + log_choose + count * high[:, None] + (d - count) * low[:, None]
        )
        if first == 0:
            terms[0] *= 0.5
        law += terms.real.sum(axis=0)
        first += points
        if np.abs(terms[-1]).max() * first < _NEGLIGIBLE_COUNTS:
            break
        points = min(2 * points, 4096)
    return law


# ------------------------------------------------------------------------------ d of two to seven


def _inclusion_exclusion(d: int, above: tuple[float, ...], below: float, bounded: int) -> float:
    total = sum(
        (-1) ** k * math.comb(bounded, k) * _joint_tail(d, above + (below,) * k)
        for k in range(bounded + 1)
    )
    return min(1.0, max(0.0, total))


def _joint_tail(d: int, above: tuple[float, ...]) -> float:
    """P(s_1 >= above[0], s_2 >= above[1], ...) for few features.

    With T the sum of the thresholds the factor exp(-p T) comes out of the erfc; what is left of the
    integrand decays to the left, so the contour may bend there (the parabola of Weideman and
    Trefethen 2007).
    """
    rest = 1 - sum(above)
    if rest <= 0:
        return 0.0
    angle = np.pi * np.arange(1 - _PARABOLA, _PARABOLA, 2) / _PARABOLA
    p = _PARABOLA * (0.1309 - 0.1194 * angle**2 + 0.25j * angle)
    values = np.exp(p) * p ** (-d / 2) * _PARABOLA * (0.25j - 0.2388 * angle)
    for threshold in above:
        values = values * special.wofz(1j * np.sqrt(p * threshold / rest))
    whole = values.sum() / (1j * _PARABOLA)
    return float(rest ** (d / 2 - 1) * special.gamma(d / 2) * whole.real)
