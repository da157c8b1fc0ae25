"""Laws of the noise's coordinates zeta (003 Sec. 2): symmetric, variance 1, sub-Gaussian.

A law is its quantile function. By symmetry only the lower half is needed where accuracy matters: a
size that |zeta| reaches with probability p is ``-quantile(p / 2)``, exact far into the tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from rarefy.core.errors import bad_value, unknown
from rarefy.core.rng import Draws

Quantile = Callable[[Tensor], Tensor]
Sampler = Callable[[Draws, str, Sequence[int], int], Tensor]

SYMMETRY_TOLERANCE = 1e-6
"""Largest |quantile(p) + quantile(1-p)|, relative to sizes above 1: float64 rounding of 1-p gives
under 1e-8 at the smallest p compared (2^-24)."""
VARIANCE_TOLERANCE = 1e-3
"""The variance is integrated with 1024 points per octave: a law with jumps is off by up to 3e-4."""
PROXY_LIMIT = 4.0
"""Largest variance proxy: the paper's sigma_p = Theta(1) read with the factor 4 of every O(1)."""
ENOUGH_POSITIVE = 0.4
"""Probability of zeta > c' that Condition 1(a) of 003 asks for."""
SMALLEST = 2.0**-50
"""Tails are looked at down to this probability; smaller ones count as impossible."""
TRUNCATED_AT = 2.0
"""Where "truncated" cuts the normal law, in its standard deviations before rescaling."""


@dataclass(frozen=True)
class Law:
    """A law by its quantile function, which maps float64 probabilities in (0, 1) elementwise;
    ``sampler`` draws from it directly where that is cheaper."""

    name: str
    quantile: Quantile
    sampler: Sampler | None = None

    def draw(self, draws: Draws, stream: str, shape: Sequence[int], step: int = 0) -> Tensor:
        """Independent values, (group, *shape)."""
        if self.sampler is not None:
            return self.sampler(draws, stream, shape, step)
        level = draws.uniform(stream, shape, step).double()
        return self.quantile(level).to(draws.dtype)

    def size(self, probability: Tensor) -> Tensor:
        """The size that |zeta| exceeds with ``probability`` in (0, 1), float64."""
        return -self.quantile(probability.double() / 2)

    def exceedance(self, size: float) -> float:
        """P[|zeta| >= size], found by bisection of the quantile function."""
        if size <= 0:
            return 1.0
        low, high = 0.0, 0.5
        for _ in range(100):
            middle = (low + high) / 2
            at = float(self.quantile(torch.tensor([middle], dtype=torch.float64)))
            low, high = (middle, high) if at <= -size else (low, middle)
        if high == 0.5:  # never lowered: half of the mass lies at or below -size
            return 1.0
        return 2 * low if 2 * low > SMALLEST else 0.0

    def threshold(self) -> float:
        """The largest c' with P[zeta > c'] >= 0.4 (a supremum where the law has atoms).

        Condition 1(a) of 003 holds if and only if this is more than 0.
        """
        level = torch.tensor([ENOUGH_POSITIVE * (1 - 1e-12)], dtype=torch.float64)
        return -float(self.quantile(level))


def law_of(law: str | Law | Quantile) -> Law:
    """A law by name, or any quantile function once it has passed the checks of the model."""
    if isinstance(law, Law):
        return law
    if isinstance(law, str):
        if law not in LAWS:
            raise unknown("law", law, LAWS)
        return LAWS[law]
    return _checked(law)


@lru_cache(maxsize=32)
def _checked(quantile: Quantile) -> Law:
    name = getattr(quantile, "__name__", type(quantile).__name__)
    check_quantile(quantile, name)
    return Law(name, quantile)


def check_quantile(quantile: Quantile, name: str = "law") -> None:
    """Refuse what is not the quantile function of a symmetric sub-Gaussian law of variance 1."""
    octave, points = torch.arange(1, 50, dtype=torch.float64), 1024
    inside = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    level = (2 ** -(octave[:, None] + 1)) * (1 + inside)  # (octave, point), all in (2^-50, 1/2)
    lower = quantile(level)
    if not isinstance(lower, Tensor) or lower.shape != level.shape:
        raise bad_value("law", name, "its quantile function must map a tensor elementwise")
    upper = quantile(1 - level[:24])
    if not bool(torch.isfinite(lower).all() and torch.isfinite(upper).all()):
        raise bad_value("law", name, "its quantiles must be finite for probabilities in (0, 1)")
    if bool((lower.flip(0).flatten().diff() < -SYMMETRY_TOLERANCE).any()):
        raise bad_value("law", name, "its quantile function must not decrease")
    lopsided = ((lower[:24] + upper).abs() / lower[:24].abs().clamp(min=1)).max().item()
    if lopsided > SYMMETRY_TOLERANCE:
        raise bad_value(
            "law",
            name,
            f"must be symmetric: quantile(p) + quantile(1-p) reaches {lopsided:.3g}, "
            f"allowed is {SYMMETRY_TOLERANCE:g}",
        )
    variance = 2 * (lower.square().mean(dim=1) * 2 ** -(octave + 1)).sum().item()
    if abs(variance - 1) > VARIANCE_TOLERANCE:
        raise bad_value(
            "law", name, f"must have variance 1 within {VARIANCE_TOLERANCE:g}, has {variance:.6g}"
        )
    proxy = variance_proxy(Law(name, quantile))
    if proxy > PROXY_LIMIT:
        raise bad_value(
            "law",
            name,
            f"must be sub-Gaussian: its variance proxy is {proxy:.3g}, at most {PROXY_LIMIT:g}",
        )


def variance_proxy(law: Law) -> float:
    """The smallest s with P[zeta >= t] <= exp(-t^2 / 2s) for all t reached with probability 2^-50
    or more: 1 or less for the normal law, growing without end in a heavy tail."""
    octaves = torch.linspace(1, 50, 49 * 16 + 1, dtype=torch.float64)
    octaves = octaves[1:]  # at p = 1/2 the median, 0, stands
    size = law.size(2 ** -(octaves - 1)).clamp(min=0)
    return (size.square() / (2 * octaves * math.log(2))).max().item()


def _normal_quantile(level: Tensor) -> Tensor:
    return torch.special.ndtri(level)


def _uniform_quantile(level: Tensor) -> Tensor:
    return math.sqrt(3) * (2 * level - 1)


def _sign_quantile(level: Tensor) -> Tensor:
    return torch.where(level < 0.5, -1.0, 1.0).to(level.dtype)


_BELOW = 0.5 * math.erfc(TRUNCATED_AT / math.sqrt(2))  # normal probability under -TRUNCATED_AT
_TRUNCATED_STD = math.sqrt(
    1
    - 2
    * TRUNCATED_AT
    * math.exp(-(TRUNCATED_AT**2) / 2)
    / math.sqrt(2 * math.pi)
    / (1 - 2 * _BELOW)
)


def _truncated_quantile(level: Tensor) -> Tensor:
    return torch.special.ndtri(_BELOW + (1 - 2 * _BELOW) * level) / _TRUNCATED_STD


LAWS = {
    law.name: law
    for law in (
        Law("gaussian", _normal_quantile, lambda draws, *place: draws.normal(*place)),
        Law("uniform", _uniform_quantile),  # on +-sqrt(3), as in 003 Fig. 3b
        Law("rademacher", _sign_quantile, lambda draws, *place: draws.sign(*place)),
        Law("truncated", _truncated_quantile),
    )
}
