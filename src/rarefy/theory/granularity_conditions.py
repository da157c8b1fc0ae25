"""The parameter choices of 004 App. B.3, line by line, for a finite setting.

Where a line has a power of log(d), it is taken as printed with constant 1; "polylog(d)" without a
power is read as log(d), the least it can be. c_0 lies in (0, 0.1): lines with it are asked for at
the end that is easier to meet.
"""

from __future__ import annotations

import math

from rarefy.core.errors import bad_value
from rarefy.theory.conditions import Condition

C_0 = 0.1
"""Largest c_0 (line 5)."""
LABELS = ("coarse", "fine")


def parameter_choices(
    *,
    labels: str,
    d: int,
    subclasses: int,
    patches: int,
    feature_patches: int,
    spread: float,
    sigma: float,
    distractors: int,
    distraction: tuple[float, float],
    strong: float,
    neurons: int,
    threshold: float,
    sigma_0: float,
    lr: float,
    batch: int,
) -> list[Condition]:
    """App. B.3, with the widths of App. C and G; ``labels`` "coarse" or "fine" decides what c_b and
    m should be. Names as in ``rarefy.data.multi_view.MultiView``."""
    if labels not in LABELS:
        raise bad_value("labels", labels, f"must be one of {', '.join(LABELS)}")
    if d < 3:
        raise bad_value("d", d, "must be at least 3: log(d) must exceed 1")
    log, k, s = math.log(d), subclasses, feature_patches
    base = 4 if labels == "coarse" else 2
    low, high = distraction
    return [
        Condition("k", k, ">=", log, "4: k >= polylog(d)"),
        Condition("k", k, "<=", d**0.4, "4: k <= d^0.4"),
        Condition("k", k, ">=", s * log**5, "4: k >= s* log^5(d)"),
        Condition("c_b", threshold, ">=", base**0.5, f"6: c_b = sqrt({base} + 2 c_0), c_0 > 0"),
        Condition(
            "c_b",
            threshold,
            "<=",
            (base + 2 * C_0) ** 0.5,
            f"6: c_b = sqrt({base} + 2 c_0), c_0 < {C_0}",
        ),
        Condition(
            "m", neurons, ">=", float(d) ** (base / 2), f"App. C, G: m = d^({base // 2} + 2 c_0)"
        ),
        Condition("iota", spread, "<=", 1 / log, "7: iota <= 1/polylog(d)"),
        Condition("iota_lower", low, ">=", log**-4, "8: weakest distraction >= 1/log^4(d)"),
        Condition(
            "s_dagger iota_upper", distractors * high, "<=", 1 / log, "8: distraction <= 1/log(d)"
        ),
        Condition("s_dagger", distractors, ">=", 1, "9: s_dagger >= 1"),
        Condition("s*", s, ">=", log**15, "10: s* = polylog(d) of degree above 15"),
        Condition(
            "sigma", sigma, "<=", 1 / (log**10 * d**0.5), "11: sigma = 1/(log^10(d) sqrt(d))"
        ),
        Condition(
            "sigma_strong", strong, ">=", log / d**0.5, "12: strong noise > polylog(d)/sqrt(d)"
        ),
        Condition("sigma_strong", strong, "<=", 1 / log, "12: strong noise <= 1/polylog(d)"),
        Condition("P sigma", patches * sigma, ">=", log, "13: P sigma > polylog(d)"),
        Condition(
            "sigma_0", sigma_0, "<=", 1 / (d**3 * s * log), "14: sigma_0 <= 1/(d^3 s* log d)"
        ),
        Condition("eta", lr, "<=", sigma_0, "14: eta of the order of sigma_0"),
        Condition("N", batch, ">=", k * d * log, "15: N >= k d polylog(d)"),
    ]


def smallest_log_dimension() -> float:
    """The least log(d) at which lines 4 and 10 leave any room for k: s* log^5(d) <= d^0.4 with s* =
    log^15(d), so log(d) >= 50 log log(d): about 282, a d of 123 digits."""
    from scipy import optimize  # (takes half a second)

    return float(optimize.brentq(lambda log: 0.4 * log - 20 * math.log(log), 100.0, 1000.0))
