"""What one gradient step adds to a filter: the law of 002 App. I without free constants.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rarefy.core.errors import bad_value

LABELS = ("drawn", "balanced")


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
    def noise_gain(self) -> float:
        """v: standard deviation of what the step adds to a noise coordinate."""
        return self.lr * self.output_scale * self.sigma * math.sqrt(self.spread / 2 / self.samples)


# ----------------------------------------------------------------------- what App. I puts for them


def paper_signal_coordinate(step: FirstStep) -> float:
    """App. I: eta (T - 1) mu/(2 T^2 m), the exact gain halved for activity; w0 is left out."""
    return step.signal_gain / 2


def paper_noise_std(step: FirstStep) -> float:
    """App. I: eta/(2 T^2 m) x_1 with x_1 ~ N(0, T (T - 1) sigma_p^2). There is no n in it: it is
    sqrt(n/(2 T)) times the exact v, right only for n = 2 T."""
    t = step.classes
    return step.lr * step.output_scale * math.sqrt(t * (t - 1)) * step.sigma / (2 * t**2)
