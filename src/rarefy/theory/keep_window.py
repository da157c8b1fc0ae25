"""The keep window of 002 in terms of energies, which can be measured on any network.

After a full-batch step on the kept weights alone the loss of training sample i has fallen, per unit
of learning rate and to first order, by <g_i, mean of all g> over the kept weights: g_i is the
gradient of its loss, with mean m_k and variance v_k at weight k. On average over i that is

    S + N,    S = sum of m_k^2,    N = (1/n) sum of v_k    over the kept weights.

S is what all samples do for each other, and what a fresh sample gains as well; N is what every
sample does for itself alone: memory. In 002's network the first is the growth of the signal's part
of a logit, the second that of the noise's (see ``first_step``), so that

    lower end    smallest keep with half of the signal energy: there the signal coordinates of half
                 of the filters survive TopK (``first_step.lower_keep``)
    upper end    largest keep with S >= N, "balance" (``first_step.upper_keep``); or the keep of
                 largest S - N, "margin": a further weight would add more memory than signal.

Both are sums over weights: the curves of several layers are added, not averaged.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rarefy.core.errors import bad_value
from rarefy.theory import first_step
from rarefy.theory.first_step import FirstStep
from rarefy.theory.ranks import Array

SHARE = 0.5
"""Of the signal energy, at the lower end: the share that ``first_step.lower_keep`` asks for."""
UPPER = ("balance", "margin")


def lower_keep(keeps: ArrayLike, signal: ArrayLike, share: float = SHARE) -> float:
    """Smallest keep with ``share`` of the signal energy of the last one; nan if that is none."""
    if not 0 < share < 1:
        raise bad_value("share", share, "must lie between 0 and 1")
    where, energy = _curves(keeps, signal)
    if not energy[-1] > 0:
        return float("nan")
    return float(where[np.argmax(energy >= share * energy[-1])])


def upper_keep(
    keeps: ArrayLike, signal: ArrayLike, noise: ArrayLike, upper: str = "balance"
) -> float:
    """Largest keep with signal >= noise ("balance"), or that of the largest difference ("margin");
    0 if the noise is larger at every keep."""
    if upper not in UPPER:
        raise bad_value("upper", upper, f"must be one of {', '.join(UPPER)}")
    where, energy, memory = _curves(keeps, signal, noise)
    good = np.flatnonzero(energy >= memory)
    if len(good) == 0:
        return 0.0
    return float(where[good[-1] if upper == "balance" else np.argmax(energy - memory)])


def _curves(keeps: ArrayLike, *curves: ArrayLike) -> tuple[Array, ...]:
    where, *found = (np.asarray(each, dtype=np.float64) for each in (keeps, *curves))
    if where.ndim != 1 or len(where) == 0 or (np.diff(where) <= 0).any():
        raise bad_value("keeps", keeps, "must be a list of numbers that rise")
    for each in found:
        if each.shape != where.shape:
            raise bad_value("energies", each.shape, f"must be one for each of {len(where)} keeps")
    return (where, *found)


# ------------------------------------------------------------------------------- in 002's network


def signal_energy(keep: ArrayLike, step: FirstStep) -> Array:
    """S of a filter of 002's network, support chosen after ``step``, on average over filters.

    Half of them are active on their signal, with m = output_scale (1/T)(1 - 1/T) mu, and as many on
    that of each other class, with m = -output_scale mu/T^2. (Of the latter the share that is kept
    is taken from filters of either sign; they have a part 1/T of the energy.)
    """
    own = step.spread**2 * first_step.retained_share(keep, step)
    # what TopK keeps is noise, own signal, or signal of the T - 1 others
    others = np.asarray(keep, dtype=np.float64) - first_step.kept_noise(keep, step)
    others -= first_step.retained_share(keep, step, "all")
    return (step.output_scale * step.mu) ** 2 / 2 * (own + others / step.classes**4)


def noise_energy(keep: ArrayLike, step: FirstStep, samples: int) -> Array:
    """N of a filter of 002's network: ``samples`` are learnt, ``step.samples`` chose the support.

    The variance of a noise coordinate is output_scale^2 sigma^2 (1/T)(1 - 1/T)/2. That of signal
    coordinates is left out: it is the memory of how many samples each class has.
    """
    if samples < 1:
        raise bad_value("samples", samples, "must be at least 1")
    each = (step.output_scale * step.sigma) ** 2 * step.spread / 2
    return each * first_step.kept_noise(keep, step) / samples
