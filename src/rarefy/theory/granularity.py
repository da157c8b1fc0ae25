"""What 004 predicts for labels of different granularity: formulas only.

Lengths of neurons are in units of sigma_0 unless said otherwise. ``threshold`` is c_b, ``neurons``
m (of one output), ``feature_patches`` s*, ``plus`` and ``minus`` k_+ and k_-, ``per_side`` the
number of labels per side: 1 is coarse, k fine, and any divisor or multiple of k lies between or
beyond. Formulas are for the side +; exchange ``plus`` and ``minus`` for the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy import special

from rarefy.core.errors import bad_value

# --------------------------------------------------------------------------------- initial geometry


def margins(
    d: int, threshold: float, spread: float = 0.0, noise: float = 0.0
) -> tuple[float, float]:
    """c_b sqrt(log d -+ 1/log^5 d): what a neuron's part along a feature must reach to be perhaps,
    and to be surely, open on its patches (Def. C.1, G.1).

    The printed margin is there for strengths and noise, and covers them at very large d only. With
    ``spread`` (iota) and ``noise`` (the largest |<w, zeta>| to be reckoned with) it is what they
    need at any d.
    """
    if d < 3:
        raise bad_value("d", d, "must be at least 3: log(d) - 1/log^5(d) must be positive")
    if not 0 < threshold < math.inf:
        raise bad_value("threshold", threshold, "must be positive and finite")
    if not 0 <= spread < 1:
        raise bad_value("spread", spread, "must be in [0, 1)")
    log = math.log(d)
    low, high = threshold * math.sqrt(log - log**-5), threshold * math.sqrt(log + log**-5)
    return (low - noise) / math.sqrt(1 + spread), (high + noise) / math.sqrt(1 - spread)


@dataclass(frozen=True)
class InitialSets:
    """Exact chances of one neuron, and what follows for m of them (App. C Prop. 1, G.1 Prop. 2).

    ``sure`` is p_1 of (20), ``possible`` p_2 of (21). The intervals printed there have half of
    every Gaussian tail, as (19) has; the exact values lie above them.
    """

    d: int
    neurons: int
    sure: float
    possible: float

    @property
    def detector(self) -> float:
        """p_1 (1 - p_2)^(d-1): to be in S*(v), open on v and on no other word (22)."""
        return self.detector_among(self.d)

    def detector_among(self, words: int) -> float:
        """The same, if only so many words of the dictionary count: those that occur, say."""
        return self.sure * (1 - self.possible) ** (words - 1)

    @property
    def detectors(self) -> float:
        """Expected size of S*(v)."""
        return self.neurons * self.detector

    @property
    def able(self) -> float:
        """Expected size of S(v)."""
        return self.neurons * self.possible

    @property
    def words(self) -> float:
        """Expected size of U_r: words of the dictionary that one neuron may be open on."""
        return self.d * self.possible

    def none(self, words: int | None = None) -> float:
        """Chance that a feature has no detector at all; exclusive among ``words``, all d unless
        given."""
        chance = self.detector_among(self.d if words is None else words)
        return math.exp(self.neurons * math.log1p(-chance))


def initial_sets(
    d: int, neurons: int, threshold: float, spread: float = 0.0, noise: float = 0.0
) -> InitialSets:
    """The sets of Def. C.1 and G.1 for any c_b, d and m, with the margins above."""
    if neurons < 1:
        raise bad_value("neurons", neurons, "must be at least 1")
    low, high = margins(d, threshold, spread, noise)
    return InitialSets(d, neurons, float(special.ndtr(-high)), float(special.ndtr(-low)))


def initial_response(
    d: int, neurons: int, threshold: float, strength: float = 1.0, reach: float = 0.0
) -> float:
    """Expected sum over neurons of ReLU(<w, alpha v> + b), without noise: the same for every
    feature (8). ``reach``: only of neurons whose part along v is at least that."""
    level = threshold * math.sqrt(math.log(d))
    least = max(level / strength, reach)
    density, tail = _density(least), float(special.ndtr(-least))
    return neurons * (strength * density - level * tail)


def initial_share(
    d: int, threshold: float, words: int | None = None, spread: float = 0.0, noise: float = 0.0
) -> float:
    """Share of the initial response to a feature that its detectors carry (7), if they must be
    exclusive among ``words`` (all d of the dictionary unless given)."""
    _, high = margins(d, threshold, spread, noise)
    sets = initial_sets(d, 1, threshold, spread, noise)
    alone = (1 - sets.possible) ** ((d if words is None else words) - 1)
    part = initial_response(d, 1, threshold, reach=high)
    return alone * part / initial_response(d, 1, threshold)


# ------------------------------------------------------------------------------------ phase 1 rates

FINE_COMMON = (1 / 4, 2 / 3)
"""Growth of common detectors under fine labels, in units of eta s*/(2 k P), until T_0 (202)."""

LEAST_RESIDUAL = 0.8
"""Least of 1 - logit over its initial 1/2 under coarse labels while a sample's own score is below
log(3/2), (1 - 3/5)/(1/2): how far growth may fall behind the first step's (Lemma D.2 is for scores
below 1/d, where it may not)."""


def mean_strength(spread: float) -> float:
    """Mean of strengths that are uniform in [sqrt(1 - iota), sqrt(1 + iota)]."""
    return (math.sqrt(1 - spread) + math.sqrt(1 + spread)) / 2


@dataclass(frozen=True)
class Rates:
    """Growth per step along an output's own common and subclass features, of their detectors in it,
    while all scores are equal: each output is then believed with probability 1/outputs (Lemma D.2).
    """

    common: float
    subclass: float

    @property
    def ratio(self) -> float:
        """common over subclass: k_+ with coarse labels (9), k/(2k - 1) with fine ones (12)."""
        return self.common / self.subclass


def first_rates(
    *,
    lr: float,
    feature_patches: float,
    patches: int,
    plus: int,
    minus: int,
    per_side: int,
    spread: float = 0.0,
) -> Rates:
    """Coarse: eta s*/(4P) and that over k_+ (33), (35). Fine: eta s*/(2 k P) times 1/2 and times
    1 - 1/(2k), in the middle of what (202) and (205) allow.

    With L labels per side a common feature's detectors are pulled by 1/(2L) of all samples and
    pushed, with weight 1/outputs, by the half that has the feature; a subclass's are pulled by
    1/(2 k q) and pushed by 1/(2k), q labels per subclass.
    """
    _check_labels(plus, minus, per_side)
    unit = lr * mean_strength(spread) * feature_patches / (2 * patches)
    outputs = 2 * per_side
    pieces = max(1, per_side // plus)
    return Rates(
        common=unit * (1 / per_side - 1 / outputs),
        subclass=unit / plus * (1 / pieces - 1 / outputs),
    )


def phase_1_steps(
    rates: Rates, detectors: float, feature_patches: float, target: float = math.log(1.5)
) -> float:
    """Steps until a sample's own score reaches ``target`` (B of Def. G.2, at most log(3/2)), if
    ``detectors`` neurons per feature grow at the initial rates (Corollaries D.1.1 and G.2.1)."""
    return target / (feature_patches * detectors * (rates.common + rates.subclass))


# ---------------------------------------------------------------------------------- final responses


def coarse_common_order(d: int) -> float:
    """log d: a coarse network's final score from common-feature patches, s* of them (Lemma E.4,
    E.5); (10) has it for a single patch."""
    return math.log(d)


def _check_labels(plus: int, minus: int, per_side: int) -> None:
    for name, value in (("plus", plus), ("minus", minus), ("per_side", per_side)):
        if value < 1:
            raise bad_value(name, value, "must be at least 1")
    for side in (plus, minus):
        if side % per_side and per_side % side:
            raise bad_value("per_side", per_side, f"must divide k={side} or be a multiple of it")


def _density(x: float) -> float:
    """Of a standard normal."""
    return math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
