"""Pictures of ``contrast-init``."""

from __future__ import annotations

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies.contrastive.init.exact import (
    CHANCE,
    MANY,
    counted_over,
    exact_over,
    rows,
    upper_bounds,
    width_needed,
)
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.theory import initial_sets as theory

FEWEST = 1e-5
"""Neurons a feature below which a count is left out of the picture."""
EXAMPLE = 0.8
"""Imbalance for which the captions give numbers."""
WIDEST = 1e12
"""Neurons above which a width is left out of the picture."""


def init_pictures(study: InitExperiment, results: xr.Dataset) -> list[Picture]:
    return [_sets(study, results), _widths(study), _against_d(study, results)]


def _shown(study: InitExperiment) -> list[int]:
    """Smallest, middle and largest d."""
    every = sorted(study.d)
    return sorted({every[0], every[len(every) // 2], every[-1]})


def _fine(study: InitExperiment) -> np.ndarray:
    """Ratios for the formulas, closer than those that were counted."""
    low, high = min(study.ratio), max(study.ratio)
    return np.unique(np.append(np.linspace(low, high, 57), study.ratio))


def _between(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.where((values >= low) & (values <= high), values, np.nan)


def _spread(study: InitExperiment, ratio: float) -> str:
    """Range over d of the exact |M*_j| over Xi_1."""
    over = [exact_over(study, d, ratio) for d in study.d]
    return f"{min(over):.2g} to {max(over):.2g}"


def _sets(study: InitExperiment, results: xr.Dataset) -> Picture:
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
        "Xi_2, M* above a multiple of Xi_1. The first holds. Of the second, balanced features have "
        f"{_spread(study, 1.0)} times Xi_1, which a small constant would cover at these d; at "
        f"ratio {EXAMPLE:g} it is {_spread(study, EXAMPLE)} times Xi_1, and left of the mark "
        f"there is none. Counts of zero and expectations below {FEWEST:g} are left out.",
        panels,
    )


def _widths(study: InitExperiment) -> Picture:
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
    excess = ", ".join(f"{_excess(study, d):.1f} (d = {d})" for d in (9, 32, 256, 2048))
    return Picture(
        "width",
        "How wide a network must be for every feature to have a lucky neuron",
        f"Dashed: the smallest number of neurons with which, with {CHANCE:.0%} probability, no "
        "feature is without a lucky neuron at the start. Dotted: the width at which the paper's "
        "lower bound Xi_1 reaches one neuron, d^((eps_max/eps_min)^2). The theorems that follow "
        "need a lucky neuron for each feature; the network of the paper's experiments is far "
        f"narrower than that (d = 9, balanced features: {nine:.0f} needed, 24 used). Imbalance "
        "multiplies the width needed by more than the order says: at ratio "
        f"{EXAMPLE:g} by {excess} times more. That is least in between: few features suffer "
        "because a share cannot exceed 1, many because another one gets too large. Widths above "
        f"{WIDEST:.0e} are left out.",
        [
            Lines([*by_ratio, used], "imbalance, eps_min/eps_max", what, y_log=True),
            Lines(by_d, "features, d", what, x_log=True, y_log=True),
        ],
    )


def _excess(study: InitExperiment, d: int) -> float:
    """By what imbalance multiplies the width needed, over what it multiplies the order by."""
    needed = width_needed(study, d, EXAMPLE) / width_needed(study, d, 1.0)
    order = [theory.minimum_width_order(d, ratio, study.gamma) for ratio in (EXAMPLE, 1.0)]
    return float(needed * order[1] / order[0])


def _exact_and_order(
    label: str, x: np.ndarray, exact: np.ndarray, order: np.ndarray
) -> list[Curve]:
    return [
        Curve(f"{label}, exact", x, _between(exact, 0, WIDEST), role=label, style="dashed"),
        Curve(f"{label}, order", x, _between(order, 0, WIDEST), role=label, style="dotted"),
    ]


def _many_features(study: InitExperiment) -> np.ndarray:
    """d for the formulas, further than what was counted."""
    return np.unique(np.geomspace(min(study.d), max(8192, *study.d), 36).round().astype(int))


def _mild(study: InitExperiment) -> list[float]:
    """At most four of the ratios near balance, where lucky neurons can be counted."""
    near = [r for r in sorted(study.ratio) if r >= 0.7] or [max(study.ratio)]
    return near if len(near) <= 4 else [near[0], near[len(near) // 3], near[-2], near[-1]]


def _against_d(study: InitExperiment, results: xr.Dataset) -> Picture:
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
    what = "largest |N_i| over d^(1-r^2)"
    return Picture(
        "against-d",
        "Two bounds against the number of features, further than networks were drawn",
        "Left: if the bound (31) held up to a constant, every curve would stay above some level. "
        "With balanced features (ratio 1) it falls only as slowly as 1/sqrt(log d), a factor that "
        "the proof has in (238) and drops in (239). With imbalance it turns down for good, but far "
        "beyond the networks counted when the imbalance is mild. Middle: "
        "the reason, the chance that no other feature exceeds its threshold when one is high. The "
        "proof takes it as 1, but it is about (1-p2)^(d-1) (dotted), which falls like "
        "exp(-d^(1-r^2)), faster than any power of d. Few features suffer from another effect: a "
        "share cannot exceed 1, which the Gaussian estimate (236) allows. Right: most features a "
        "neuron is ordinary for, over the upper bound d^(1-r^2) of Lemma B.2 (d). Balanced, it "
        "goes on growing like log d/log log d, as the largest of many counts does; no constant "
        "bounds it, though 4 does as far as counted.",
        [
            Lines(over, "features, d", "|M*_j| over Xi_1", x_log=True, y_log=True),
            Lines(others, "features, d", "P(no other is too high)", x_log=True, y_log=True),
            Lines(_carried(study, results), "features, d", what, x_log=True),
        ],
    )


def _carried(study: InitExperiment, results: xr.Dataset) -> list[Curve]:
    (bound,) = [b for b in upper_bounds(study) if "d^(1-r^2)" in b.over]
    counted = np.array(sorted(study.d))
    features = np.unique([*counted, 512, *MANY])
    curves = []
    for ratio in _mild(study):
        role = f"ratio {ratio:g}"
        exact = np.array([bound.exact(study, int(d), ratio) for d in features])
        mean = counted_over(study, results, bound, ratio).mean(axis=0)
        curves.append(Curve(f"{role}, exact", features, exact, role=role, style="dashed"))
        curves.append(Curve(f"{role}, counted", counted, mean, role=role, style="points"))
    return curves
