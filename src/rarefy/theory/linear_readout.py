"""What a network without ReLU can reach on multi-view samples (004 App. B.2, remark 3).

Its scores are linear in the sum of a sample's patches. Remark 3 grants it the best weights there
can be: one sum per side, of the sample's parts along the side's common feature and the features
of its subclasses, with weights of our choice. Noise of all P patches adds up in it; features are in
s* patches of each kind only. Patch counts are the fixed ones, subclasses are equally frequent.

A network that answers with the largest of several outputs per side is not linear in that sum any
more, and can err less than the best readout by one sum: a little on easy samples, much on hard ones
where noise is weak.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from rarefy.core.errors import bad_value


@dataclass(frozen=True)
class LinearReadout:
    """subclasses: k, of each side; the rest as in ``rarefy.data.multi_view.MultiView``.

    A readout has weight 1 on the common feature of a side and ``weight`` on the features of each
    of its subclasses; a sample is put on the side whose sum is larger.
    """

    subclasses: int
    patches: int
    feature_patches: int
    sigma: float
    spread: float = 0.0
    distractors: int = 0
    distraction: float = 0.0
    strong: float = 0.0

    def __post_init__(self) -> None:
        for name in ("subclasses", "patches", "feature_patches"):
            if getattr(self, name) < 1:
                raise bad_value(name, getattr(self, name), "must be at least 1")
        if not 0 < self.sigma < math.inf:
            raise bad_value("sigma", self.sigma, "must be positive and finite")
        if not 0 <= self.spread < 1:
            raise bad_value("spread", self.spread, "must be in [0, 1)")

    @property
    def best_weight(self) -> float:
        """1/k: the largest (1 + w)/sqrt(1 + k w^2). The k - 1 subclass features that a sample
        lacks bring noise only, so the more there are, the less any of them may count. (It leaves
        out the spread of strengths, which is small beside the noise wherever errors are not.)"""
        return 1 / self.subclasses

    def easy_error(self, weight: float | None = None) -> float:
        """Share of easy samples on the wrong side, at the best weight unless one is given:
        Phi(-s* alpha sqrt(1 + 1/k)/(sigma sqrt(2P))) with strengths all alpha."""
        w = self._checked(self.best_weight if weight is None else weight)
        signal = self.feature_patches * (1 + w) * self._mean
        spread = self.feature_patches * (1 + w**2) * self._variance
        return _tail(signal, self.patches * self.sigma**2 * self._length(w) + spread)

    def hard_error(self, weight: float) -> float:
        """The same of hard samples: no common feature, ``distractors`` patches with the other
        side's, and one patch of strong noise."""
        w = self._checked(weight)
        signal = self.feature_patches * w * self._mean - self.distractors * self.distraction
        spread = self.feature_patches * w**2 * self._variance
        return _tail(signal, self._hard_noise * self._length(w) + spread)

    @property
    def hard_floor(self) -> float:
        """Least error on hard samples at any weight: that of a readout of subclass features alone.
        Signal over noise grows with the weight for ever, so it is approached and not reached."""
        signal = self.feature_patches * self._mean
        spread = self.feature_patches * self._variance
        return _tail(signal, 2 * self.subclasses * self._hard_noise + spread)

    @property
    def _hard_noise(self) -> float:
        return (self.patches - 1) * self.sigma**2 + self.strong**2

    @property
    def _mean(self) -> float:
        return (math.sqrt(1 + self.spread) + math.sqrt(1 - self.spread)) / 2

    @property
    def _variance(self) -> float:
        """Of one strength, uniform in [sqrt(1 - iota), sqrt(1 + iota)]; their sum is taken as
        Gaussian, which the noise it is added to is."""
        return (math.sqrt(1 + self.spread) - math.sqrt(1 - self.spread)) ** 2 / 12

    def _length(self, weight: float) -> float:
        """Squared length of the readout: both sides, features orthonormal."""
        return 2 * (1 + self.subclasses * weight**2)

    def _checked(self, weight: float) -> float:
        if not 0 <= weight < math.inf:
            raise bad_value("weight", weight, "must be finite and at least 0")
        return weight


def _tail(signal: float, variance: float) -> float:
    return float(special.ndtr(-signal / math.sqrt(variance)))
