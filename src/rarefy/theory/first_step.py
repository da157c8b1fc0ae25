"""Who survives TopK after one gradient step: the law of 002 App. I without free constants.

Filter (j, r) starts as w0 ~ N(0, sigma_0^2 I). While all logits are 1/T, sample i pulls it with
g_i = 1[y_i = j] - 1/T, through the patches it is active on (ReLU' = 1[<w0, x> >= 0]). With
s = lr * output_scale one step gives

    own signal coordinate j      w0 + s (n_j/n) (1 - 1/T) mu   if w0 >= 0, else w0
    signal coordinate of tau     w0 - s (n_tau/n) mu/T         if w0 >= 0, else w0
    noise coordinate l           w0 + (s/n) sum over active i of g_i xi_il

*The noise sum.* Write xi_i = sigma (u_i w0/|w0| + rest): only u_i decides whether i is active, and
the rest is Gaussian and independent of it. So given who is active the noise coordinates are
Gaussian with variance (s sigma/n)^2 Q, Q = A (1 - 1/T)^2 + B/T^2, from A active samples of class j
and B active others. On average Q = n (1/T)(1 - 1/T)/2, hence

    v^2 = (s sigma)^2 (1/T)(1 - 1/T)/(2 n):   the sum of n noises over n falls like 1/sqrt(n).

Activity does correlate with the coordinate: E[1[active] xi_il] = sigma w0_l/(|w0| sqrt(2 pi)). It
enters times sum g_i = n_j - n/T, so its mean is 0; with drawn labels its square makes up exactly
for the variance 1/2 - 1/(2 pi) that activity leaves along w0, and sigma_0^2 + v^2 is the exact
variance of a noise coordinate, whatever d. With balanced labels one direction of d - T has less.

Not neglected: A, n_j and n_tau differ from filter to filter (A by 28 % of v^2 at n = 200, T = 10);
the law is averaged over them by Gauss quadrature of the binomials. Neglected: B is put at its mean
and the logits are not quite equal.

*The window.* Under a fixed support a filter can only learn its signal if coordinate j was kept and
is active. The logit F_y(x_i) then gains, per step and in units of s output_scale (1 - logit)/n,

    from the signal   n_y mu^2           for each filter that kept j and is active on mu_y,
    from the noise    |xi_i kept|^2      for each filter that is active on xi_i (half of them),

so the two are equal where (n/T) mu^2 P(kept | active) = sigma^2 E[kept noise coordinates]; at K = d
the ratio is the n SNR^2/T of Prop. 5.2 (with d - T for d).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rarefy.core.errors import bad_value
from rarefy.theory.ranks import Array, RankTally, binomial_law, binomial_nodes

Pairs = tuple[tuple[float, float], ...]
"""Values with their probabilities."""
LABELS = ("drawn", "balanced")
GROUPS = ("active", "inactive", "all")
_FAR = 9.0
"""Standard deviations beyond which an initial weight is not looked for."""


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """The setting of one full-batch step from N(0, sigma_0^2) (002 Def. 3.1, eq. 6)."""

    classes: int
    samples: int
    d: int
    mu: float
    sigma: float
    sigma_0: float
    lr: float
    output_scale: float
    labels: str = "drawn"

    def __post_init__(self) -> None:
        if self.classes < 2:
            raise bad_value("classes", self.classes, "must be at least 2")
        if self.d <= self.classes:
            raise bad_value("d", self.d, f"must be more than classes={self.classes}")
        if self.samples < 1:
            raise bad_value("samples", self.samples, "must be at least 1")
        for name in ("mu", "sigma_0", "lr", "output_scale"):
            if not 0 < getattr(self, name) < math.inf:
                raise bad_value(name, getattr(self, name), "must be finite and more than 0")
        if not 0 <= self.sigma < math.inf:
            raise bad_value("sigma", self.sigma, "must be finite and at least 0")
        if self.labels not in LABELS:
            raise bad_value("labels", self.labels, f"must be one of {', '.join(LABELS)}")
        if self.labels == "balanced" and self.samples < self.classes:
            raise bad_value("samples", self.samples, "balanced needs one per class at least")

    @property
    def spread(self) -> float:
        """(1/T)(1 - 1/T): variance of g_i, and mean pull of a filter's own signal."""
        return (1 - 1 / self.classes) / self.classes

    @property
    def signal_gain(self) -> float:
        """What an active own signal coordinate gains, on average over n_j."""
        return self.lr * self.output_scale * self.spread * self.mu

    @property
    def other_loss(self) -> float:
        """What an active signal coordinate of another class loses, on average over n_tau."""
        return self.lr * self.output_scale * self.mu / self.classes**2

    @property
    def noise_gain(self) -> float:
        """v: standard deviation of what the step adds to a noise coordinate."""
        return self.lr * self.output_scale * self.sigma * math.sqrt(self.spread / 2 / self.samples)


# ---------------------------------------------------------------------------- what TopK then keeps


def retained_share(keep: ArrayLike, step: FirstStep, group: str = "active") -> Array:
    """P(own signal coordinate among the ``keep`` largest of its filter), for the filters of a
    ``group``: "active" on their signal, "inactive" (these never learn it), or "all"."""
    if group not in GROUPS:
        raise bad_value("group", group, f"must be one of {', '.join(GROUPS)}")
    laws = rank_laws(step)
    law = (laws.active + laws.inactive) / 2 if group == "all" else getattr(laws, group)
    return _below(law, keep, step)


def kept_noise(keep: ArrayLike, step: FirstStep) -> Array:
    """Expected number of noise coordinates among the ``keep`` largest: the kept noise energy of a
    fresh sample, in units of sigma^2."""
    own = retained_share(keep, step, "all")
    others = _below(rank_laws(step).other, keep, step)
    signals = own + (step.classes - 1) * others
    return np.maximum(np.asarray(keep, dtype=np.float64) - signals, 0.0)


def growth_ratio(keep: ArrayLike, step: FirstStep) -> Array:
    """Growth of the signal's part of a training logit over that of the noise's, support fixed."""
    with np.errstate(divide="ignore"):
        signal = step.samples / step.classes * step.mu**2 * retained_share(keep, step)
        return signal / (step.sigma**2 * kept_noise(keep, step))


def lower_keep(step: FirstStep, share: float = 0.5, group: str = "active") -> int:
    """Smallest K at which ``share`` of the filters of a group keep their signal coordinate."""
    if not 0 < share < 1:
        raise bad_value("share", share, "must lie between 0 and 1")
    every = retained_share(np.arange(1, step.d + 1), step, group)
    return int(np.argmax(every >= share)) + 1


def upper_keep(step: FirstStep) -> int:
    """Largest K at which the signal's part still grows as fast as the noise's; 0 if none."""
    good = growth_ratio(np.arange(1, step.d + 1), step) >= 1
    return int(np.flatnonzero(good)[-1]) + 1 if good.any() else 0


# ------------------------------------------------------------------------------------ law of ranks


class RankLaws(NamedTuple):
    """P(exactly k of the other d - 1 coordinates are larger in magnitude), k = 0 .. d - 1."""

    active: Array
    """for the own signal coordinate where w0_j >= 0"""
    inactive: Array
    """for the own signal coordinate where w0_j < 0"""
    other: Array
    """for a signal coordinate of another class, any sign"""


@lru_cache(maxsize=512)
def rank_laws(step: FirstStep) -> RankLaws:
    """By quadrature over the initial weight and the counts of samples, binomial in the rest; good
    to about 1e-4 (``other``: 1e-3)."""
    active, inactive, other = (RankTally(step.d - step.classes, step.classes - 1) for _ in "aio")
    nodes, weight = np.polynomial.legendre.leggauss(math.ceil(20 * math.sqrt(step.d)))
    start = step.sigma_0 * _FAR / 2 * (nodes + 1)  # |w0|
    half = weight * np.exp(-((start / step.sigma_0) ** 2) / 2)
    half /= half.sum()
    falls = _falls(step)
    moved = [(start, 0.5), *((np.abs(start - fall), p / 2) for fall, p in falls)]
    for noise_std, chance, gains in _mixture(step):
        unit = noise_std * math.sqrt(2)
        inactive.add(chance * half, special.erfc(start / unit), _signals_above(step, start))
        for gain, p in gains:
            size = start + gain
            above = _signals_above(step, size)
            active.add(chance * p * half, special.erfc(size / unit), above)
        for size, p in moved:
            above = _signals_above(step, size, gains)
            other.add(chance * p * half, special.erfc(size / unit), above)
    return RankLaws(active.law(), inactive.law(), other.law())


def _mixture(step: FirstStep) -> Iterator[tuple[float, float, Pairs]]:
    """Over A: (standard deviation of a noise coordinate, probability, the gains of the signal with
    their probabilities over n_j)."""
    n, pull = step.samples, 1 / step.classes
    move = step.lr * step.output_scale / n
    drawn = step.labels == "drawn"
    for a, chance in binomial_nodes(n, pull / 2) if drawn else binomial_nodes(n * pull, 0.5):
        # the inactive samples of the class, given the active ones
        rest = binomial_nodes(n - a, pull / (2 - pull)) if drawn else ((n * pull - a, 1.0),)
        energy = a * (1 - pull) ** 2 + n * (1 - pull) / 2 * pull**2
        noise = move * step.sigma * math.sqrt(energy)
        unit = move * (1 - pull) * step.mu
        yield math.hypot(step.sigma_0, noise), chance, tuple((unit * (a + c), p) for c, p in rest)


def _falls(step: FirstStep) -> Pairs:
    """(what an active signal coordinate of another class loses, probability) over n_tau."""
    if step.labels == "balanced":
        return ((step.other_loss, 1.0),)
    unit = step.other_loss * step.classes / step.samples
    return tuple((unit * c, p) for c, p in binomial_nodes(step.samples, 1 / step.classes))


def _signals_above(step: FirstStep, size: Array, gains: Pairs = ()) -> Array:
    """P(k signal coordinates exceed ``size``), (node, classes): those of the T - 1 other classes,
    or, with the ``gains`` of the own one, of T - 2 others and the own one."""
    unit = step.sigma_0
    inactive = special.ndtr(-size / unit)  # unmoved
    above = inactive.copy()
    for fall, chance in _falls(step):
        through = np.maximum(special.ndtr((fall - size) / unit) - 0.5, 0.0)  # zero, below -size
        above += chance * (special.ndtr(-(size + fall) / unit) + through)
    law = binomial_law(step.classes - (2 if gains else 1), above.clip(max=1.0))
    if not gains:
        return law
    own = inactive + sum(p * special.ndtr(-np.maximum(size - g, 0) / unit) for g, p in gains)
    wide = np.pad(law, ((0, 0), (1, 1)))
    return wide[:, 1:] * (1 - own)[:, None] + wide[:, :-1] * own[:, None]


def _below(law: Array, keep: ArrayLike, step: FirstStep) -> Array:
    """P(rank < keep)."""
    k = np.asarray(keep)
    if k.dtype.kind not in "iu" or (k < 1).any() or (k > step.d).any():
        raise bad_value("keep", keep, f"must be whole numbers between 1 and d={step.d}")
    return np.cumsum(law).clip(max=1.0)[k - 1]


# ----------------------------------------------------------------------- what App. I puts for them


def paper_signal_coordinate(step: FirstStep) -> float:
    """App. I: eta (T - 1) mu/(2 T^2 m), the exact gain halved for activity; w0 is left out."""
    return step.signal_gain / 2


def paper_noise_std(step: FirstStep) -> float:
    """App. I: eta/(2 T^2 m) x_1 with x_1 ~ N(0, T (T - 1) sigma_p^2). There is no n in it: it is
    sqrt(n/(2 T)) times the exact v, right only for n = 2 T."""
    t = step.classes
    return step.lr * step.output_scale * math.sqrt(t * (t - 1)) * step.sigma / (2 * t**2)
