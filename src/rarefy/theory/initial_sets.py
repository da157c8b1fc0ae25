"""How many neurons are ordinary or lucky before training: exact laws, and the papers' orders.

000 Definition B.1 (26)-(28) and Lemma B.2 (29)-(32) with its proof (221)-(249); 001 Definition C.1
and Lemma C.1 (16)-(24). The initial weights are Gaussian, so every probability is known exactly
(``rarefy.theory.dirichlet_shares``) and depends on d, the ratio eps_min/eps_max and gamma alone. A
name that ends in ``_order`` is the expression inside a paper's O(.) or Omega(.).

Where the proof of (31) leaves the exact law, each quantified by ``proof_steps``:

- (236), (237) put d sigma_0^2 for |M M^T w|^2, so a share beyond 1 is possible there; in truth it
  is not, and no neuron at all is lucky once c_1 log d/d > 1;
- (236) and (237) count positive projections only, and (238) halves p_1 once more, though the sets
  are about squares;
- (239) drops the factor 1/sqrt(log d) that (238) still has;
- (238) takes Pr[B_i] = (1 - p_2)^(d-1) = exp(-d^(1-a)) as 1, with a = ratio^2 (1 - gamma). That is
  not so for any ratio below 1, where it tends to 0 faster than every power of d: the lower bound
  of (31) is then false for large d, not only loose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from rarefy.core.errors import bad_value
from rarefy.theory.contrastive import set_constants
from rarefy.theory.dirichlet_shares import check_features, count_law, joint_probability

GAMMA = 0.001


def thresholds(d: int, ratio: float, gamma: float = GAMMA) -> tuple[float, float]:
    """(c_1 log d/d, c_2 log d/d): the shares that (26) and (27) ask for."""
    _check(d, ratio, gamma)
    c1, c2 = set_constants(float(ratio), gamma)
    return c1 * math.log(d) / d, c2 * math.log(d) / d


# ------------------------------------------------------------------------------ exact, one neuron


def ordinary_probability(d: int, ratio: float, gamma: float = GAMMA) -> float:
    """P(i in M_j) of (26): a share is Beta(1/2, (d-1)/2). The exact p_2 of (237)."""
    return joint_probability(d, (thresholds(d, ratio, gamma)[1],))


def high_probability(d: int, ratio: float, gamma: float = GAMMA) -> float:
    """P(share on j at least c_1 log d/d), the first condition of (27). The exact p_1 of (236)."""
    return joint_probability(d, (thresholds(d, ratio, gamma)[0],))


def lucky_probability(d: int, ratio: float, gamma: float = GAMMA) -> float:
    """P(i in M*_j) of (27). Up to d = 8 the second condition follows from the first."""
    high, low = thresholds(d, ratio, gamma)
    return joint_probability(d, (high,), low, d - 1)


def set_size_law(d: int, ratio: float, gamma: float = GAMMA) -> NDArray[np.float64]:
    """P(|N_i| = k), k = 0 .. d, for N_i = {j : i in M_j} (245); its mean is d p_2."""
    return count_law(d, thresholds(d, ratio, gamma)[1])


def expected_largest_set(d: int, ratio: float, m: int, gamma: float = GAMMA) -> float:
    """Mean over networks of max_i |N_i|, i.e. of what (d) speaks about; m independent neurons."""
    # summed from the far end, where the law keeps its relative accuracy: with millions of neurons
    # the rounding of 1 minus the sum from the near end would count
    beyond = np.cumsum(set_size_law(d, ratio, gamma)[::-1])[::-1][1:]
    return _expected_largest(np.minimum(beyond, 1.0), m)


def _expected_largest(beyond: NDArray[np.float64], m: int) -> float:
    """Mean of the largest of m independent counts; beyond: P(count > k), k = 0, 1, ..."""
    _check_neurons(m)
    with np.errstate(divide="ignore"):  # certainly more than k
        return float(-np.expm1(m * np.log1p(-beyond)).sum())


# ------------------------------------------------------------------------ exact, the whole network


def minimum_width(p_lucky: float, d: int, chance: float = 0.95) -> float:
    """Smallest m with which every feature has a lucky neuron with probability ``chance``.

    Infinite when there are no lucky neurons; above 2^53 exact to a float's precision.
    """
    _check_chance(chance)
    if not 1e-6 <= chance:
        raise bad_value("chance", chance, "must be at least 1e-6")
    _check_p(p_lucky, d)
    if p_lucky == 0:
        return math.inf
    low, high = d - 1, d
    while _missed(p_lucky, d, high) > 1 - chance:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if _missed(p_lucky, d, middle) > 1 - chance:
            low = middle
        else:
            high = middle
    return float(high)


def smallest_ratio(d: int, gamma: float = GAMMA) -> float:
    """The smallest eps_min/eps_max at which any neuron can be lucky: c_1 log d/d = 1."""
    _check(d, 1.0, gamma)
    return math.sqrt(2 * (1 + gamma) * math.log(d) / d)


def _missed(p_lucky: float, d: int, m: int) -> float:
    """P(some of d features has no lucky neuron among m); absolute error below 2e-7.

    A neuron is lucky in one feature at most, so the number of neurons without any of k given
    features is binomial with (1 - k p): inclusion and exclusion over the features left out.
    """
    _check_p(p_lucky, d)
    _check_neurons(m)
    k = np.arange(1, d + 1)
    with np.errstate(divide="ignore"):  # d p = 1: a neuron is always lucky in some feature
        log_all_miss = m * np.log1p(-np.minimum(k * p_lucky, 1.0))
    # alternating terms of size (d q)^k/k!: for large d q they cancel to nothing, and the answer
    # differs from 1 by less than exp(-d q)
    if d * math.exp(log_all_miss[0]) > 16:
        return 1.0
    log_choose = special.gammaln(d + 1) - special.gammaln(k + 1) - special.gammaln(d - k + 1)
    terms = np.where(k % 2 == 1, 1.0, -1.0) * np.exp(log_choose + log_all_miss)
    return float(min(1.0, max(0.0, terms.sum())))


# ---------------------------------------------------------------------- what the papers bound with


def omegas(m: int, d: int, ratio: ArrayLike, gamma: float = GAMMA) -> tuple[NDArray, NDArray]:
    """(omega_1, omega_2) of (32), with C_m = log m/log d."""
    square = np.asarray(ratio, dtype=np.float64) ** 2
    c_m = math.log(m) / math.log(d)
    return c_m - (1 + gamma) / square, c_m - square * (1 - gamma)


def xi_1_order(m: int, d: int, ratio: ArrayLike, gamma: float = GAMMA) -> NDArray:
    """(31): |M*_j| is at least of order d^omega_1."""
    return d ** omegas(m, d, ratio, gamma)[0]


def xi_2_order(m: int, d: int, ratio: ArrayLike, gamma: float = GAMMA) -> NDArray:
    """(31): |M_j| is at most of order d^omega_2."""
    return d ** omegas(m, d, ratio, gamma)[1]


def set_size_order(d: int, ratio: ArrayLike, gamma: float = GAMMA) -> NDArray:
    """Lemma B.2 (d): |N_i| is at most of order d^(1 - ratio^2 (1 - gamma)); 001 says O(1)."""
    return d ** (1 - np.asarray(ratio, dtype=np.float64) ** 2 * (1 - gamma))


def norm_order(d: int, dimension: int) -> float:
    """(29), (30): the half width is of order 1/sqrt(dimension) up to polylog; read as log d."""
    return math.log(d) / math.sqrt(dimension)


class ProofSteps(NamedTuple):
    """The factors of the lucky probability: exact, in the proof's Gaussian reading, as assumed."""

    high: float
    """P(A): share on j at least c_1 log d/d, exact"""
    high_gaussian: float
    """the same with |M M^T w|^2 = d sigma_0^2, both signs: p_1 of (236)"""
    high_order: float
    """d^(-c_1/2), the order that (236) gives it"""
    others: float
    """P(B given A): all other shares at most c_2 log d/d, exact"""
    others_gaussian: float
    """(1 - p_2)^(d-1) with the Gaussian p_2 of (237); (238) takes it as 1"""
    lucky: float
    """P(A and B), exact"""


def proof_steps(d: int, ratio: float, gamma: float = GAMMA) -> ProofSteps:
    """The steps (236)-(238) beside the exact law."""
    high, lucky = high_probability(d, ratio, gamma), lucky_probability(d, ratio, gamma)
    t1, t2 = thresholds(d, ratio, gamma)
    p2 = float(special.erfc(math.sqrt(t2 * d / 2)))
    return ProofSteps(
        high,
        float(special.erfc(math.sqrt(t1 * d / 2))),
        math.exp(-t1 * d / 2),
        min(1.0, lucky / high) if high > 0 else math.nan,
        (1 - p2) ** (d - 1),
        lucky,
    )


# -------------------------------------------------------------------------------------- bad values


def _check(d: int, ratio: float, gamma: float) -> None:
    check_features(d)
    if not 0 < ratio <= 1:
        raise bad_value("ratio", ratio, "eps_min/eps_max must be in (0, 1]")
    if not 0 <= gamma < 1:
        raise bad_value("gamma", gamma, "must be at least 0 and below 1")


def _check_p(p_lucky: float, d: int) -> None:
    check_features(d)
    if not 0 <= p_lucky <= (1 + 1e-9) / d:
        raise bad_value("p_lucky", p_lucky, f"must be in [0, 1/d]: lucky sets of d={d} features")


def _check_neurons(m: int) -> None:
    if not m >= 1:
        raise bad_value("m", m, "must be at least 1")


def _check_chance(chance: float) -> None:
    if not 0 < chance < 1:
        raise bad_value("chance", chance, "must lie between 0 and 1")
