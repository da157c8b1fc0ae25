"""What 000 and 001 predict for contrastive learning under imbalance: formulas only.

Where the paper hides constants behind Theta, the function returns the expression inside it and its
name ends in ``_order``; only its dependence on the arguments means anything.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from torch import Tensor

Number = TypeVar("Number", float, np.ndarray, Tensor)


def set_constants(ratio: Number, gamma: float = 0.001) -> tuple[Number, Number]:
    """(c_1, c_2) of (28) for ratio = eps_min/eps_max; gamma is small (001: below 0.001)."""
    return 2 * (1 + gamma) / ratio**2, 2 * (1 - gamma) * ratio**2


def stage_1_growth(
    moment: Number, lr: float, tau: float, batch: int, factor: float = 1.0, decay: float = 0.0
) -> Number:
    """Growth of <w_i, M_j> a step in stage 1: 1 - eta lambda + eta (factor/tau)(1 - 1/|B|) E[z+ z].

    000 Lemma 3.1 (7) with its constant spelled out by Lemma F.3 (182): ``moment`` is
    E[z+_j z_j] of the attention-mixed latents summed over tokens (mixing weights included, so the
    paper's 1/L^2 is in it); 1 - l'_p = 1 - 1/|B| while the logits are flat (Lemma H.1).
    """
    return 1 - lr * decay + lr * factor / tau * (1 - 1 / batch) * moment


def uniform_attention_moment(
    eps: Number, activation: float, tokens: int, spread: str = "one"
) -> Number:
    """E[z+_j z_j] when attention is the plain mean, in closed form, for latents -1, 0, 1.

    The summed mixed latent is then the summed latent: sign times the number of tokens that show
    the feature, and the two views' numbers are independent given that it is present.
    """
    shown = {
        "one": 1.0,
        "all": float(tokens),
        "subset": tokens * 2 ** (tokens - 1) / (2**tokens - 1),
    }[spread]
    return activation * eps * shown**2


def outside_decay(lr: float, decay: float) -> float:
    """Factor per step of components outside the feature space, 1 - eta lambda (000 eq. 8)."""
    return 1 - lr * decay


def t3(d: int, lr: float) -> float:
    """Start of the convergence window of Theorem 3.1, d^1.01 / eta."""
    return d**1.01 / lr


def t4(d: int, lr: float) -> float:
    """End of the convergence window of Theorem 3.1, d^1.99 / eta."""
    return d**1.99 / lr


def bias_at_t1(norm: Number, d: int) -> Number:
    """b_i(T1) = sqrt(2 log d / d) |w_i(T1)|, implied by (284)."""
    return math.sqrt(2 * math.log(d) / d) * norm


def lucky_floor(feature_ratio: Number) -> Number:
    """(9), first part: lucky neurons reach <w_i(T2), M_j>^2 >= 2 (eps_j/eps_max) |w_i(T1)|^2."""
    return 2 * feature_ratio


def lucky_count_order(m: int, d: int, ratio: Number) -> Number:
    """(9), second part, and Theorem 3.1: at least m d^(-(eps_max/eps_min)^2) pure neurons."""
    return m * d ** (-1 / ratio**2)


def set_size_order(d: int, ratio: Number) -> Number:
    """(14): |N_i| is at most of order d^(1 - (eps_min/eps_max)^2)."""
    return d ** (1 - ratio**2)


def coefficient_scale(feature_ratio: Number) -> Number:
    """(13): alpha_ij of a feature in N_i scales as eps_j/eps_max (exponent 1)."""
    return feature_ratio


def coefficient_range(
    feature_ratio: Number, tau: float | Number, m: int, d: int, ratio: Number
) -> tuple[Number, Number]:
    """(13): [eps_j/eps_max tau/Xi_2, eps_j/eps_max tau], Xi_2 = d^(C_m - ratio^2), m = d^C_m."""
    xi_2 = m * d ** (-(ratio**2))
    return feature_ratio * tau / xi_2, feature_ratio * tau


def feature_energy_scale(feature_ratio: Number) -> Number:
    """(89): the sum over i in M_j of <w_i, M_j>^2 scales as (eps_j/eps_max)^2 (exponent 2)."""
    return feature_ratio**2
