"""What 002 predicts for signal, noise and TopK pruning during training: formulas only.

``classes`` is the paper's T (calligraphic), ``filters`` its m, ``keep`` its K. ``output_scale`` is
the factor in front of the sum over filters, 1/m in the paper's formulas and 1 for its figure. A
weight moves in proportion to ``output_scale``, a logit to ``filters * output_scale^2``
(``logit_gain``); with 1/m the two are the same number, with 1 they are not.

Where the paper hides constants behind Theta, the function returns the expression inside it, times
a ``constant`` that is 1 unless told otherwise; such names end in ``_order``. Values may be floats,
arrays or tensors and broadcast.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from rarefy.core.errors import bad_value
from rarefy.theory.conditions import Condition
from rarefy.theory.contrastive import Number


def snr(mu: Number, sigma: Number, d: int) -> Number:
    """SNR = mu/(sigma_p sqrt(d)) (Sec. 4, App. E)."""
    return mu / (sigma * math.sqrt(d))


def logit_gain(filters: int, output_scale: float) -> float:
    """m output_scale^2: put in place of ``output_scale``, a rate of weights becomes one of logits
    (m filters move, each seen through the scale once more)."""
    return filters * output_scale**2


# ------------------------------------------------------------------------------------- two regimes


def signal_threshold_order(classes: int, samples: Number, constant: float = 1.0) -> Number:
    """T n^(-1/4): an SNR from here on learns the signal (Theorem 4.2)."""
    return constant * classes * samples**-0.25


def noise_threshold_order(samples: Number, constant: float = 1.0) -> Number:
    """1/n: an SNR up to here memorises the noise (Theorem 4.3)."""
    return constant / samples


def coefficient_ratio_order(ratio: Number, classes: int, samples: Number) -> Number:
    """n SNR^2/T: gamma over rho stays of this order (Prop. 5.2); gamma-tilde of Prop. G.1, which
    bounds the signal coefficients in the noise regime (Theorem 4.3, 2)."""
    return samples * ratio**2 / classes


def noise_coefficient_order(ratio: Number, classes: int, samples: Number) -> Number:
    """T/(n SNR^2) = rho-tilde of Prop. E.1: bounds the noise coefficients in the signal regime
    (Theorem 4.2, 2)."""
    return classes / (samples * ratio**2)


# ---------------------------------------------------------------------------------- length of stage


def signal_stage_order(
    classes: int, mu: Number, lr: float, output_scale: float, constant: float = 1.0
) -> Number:
    """T/(eta output_scale mu^2): steps until gamma of an active filter reaches 3 (Lemma F.1), while
    the residual is a constant. Without the 1/m the logits are of order 1, and the stage over, m
    times sooner: give ``logit_gain`` as output_scale.
    """
    return constant * classes / (lr * output_scale * mu**2)


def noise_stage_order(
    samples: Number, sigma: Number, d: int, lr: float, output_scale: float, constant: float = 1.0
) -> Number:
    """n/(eta output_scale sigma_p^2 d): steps until rho of an active filter reaches 3 (Lemma H.1);
    for the logits give ``logit_gain`` as output_scale."""
    return constant * samples / (lr * output_scale * sigma**2 * d)


# ---------------------------------------------------------------------------------------- test loss


def signal_test_loss_ceiling(train_loss: Number, classes: int, samples: int) -> Number:
    """8 e^4 T L_S + exp(-n^2): test loss in the signal regime (Theorem 4.2, 4; Lemma F.8)."""
    return 8 * math.exp(4) * classes * train_loss + math.exp(-(float(samples) ** 2))


def noise_test_loss_floor(classes: int) -> float:
    """0.5 log(1 + (T - 1)/e): test loss in the noise regime (Lemma H.4)."""
    return 0.5 * math.log(1 + (classes - 1) / math.e)


def chance_loss(classes: int) -> float:
    """log T, the loss of equal logits; below the window the test loss is of this order
    (Theorem 4.5)."""
    return math.log(classes)


# ---------------------------------------------------------------------------------------- K window


def window_lower_order(
    d: int,
    mu: Number,
    sigma: Number,
    delta: float = 0.1,
    power: int = 1,
    constant: float = 1.0,
    deviation: float = 1.0,
) -> Number:
    """Theorem 4.4: constant d exp(-mu^power/(2 sigma_p^2)) + deviation sqrt(d log(1/delta)).

    The theorem prints mu (``power`` 1); its proof in App. I has mu^2 (``power`` 2) up to the last
    line. Both constants are hidden there.
    """
    if power not in (1, 2):
        raise bad_value("power", power, "must be 1 (as printed) or 2 (as in the proof)")
    tail = _exp(-(mu**power) / (2 * sigma**2))
    return constant * d * tail + deviation * _deviation(d, delta)


def window_upper_order(
    classes: int, samples: Number, mu: Number, sigma: Number, constant: float = 1.0
) -> Number:
    """Theorem 4.4: mu^2 sqrt(n)/(T sigma_p^2)."""
    return constant * mu**2 * samples**0.5 / (classes * sigma**2)


def too_few(
    d: int, mu: Number, sigma: Number, delta: float = 0.1, deviation: float = 1.0
) -> Number:
    """Theorem 4.5: up to d (1 - sqrt(1 - exp(-2 mu^2/(pi sigma_p^2)))) - O(sqrt(d log(1/delta)))
    kept coordinates lose the signal; 0 or less where the theorem speaks of no K at all."""
    tail = _exp(-2 * mu**2 / (math.pi * sigma**2))
    return d * (1 - (1 - tail) ** 0.5) - deviation * _deviation(d, delta)


def figure_lower(sigma: Number) -> Number:
    """The lower curve drawn into Fig. 2: 120 exp(-1/(2 sigma_p^2)), for d = 200 and mu = 1."""
    return 120 * _exp(-1 / (2 * sigma**2))


def figure_upper(sigma: Number) -> Number:
    """The upper curve drawn into Fig. 2: 95/sigma_p^2, for n = 200, T = 10 and mu = 1."""
    return 95 / sigma**2


# -------------------------------------------------------------------------------------- assumptions


def condition_4_1(
    *,
    classes: int,
    filters: int,
    samples: int,
    d: int,
    mu: float,
    sigma: float,
    sigma_0: float,
    lr: float,
    output_scale: float,
    horizon: float,
    delta: float = 0.1,
    constant: float = 1.0,
) -> list[Condition]:
    """Condition 4.1, line by line. ``horizon`` is T*, in alpha = 4 log T*.

    The paper leaves open the constant of Theta in the first line and that of O in the last
    (``constant`` is both) and does not say which delta it has in mind.
    """
    _check_chance(delta)
    if not horizon > 1:
        raise bad_value("horizon", horizon, "must be more than 1 step")
    alpha = 4 * math.log(horizon)
    wide = 512 * classes * samples**2 * alpha**2 * math.log(4 * samples**2 / delta)
    spread = 16 * math.sqrt(math.log(8 * filters * classes**2 / delta))
    largest = min(1 / mu, 1 / (sigma * math.sqrt(d - classes)) if sigma > 0 else math.inf)
    return [
        Condition(
            "d",
            d,
            ">=",
            classes + constant * wide,
            "d >= T + Theta(512 T n^2 alpha^2 log(4 n^2/delta)), alpha = 4 log T*",
        ),
        Condition("d", d, ">=", sigma**-2 if sigma > 0 else math.inf, "d >= sigma_p^-2"),
        Condition(
            "sigma_0",
            sigma_0,
            "<=",
            largest / (spread * classes * samples**2),
            "sigma_0 <= min(1/mu, 1/(sigma_p sqrt(d - T)))/(16 sqrt(log(8 m T^2/delta)) T n^2)",
        ),
        Condition(
            "lr", lr, "<=", constant * classes / (output_scale * mu**2), "eta <= O(m T/mu^2)"
        ),
    ]


# ------------------------------------------------------------------------------------------ helpers


def _exp(value: Number) -> Number:
    if isinstance(value, Tensor):
        return torch.exp(value)
    return cast(Any, np.exp(value))


def _deviation(d: int, delta: float) -> float:
    _check_chance(delta)
    return math.sqrt(d * math.log(1 / delta))


def _check_chance(delta: float) -> None:
    if not 0 < delta < 1:
        raise bad_value("delta", delta, "must lie between 0 and 1")
