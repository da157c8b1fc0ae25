"""Pictures and tables of ``contrast-init``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.studies._init_verdicts import CHANCE, rows, width_needed
from rarefy.theory import initial_sets as theory

if TYPE_CHECKING:
    from rarefy.studies.contrast_init import ContrastInit

FEWEST = 1e-5
"""Neurons a feature below which a count is left out of the picture."""
WIDEST = 1e12
"""Neurons above which a width is left out of the picture."""


def init_pictures(study: ContrastInit, results: xr.Dataset) -> list[Picture]:
    return [_sets(study, results), _widths(study), _against_d(study, results)]


def init_tables(study: ContrastInit, results: xr.Dataset) -> list[Table]:
    return [_expected(study, results), _steps(study)]


def _shown(study: ContrastInit) -> list[int]:
    """Smallest, middle and largest d."""
    every = sorted(study.d)
    return sorted({every[0], every[len(every) // 2], every[-1]})


def _fine(study: ContrastInit) -> np.ndarray:
    """Ratios for the formulas, closer than those that were counted."""
    low, high = min(study.ratio), max(study.ratio)
    return np.unique(np.append(np.linspace(low, high, 57), study.ratio))


def _between(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.where((values >= low) & (values <= high), values, np.nan)


def _sets(study: ContrastInit, results: xr.Dataset) -> Picture:
    ratio = _fine(study)
    panels = []
    for d in _shown(study):
        m = study.neurons(d)
        curves = []
        for name, symbol, chance, order, bound in (
            ("ordinary", "M", theory.ordinary_probability, theory.xi_2_order, "Xi_2"),
            ("lucky", "M*", theory.lucky_probability, theory.xi_1_order, "Xi_1"),
        ):
            mean = rows(results[name], d).mean(axis=0)
            exact = np.array([m * chance(d, r, study.gamma) for r in ratio])
            limit = order(m, d, ratio, study.gamma)
            counted = np.array(study.ratio)
            curves += [
                Curve(f"{symbol} counted", counted, mean, role=name, style="points"),
                Curve(
                    f"{symbol} exact",
                    ratio,
                    _between(exact, FEWEST, np.inf),
                    role=name,
                    style="dashed",
                ),
                Curve(
                    f"{bound} of (31)",
                    ratio,
                    _between(limit, FEWEST, np.inf),
                    role=name,
                    style="dotted",
                ),
            ]
        edge = theory.smallest_ratio(d, study.gamma)
        marks = [(edge, "none lucky below")] if ratio[0] <= edge <= ratio[-1] else []
        panels.append(
            Lines(
                curves,
                "imbalance, eps_min/eps_max",
                "neurons a feature",
                title=f"d = {d} features, m = {m} neurons",
                y_log=True,
                marks=marks,
            )
        )
    return Picture(
        "sets",
        "Ordinary and lucky neurons of a feature before training",
        "A neuron is ordinary for a feature (set M) when that feature has more than its share of "
        "the neuron's random start, and lucky (M*) when it has much more and no other feature has. "
        f"Points are mean counts in {results.sizes['seed']} runs of random networks, dashed lines "
        "the exact expectation, dotted lines the paper's orders: M should stay below a multiple of "
        "Xi_2, M* above a multiple of Xi_1. The first holds. The second does not: lucky neurons "
        "fall far below Xi_1 as soon as features are imbalanced, and left of the mark there is "
        f"none. Counts of zero and expectations below {FEWEST:g} are left out.",
        panels,
    )


def _widths(study: ContrastInit) -> Picture:
    fine = _fine(study)
    by_ratio: list[Curve] = []
    for d in _shown(study):
        exact = np.array([width_needed(study, d, r) for r in fine])
        order = theory.minimum_width_order(d, fine, study.gamma)
        by_ratio += _exact_and_order(f"d = {d}", fine, exact, order)
    features = _many_features(study)
    by_d: list[Curve] = []
    for ratio in _mild(study):
        exact = np.array([width_needed(study, int(d), ratio) for d in features])
        order = np.array([theory.minimum_width_order(int(d), ratio, study.gamma) for d in features])
        by_d += _exact_and_order(f"ratio {ratio:g}", features, exact, order)
    used = Curve("000: 24 neurons", fine, np.full(len(fine), 24.0), role="baseline")
    what = "neurons needed, m"
    nine = width_needed(study, 9, 1.0)
    return Picture(
        "width",
        "How wide a network must be for every feature to have a lucky neuron",
        f"Dashed: the smallest number of neurons with which, with {CHANCE:.0%} probability, no "
        "feature is without a lucky neuron at the start. Dotted: the width at which the paper's "
        "lower bound Xi_1 reaches one neuron, d^((eps_max/eps_min)^2). The theorems that follow "
        "need a lucky neuron for each feature; the network of the paper's experiments is far "
        f"narrower than that (d = 9, balanced features: {nine:.0f} needed, 24 used). Imbalance "
        "multiplies the width needed by much more than the order says, and the more so the more "
        f"features there are. Widths above {WIDEST:.0e} are left out.",
        [
            Lines([*by_ratio, used], "imbalance, eps_min/eps_max", what, y_log=True),
            Lines(by_d, "features, d", what, x_log=True, y_log=True),
        ],
    )


def _exact_and_order(
    label: str, x: np.ndarray, exact: np.ndarray, order: np.ndarray
) -> list[Curve]:
    return [
        Curve(f"{label}, exact", x, _between(exact, 0, WIDEST), role=label, style="dashed"),
        Curve(f"{label}, order", x, _between(order, 0, WIDEST), role=label, style="dotted"),
    ]


def _many_features(study: ContrastInit) -> np.ndarray:
    """d for the formulas, further than what was counted."""
    return np.unique(np.geomspace(min(study.d), max(8192, *study.d), 36).round().astype(int))


def _mild(study: ContrastInit) -> list[float]:
    """At most four of the ratios near balance, where lucky neurons can be counted."""
    near = [r for r in sorted(study.ratio) if r >= 0.7] or [max(study.ratio)]
    return near if len(near) <= 4 else [near[0], near[len(near) // 3], near[-2], near[-1]]


def _against_d(study: ContrastInit, results: xr.Dataset) -> Picture:
    features, counted = _many_features(study), np.array(sorted(study.d))
    over: list[Curve] = []
    others: list[Curve] = []
    for ratio in _mild(study):
        place, role = study.ratio.index(ratio), f"ratio {ratio:g}"
        steps = [theory.proof_steps(int(d), ratio, study.gamma) for d in features]
        exact = np.array([step.lucky / step.high_order for step in steps])
        mean = [
            rows(results["lucky"], int(d))[:, place].mean()
            / theory.xi_1_order(study.neurons(int(d)), int(d), ratio, study.gamma)
            for d in counted
        ]
        shown = _between(exact, FEWEST, np.inf)
        over.append(Curve(f"{role}, exact", features, shown, role=role, style="dashed"))
        over.append(Curve(f"{role}, counted", counted, np.array(mean), role=role, style="points"))
        shown = _between(np.array([step.others for step in steps]), FEWEST, 1)
        others.append(Curve(f"{role}, exact", features, shown, role=role, style="dashed"))
        shown = _between(np.array([step.others_gaussian for step in steps]), FEWEST, 1)
        others.append(Curve(f"{role}, (238)", features, shown, role=role, style="dotted"))
    return Picture(
        "against-d",
        "The lower bound on lucky neurons, against the number of features",
        "Left: if the bound (31) held up to a constant, every curve would stay above some level. "
        "With balanced features (ratio 1) it falls only as slowly as 1/sqrt(log d), a factor that "
        "the proof has in (238) and drops in (239). With imbalance it turns down for good. Right: "
        "the reason, the chance that no other feature exceeds its threshold when one is high. The "
        "proof takes it as 1, but it is about (1-p2)^(d-1) (dotted), which falls like "
        "exp(-d^(1-r^2)), faster than any power of d. Few features suffer from another effect: a "
        "share cannot exceed 1, which the Gaussian estimate (236) allows.",
        [
            Lines(over, "features, d", "|M*_j| over Xi_1", x_log=True, y_log=True),
            Lines(others, "features, d", "P(no other is too high)", x_log=True, y_log=True),
        ],
    )


def _expected(study: ContrastInit, results: xr.Dataset) -> Table:
    table: list[list[object]] = []
    for d in study.d:
        m = study.neurons(d)
        for place, ratio in enumerate(study.ratio):
            p = theory.lucky_probability(d, ratio, study.gamma)
            width = width_needed(study, d, ratio)
            table.append(
                [
                    d,
                    m,
                    f"{ratio:g}",
                    f"{m * theory.ordinary_probability(d, ratio, study.gamma):.3g}",
                    f"{rows(results['ordinary'], d)[:, place].mean():.3g}",
                    f"{m * p:.3g}",
                    f"{rows(results['lucky'], d)[:, place].mean():.3g}",
                    f"{float(theory.xi_1_order(m, d, ratio, study.gamma)):.3g}",
                    f"{width:.4g}" if math.isfinite(width) else "none is enough",
                    f"{float(theory.minimum_width_order(d, ratio, study.gamma)):.4g}",
                ]
            )
    lowest = ", ".join(f"{theory.smallest_ratio(d, study.gamma):.2f} at d={d}" for d in study.d)
    return Table(
        "expected",
        "Ordinary and lucky neurons a feature, and the width that gives each a lucky one",
        f"Exact expectations beside counts in {results.sizes['seed']} runs of several networks. "
        f"The last two columns: neurons needed so that every feature has a lucky one with "
        f"{CHANCE:.0%} probability, and the width the paper's order asks for. Below a ratio of "
        f"{lowest} no neuron can be lucky, however many there are.",
        [
            "d",
            "m",
            "ratio",
            "|M_j| exact",
            "counted",
            "|M*_j| exact",
            "counted",
            "Xi_1",
            "width needed",
            "width by order",
        ],
        table,
    )


def _steps(study: ContrastInit) -> Table:
    table: list[list[object]] = []
    for d in study.d:
        for ratio in study.ratio:
            steps = theory.proof_steps(d, ratio, study.gamma)
            if steps.high == 0:
                continue
            table.append(
                [
                    d,
                    f"{ratio:g}",
                    *(f"{value:.3g}" for value in steps),
                    f"{steps.lucky / steps.high_order:.3g}",
                ]
            )
    return Table(
        "steps",
        "Where the proof of (31) leaves the exact law",
        "P(A): the share of feature j is high enough, exactly, with the norm replaced by its mean "
        "as in (236), and the order d^(-c_1/2) given to it. P(B): no other share is too high, "
        "exactly (given A) and as (1 - p_2)^(d-1); (238) takes it as 1. Last column: exact lucky "
        "probability over the order. Rows where no neuron can be lucky are left out.",
        [
            "d",
            "ratio",
            "P(A)",
            "P(A) Gaussian",
            "order",
            "P(B)",
            "P(B) Gaussian",
            "lucky",
            "lucky/order",
        ],
        table,
    )
