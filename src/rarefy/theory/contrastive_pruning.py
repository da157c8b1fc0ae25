"""What 000 predicts for magnitude pruning during contrastive training: formulas only.

``constant`` is C_z log log d / d, the growth per step of a feature with eps = 1 divided by the
learning rate: (1 - 1/|B|) E[z+ z] / tau in stage 1 (``stage_1_growth``). Rates are those *added*
by pruning, the difference of one pruned and one unpruned step from the same weights.
"""

from __future__ import annotations

from rarefy.theory.contrastive import Number


def minority_rate_order(eps: Number, alpha: Number, lr: float, constant: float) -> Number:
    """(15): neurons of the minority feature grow along it by eta eps^2 alpha C_z log log d / d,
    or more (Omega)."""
    return lr * eps**2 * alpha * constant


def other_rate_order(eps: Number, alpha: Number, lr: float, constant: float, d: int) -> Number:
    """(16): along any other feature neurons grow by eta eps^3 alpha C_z log log d / d^2, or less
    (O); eps is the minority's frequency."""
    return lr * eps**3 * alpha * constant / d


def elapsed_time(ratio: Number, eps: Number, alpha: Number, lr: float, constant: float) -> Number:
    """T5 - T4 of App. F.4, ((eps_max/eps) - 1) d / (eta alpha eps^2 C_z log log d), with
    ratio = eps/eps_max: the rate (15) times it takes a weight of eps/eps_max to 1."""
    return (1 / ratio - 1) / minority_rate_order(eps, alpha, lr, constant)


def pure_count_with_pruning_order(m: int, d: int) -> float:
    """Theorem 3.2, end: at least of order m/d neurons are pure in the minority feature."""
    return m / d
