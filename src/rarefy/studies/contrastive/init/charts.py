"""Pictures of ``contrast-init``."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from rarefy.core.picture import Curve, Lines, Picture
from rarefy.studies.contrastive.init import exact as law
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.theory import initial_sets as theory

FEWEST = 1e-5
"""Neurons a feature below which a count is left out of the picture."""
EXAMPLE = 0.8
"""Imbalance for which the captions give numbers."""
Points = tuple[np.ndarray, np.ndarray]
WIDEST = 1e12
"""Neurons above which a width is left out of the picture."""


def pictures(experiment: InitExperiment, results: xr.Dataset) -> list[Picture]:
    return [_sets(experiment, results), _widths(experiment), _against_d(experiment, results)]


def _shown(experiment: InitExperiment) -> list[int]:
    """Smallest, middle and largest d."""
    every = sorted(experiment.d)
    return sorted({every[0], every[len(every) // 2], every[-1]})


def _fine(experiment: InitExperiment) -> np.ndarray:
    """Ratios for the formulas, closer than those that were counted."""
    low, high = min(experiment.ratio), max(experiment.ratio)
    return np.unique(np.append(np.linspace(low, high, 57), experiment.ratio))


def _between(values: np.ndarray, low: float, high: float) -> np.ndarray:
    return np.where((values >= low) & (values <= high), values, np.nan)


def _spread(experiment: InitExperiment, ratio: float) -> str:
    """Range over d of the exact |M*_j| over Xi_1."""
    over = [law.exact_over(experiment, d, ratio) for d in experiment.d]
    return f"{min(over):.2g} to {max(over):.2g}"


def _sets(experiment: InitExperiment, results: xr.Dataset) -> Picture:
    ratio = _fine(experiment)
    panels = []
    for d in _shown(experiment):
        m = experiment.neurons(d)
        curves = []
        for name, symbol, chance, order, bound in (
            ("ordinary", "M", theory.ordinary_probability, theory.xi_2_order, "Xi_2"),
            ("lucky", "M*", theory.lucky_probability, theory.xi_1_order, "Xi_1"),
        ):
            mean = law.rows(results[name], d).mean(axis=0)
            exact = np.array([m * chance(d, r, experiment.gamma) for r in ratio])
            limit = order(m, d, ratio, experiment.gamma)
            counted = np.array(experiment.ratio)
            curves.append(Curve(f"{symbol} counted", counted, mean, role=name, style="points"))
            for label, values, style in (
                (f"{symbol} exact", exact, "dashed"),
                (f"{bound} of (31)", limit, "dotted"),
            ):
                seen = _between(values, FEWEST, np.inf)
                curves.append(Curve(label, ratio, seen, role=name, style=style))
        edge = theory.smallest_ratio(d, experiment.gamma)
        marks = [(edge, "none lucky below")] if ratio[0] <= edge <= ratio[-1] else []
        labels = ("imbalance, eps_min/eps_max", "neurons a feature")
        title = f"d = {d} features, m = {m} neurons"
        panels.append(Lines(curves, *labels, title=title, y_log=True, marks=marks))
    return Picture(
        "sets",
        "Ordinary and lucky neurons of a feature before training",
        "A neuron is ordinary for a feature (set M) when that feature has more than its share of "
        "the neuron's random start, and lucky (M*) when it has much more and no other feature has. "
        f"Points are mean counts in {results.sizes['seed']} runs of random networks, dashed lines "
        "the exact expectation, dotted lines the paper's orders: M should stay below a multiple of "
        "Xi_2, M* above a multiple of Xi_1. The first holds. Of the second, balanced features have "
        f"{_spread(experiment, 1.0)} times Xi_1, which a small constant would cover at these d; at "
        f"ratio {EXAMPLE:g} it is {_spread(experiment, EXAMPLE)} times Xi_1, and left of the mark "
        f"there is none. Counts of zero and expectations below {FEWEST:g} are left out.",
        panels,
    )


def _widths(experiment: InitExperiment) -> Picture:
    fine = _fine(experiment)

    def curves(label: str, x: np.ndarray, exact: list[float], order: ArrayLike) -> list[Curve]:
        seen = [_between(np.asarray(widths), 0, WIDEST) for widths in (exact, order)]
        return _exact_and(label, (x, seen[0]), "order", (x, seen[1]), "dotted")

    by_ratio: list[Curve] = []
    for d in _shown(experiment):
        exact = [law.width_needed(experiment, d, r) for r in fine]
        order = theory.minimum_width_order(d, fine, experiment.gamma)
        by_ratio += curves(f"d = {d}", fine, exact, order)
    features = _many_features(experiment)
    by_d: list[Curve] = []
    for ratio in _mild(experiment):
        exact = [law.width_needed(experiment, int(d), ratio) for d in features]
        orders = [theory.minimum_width_order(int(d), ratio, experiment.gamma) for d in features]
        by_d += curves(f"ratio {ratio:g}", features, exact, orders)
    used = Curve("000: 24 neurons", fine, np.full(len(fine), 24.0), role="baseline")
    what = "neurons needed, m"
    nine = law.width_needed(experiment, 9, 1.0)
    excess = ", ".join(f"{_excess(experiment, d):.1f} (d = {d})" for d in (9, 32, 256, 2048))
    return Picture(
        "width",
        "How wide a network must be for every feature to have a lucky neuron",
        f"Dashed: the smallest number of neurons with which, with {law.CHANCE:.0%} probability, no "
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


def _excess(experiment: InitExperiment, d: int) -> float:
    """By what imbalance multiplies the width needed, over what it multiplies the order by."""
    needed = law.width_needed(experiment, d, EXAMPLE) / law.width_needed(experiment, d, 1.0)
    order = [theory.minimum_width_order(d, ratio, experiment.gamma) for ratio in (EXAMPLE, 1.0)]
    return float(needed * order[1] / order[0])


def _exact_and(role: str, exact: Points, other: str, points: Points, style: str) -> list[Curve]:
    """The exact law, and what is held against it."""
    return [
        Curve(f"{role}, exact", *exact, role=role, style="dashed"),
        Curve(f"{role}, {other}", *points, role=role, style=style),
    ]


def _many_features(experiment: InitExperiment) -> np.ndarray:
    """d for the formulas, further than what was counted."""
    spaced = np.geomspace(min(experiment.d), max(8192, *experiment.d), 36)
    return np.unique(spaced.round().astype(int))


def _mild(experiment: InitExperiment) -> list[float]:
    """At most four of the ratios near balance, where lucky neurons can be counted."""
    near = [r for r in sorted(experiment.ratio) if r >= 0.7] or [max(experiment.ratio)]
    return near if len(near) <= 4 else [near[0], near[len(near) // 3], near[-2], near[-1]]


def _against_d(experiment: InitExperiment, results: xr.Dataset) -> Picture:
    features, counted = _many_features(experiment), sorted(experiment.d)
    over: list[Curve] = []
    others: list[Curve] = []
    for ratio in _mild(experiment):
        role = f"ratio {ratio:g}"
        steps = [theory.proof_steps(int(d), ratio, experiment.gamma) for d in features]
        exact = _between(np.array([step.lucky / step.high_order for step in steps]), FEWEST, np.inf)
        mean = law.lucky_over(experiment, results, ratio, counted).mean(axis=0)
        over += _exact_and(role, (features, exact), "counted", (np.array(counted), mean), "points")
        alone, gaussian = (
            _between(np.array(chances), FEWEST, 1)
            for chances in zip(*((s.others, s.others_gaussian) for s in steps), strict=True)
        )
        others += _exact_and(role, (features, alone), "(238)", (features, gaussian), "dotted")
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
            Lines(_carried(experiment, results), "features, d", what, x_log=True),
        ],
    )


def _carried(experiment: InitExperiment, results: xr.Dataset) -> list[Curve]:
    (bound,) = [b for b in law.upper_bounds(experiment) if "d^(1-r^2)" in b.over]
    counted = np.array(sorted(experiment.d))
    features = np.unique([*counted, 512, *law.MANY])
    curves = []
    for ratio in _mild(experiment):
        role = f"ratio {ratio:g}"
        exact = np.array([bound.exact(experiment, int(d), ratio) for d in features])
        mean = law.counted_over(experiment, results, bound, ratio).mean(axis=0)
        curves += _exact_and(role, (features, exact), "counted", (counted, mean), "points")
    return curves
