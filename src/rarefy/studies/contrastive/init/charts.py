"""Pictures and the table of ``contrast-init``."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Curve, Lines, Picture, Table
from rarefy.measure.estimates import finite_mean
from rarefy.studies.contrastive.init import exact as law
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.theory import initial_sets as theory

FEWEST = 1e-5
"""Neurons a feature below which a count is left out of the picture."""


def pictures(experiment: InitExperiment, results: xr.Dataset) -> list[Picture]:
    return [_sets(experiment, results), _against_d(experiment, results)]


def _above(values: np.ndarray) -> np.ndarray:
    return np.where(values >= FEWEST, values, np.nan)


def _sets(experiment: InitExperiment, results: xr.Dataset) -> Picture:
    counted, features = np.array(experiment.ratio), sorted(experiment.d)
    ratio = np.unique(np.append(np.linspace(counted.min(), counted.max(), 57), counted))
    panels = []
    for d in sorted({features[0], features[len(features) // 2], features[-1]}):
        m, curves = experiment.neurons(d), []
        for name, symbol, order, bound in (
            ("ordinary", "M", theory.xi_2_order, "Xi_2"),
            ("lucky", "M*", theory.xi_1_order, "Xi_1"),
        ):
            mean = finite_mean(law.rows(results[name], d))
            exact = np.array([law.expected(experiment, name, d, r) for r in ratio])
            limit = order(m, d, ratio, experiment.gamma)
            curves += [
                Curve(f"{symbol} counted", counted, mean, role=name, style="points"),
                Curve(f"{symbol} exact", ratio, _above(exact), role=name, style="dashed"),
                Curve(f"{bound} of (31)", ratio, _above(limit), role=name, style="dotted"),
            ]
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
        "Xi_2, M* above a multiple of Xi_1. The first holds; of lucky neurons there are fewer, and "
        "left of the mark there is none.",
        panels,
    )


def _against_d(experiment: InitExperiment, results: xr.Dataset) -> Picture:
    counted = sorted(experiment.d)
    spaced = np.geomspace(counted[0], max(law.FAR, counted[-1]), 36)
    features = np.unique(spaced.round().astype(int))
    near = [r for r in sorted(experiment.ratio) if r >= 0.7] or [max(experiment.ratio)]
    shown = near if len(near) <= 4 else [near[0], near[len(near) // 3], near[-2], near[-1]]
    over, others = [], []
    for ratio in shown:
        role = f"ratio {ratio:g}"
        steps = [theory.proof_steps(int(d), ratio, experiment.gamma) for d in features]
        exact = _above(np.array([step.lucky / step.high_order for step in steps]))
        mean = finite_mean(law.lucky_over(experiment, results, ratio, counted))
        over += [
            Curve(f"{role}, exact", features, exact, role=role, style="dashed"),
            Curve(f"{role}, counted", np.array(counted), mean, role=role, style="points"),
        ]
        alone = _above(np.array([step.others for step in steps]))
        others.append(Curve(role, features, alone, role=role))
    return Picture(
        "against-d",
        "The lower bound against the number of features, further than networks were drawn",
        "Left: if the bound (31) held up to a constant, every curve would stay above some level. "
        "With balanced features (ratio 1) it falls only as slowly as 1/sqrt(log d), a factor that "
        "the proof has in (238) and drops in (239). With imbalance it turns down for good, but far "
        "beyond the networks counted when the imbalance is mild. Right: the reason, the chance "
        "that no other feature exceeds its threshold when one is high. The proof takes it as 1, "
        "but it falls like exp(-d^(1-r^2)), faster than any power of d.",
        [
            Lines(over, "features, d", "|M*_j| over Xi_1", x_log=True, y_log=True),
            Lines(others, "features, d", "P(no other is too high)", x_log=True, y_log=True),
        ],
    )


def tables(experiment: InitExperiment, results: xr.Dataset) -> list[Table]:
    cells: list[list[object]] = []
    for d, (place, ratio) in product(experiment.d, enumerate(experiment.ratio)):
        width = law.width_needed(experiment, d, ratio)
        numbers = []
        for name in ("ordinary", "lucky"):
            counted = finite_mean(law.rows(results[name], d)[:, place])
            numbers += [law.expected(experiment, name, d, ratio), counted]
        numbers.append(law.lucky_order(experiment, d, ratio))
        needed = f"{width:.4g}" if math.isfinite(width) else "none is enough"
        row = [d, experiment.neurons(d), f"{ratio:g}", *(f"{value:.3g}" for value in numbers)]
        cells.append([*row, needed])
    sets = [word for s in ("|M_j|", "|M*_j|") for word in (f"{s} exact", "counted")]
    return [
        Table(
            "expected",
            "Ordinary and lucky neurons a feature, and the width that gives each a lucky one",
            f"Exact expectations beside counts in {results.sizes['seed']} runs of several networks."
            f" Last column: neurons needed so that every feature has a lucky one with "
            f"{law.CHANCE:.0%} probability; the paper's experiments have 24 at d = 9.",
            ["d", "m", "ratio", *sets, "Xi_1", "width needed"],
            cells,
        )
    ]
