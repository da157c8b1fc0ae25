"""Tables of ``contrast-init``."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import xarray as xr

from rarefy.core.picture import Table
from rarefy.measure.statistics import loglog_slope
from rarefy.studies.contrastive.init import exact as law
from rarefy.studies.contrastive.init.experiment import InitExperiment
from rarefy.studies.kit.tables import table
from rarefy.theory import initial_sets as theory


def tables(experiment: InitExperiment, results: xr.Dataset) -> list[Table]:
    return [_expected(experiment, results), _steps(experiment), _beyond(experiment, results)]


def _expected(experiment: InitExperiment, results: xr.Dataset) -> Table:
    cells: list[list[object]] = []
    gamma = experiment.gamma
    for d, (place, ratio) in product(experiment.d, enumerate(experiment.ratio)):
        m, width = experiment.neurons(d), law.width_needed(experiment, d, ratio)
        cells.append(
            [
                d,
                m,
                f"{ratio:g}",
                f"{m * theory.ordinary_probability(d, ratio, gamma):.3g}",
                f"{law.rows(results['ordinary'], d)[:, place].mean():.3g}",
                f"{m * theory.lucky_probability(d, ratio, gamma):.3g}",
                f"{law.rows(results['lucky'], d)[:, place].mean():.3g}",
                f"{law.lucky_order(experiment, d, ratio):.3g}",
                f"{width:.4g}" if math.isfinite(width) else "none is enough",
                f"{float(theory.minimum_width_order(d, ratio, gamma)):.4g}",
            ]
        )
    sets, widths = ("|M_j|", "|M*_j|"), ("width needed", "width by order")
    lowest = ", ".join(
        f"{theory.smallest_ratio(d, experiment.gamma):.2f} at d={d}" for d in experiment.d
    )
    return Table(
        "expected",
        "Ordinary and lucky neurons a feature, and the width that gives each a lucky one",
        f"Exact expectations beside counts in {results.sizes['seed']} runs of several networks. "
        f"The last two columns: neurons needed so that every feature has a lucky one with "
        f"{law.CHANCE:.0%} probability, and the width the paper's order asks for. Below a ratio of "
        f"{lowest} no neuron can be lucky, however many there are.",
        ["d", "m", "ratio", *(w for s in sets for w in (f"{s} exact", "counted")), "Xi_1", *widths],
        cells,
    )


def _steps(experiment: InitExperiment) -> Table:
    cells: list[list[object]] = []
    for d, ratio in product(experiment.d, experiment.ratio):
        steps = theory.proof_steps(d, ratio, experiment.gamma)
        if steps.high > 0:
            numbers = (f"{value:.3g}" for value in (*steps, steps.lucky / steps.high_order))
            cells.append([d, f"{ratio:g}", *numbers])
    high, others = ("P(A)", "P(A) Gaussian", "order"), ("P(B)", "P(B) Gaussian")
    return Table(
        "steps",
        "Where the proof of (31) leaves the exact law",
        "P(A): the share of feature j is high enough, exactly, with the norm replaced by its mean "
        "as in (236), and the order d^(-c_1/2) given to it. P(B): no other share is too high, "
        "exactly (given A) and as (1 - p_2)^(d-1); (238) takes it as 1. Last column: exact lucky "
        "probability over the order. Rows where no neuron can be lucky are left out.",
        ["d", "ratio", *high, *others, "lucky", "lucky/order"],
        cells,
    )


def _beyond(experiment: InitExperiment, results: xr.Dataset) -> Table:
    """The quotients that the bounds speak about, counted and by the exact law for many features."""
    features, largest, low, high = (
        sorted(experiment.d),
        max(experiment.d),
        law.MANY[0],
        law.MANY[-1],
    )
    rows: list[dict[str, object]] = []

    def add(what: str, ratio: float, counted: np.ndarray, exact: list[float]) -> None:
        """counted: (seed, d); exact at the largest d counted and at ``MANY``."""
        slope = loglog_slope(np.array(features), counted, resamples=0).value
        rows.append(
            {
                "quantity over order": what,
                "ratio": f"{ratio:g}",
                "slope, counted": f"{slope:+.2f}" if math.isfinite(slope) else "none",
                f"counted, d={largest}": f"{counted[:, -1].mean():.3g}",
                f"exact, d={largest}": f"{exact[0]:.3g}",
                f"exact, d={low}": f"{exact[1]:.3g}",
                f"exact, d={high}": f"{exact[-1]:.3g}",
                f"slope, exact, d={low}..{high}": f"{law.exact_slope(exact[1:]):+.2f}",
            }
        )

    for ratio in experiment.ratio:
        exact = [law.exact_over(experiment, d, ratio) for d in (largest, *law.MANY)]
        if min(exact) <= 0:
            continue  # none is lucky, or too rare for a float
        counted = law.lucky_over(experiment, results, ratio, features)
        add("mean |M*_j| over Xi_1 (31)", ratio, counted, exact)
    for bound in law.upper_bounds(experiment):
        if bound.known:
            continue  # the exact law of the mean says nothing of what was counted, the largest
        for ratio in experiment.ratio if bound.by_ratio else experiment.ratio[:1]:
            exact = [bound.exact(experiment, d, ratio) for d in (largest, *law.MANY)]
            what = f"{bound.symbol}{bound.over.rstrip(',')}"
            add(what, ratio, law.counted_over(experiment, results, bound, ratio), exact)
    return table(
        "beyond",
        "The bounds for more features than were drawn",
        "Each row is a quantity over the order that a paper gives for it. A lower bound (M*_j over "
        "Xi_1) needs a slope of at least 0 in d, an upper bound (the others) of at most 0, up to "
        f"slowly varying factors. Counts end at d = {largest}; the exact laws, which the counts "
        f"agree with, go on to d = {law.MANY[-1]} and show where a trend turns.",
        rows,
    )
